// SPDX-License-Identifier: GPL-2.0

//! What an instance says of itself.

use super::Scheduler;
use crate::cake::{
    index::FlowIndex,
    packet::PacketQueue,
    stats::{FlowStats, Lengths, QdiscStats, TinStats},
    tin::Tin,
    units::Nanos,
};
use core::ops::DerefMut;

impl<Q, B> Scheduler<Q, B>
where
    Q: PacketQueue,
    B: DerefMut<Target = Tin<Q>>,
{
    /// A copy of the instance's statistics.
    pub fn stats(&self) -> QdiscStats {
        let Lengths {
            average_offset,
            counted,
            adjusted,
        } = self.lengths;
        let (min_netlen, max_netlen) = counted.bounds();
        let (min_adjlen, max_adjlen) = adjusted.bounds();
        QdiscStats {
            capacity_estimate: self.autorate.estimate(),
            memory_limit: self.memory.limit,
            memory_used: self.memory.max_used,
            avg_netoff: average_offset.wrapping_add(1 << 15) >> 16,
            max_netlen,
            max_adjlen,
            min_netlen,
            min_adjlen,
            active_queues: self.sharers,
        }
    }

    /// A copy of the statistics of the tin at position `display`.
    pub fn tin_stats(&mut self, display: u32, now: Nanos) -> Option<TinStats> {
        let mode = self.config.flow_mode;
        let at = self.config.preset.tin_at(display)?;
        let tin = self.tins[at.at()].as_deref_mut()?;
        tin.settle(mode, now);
        Some(tin.stats())
    }

    /// A copy of the statistics of a flow in the tin at position `display`, if it is active.
    pub fn flow_stats(&self, display: u32, flow: FlowIndex, now: Nanos) -> Option<FlowStats> {
        let at = self.config.preset.tin_at(display)?;
        self.tins[at.at()].as_deref()?.flow_stats(flow, now)
    }

    /// Whether a flow in the tin at position `display` is active.
    pub fn is_flow_active(&self, display: u32, flow: FlowIndex, now: Nanos) -> bool {
        let tin = self.config.preset.tin_at(display);
        tin.and_then(|at| self.tins[at.at()].as_deref())
            .is_some_and(|tin| tin.is_flow_active(flow, now))
    }
}
