// SPDX-License-Identifier: GPL-2.0

//! What a tin says of itself.

use super::{Set, Tin};
use crate::cake::{
    hash::FlowMode,
    index::{FlowIndex, QUEUES},
    packet::PacketQueue,
    stats::{FlowStats, TinStats},
    units::{Nanos, NSEC_PER_USEC},
};

impl<Q: PacketQueue> Tin<Q> {
    /// Lets go of flows whose state has decayed by `now`, so that the statistics do not count
    /// them. Nothing else depends on when this happens.
    pub fn settle(&mut self, mode: FlowMode, now: Nanos) {
        if self.census.of(Set::Decaying) == 0 {
            return;
        }
        for index in (0..QUEUES as u32).map(FlowIndex::new) {
            let flow = &mut self.flows[index.at()];
            if flow.set == Set::Decaying {
                let change = flow.cobalt.idled(&self.params.cobalt, now);
                let at_rest = flow.cobalt.is_at_rest(now);
                self.note(change);
                if at_rest {
                    self.set(mode, index, Set::None);
                }
            }
        }
    }

    /// A copy of the tin's statistics.
    pub fn stats(&self) -> TinStats {
        let us = |ns: u64| (ns / NSEC_PER_USEC) as u32;
        let flows = |set| u32::from(self.census.of(set));
        TinStats {
            threshold_rate: self.params.threshold,
            sent_bytes: self.counters.bytes,
            backlog_bytes: self.backlog,
            target_us: us(self.params.cobalt.target),
            interval_us: us(self.params.cobalt.interval),
            sent_packets: self.counters.packets,
            dropped_packets: self.counters.dropped,
            ecn_marked_packets: self.counters.ecn_marked,
            acks_dropped_packets: self.counters.acks_dropped,
            peak_delay_us: us(self.delays.peak),
            avg_delay_us: us(self.delays.average),
            base_delay_us: us(self.delays.base),
            way_indirect_hits: self.counters.way_hits,
            way_misses: self.counters.way_misses,
            way_collisions: self.counters.way_collisions,
            sparse_flows: flows(Set::Sparse).wrapping_add(flows(Set::Decaying)),
            bulk_flows: flows(Set::Bulk),
            unresponsive_flows: u32::from(self.unresponsive),
            max_skblen: self.counters.max_len,
            flow_quantum: u32::from(self.params.flow_quantum),
        }
    }

    /// A copy of a flow's statistics, or [`None`] if its queue is free.
    pub fn flow_stats(&self, index: FlowIndex, now: Nanos) -> Option<FlowStats> {
        let flow = &self.flows[index.at()];
        if !self.is_flow_active(index, now) {
            return None;
        }
        Some(FlowStats {
            qlen: flow.queue.iter().fold(0, |n: u32, _| n.wrapping_add(1)),
            backlog: flow.backlog,
            drops: self.dropped[index.at()],
            deficit: flow.deficit,
            dropping: flow.cobalt.is_dropping(),
            cobalt_count: flow.cobalt.count(),
            p_drop: flow.cobalt.p_drop(),
            blue_timer_us: flow.cobalt.blue_age_us(now),
            drop_next_us: flow.cobalt.drop_lateness_us(now),
        })
    }

    /// Whether a queue is in use.
    pub fn is_flow_active(&self, index: FlowIndex, now: Nanos) -> bool {
        self.flows[index.at()].free_at(&self.params.cobalt, now) > now
    }
}
