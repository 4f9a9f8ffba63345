// SPDX-License-Identifier: GPL-2.0

//! The way out.

use super::Scheduler;
use crate::cake::{
    index::{FlowIndex, TinIndex},
    packet::{DropReason, Packet, PacketQueue},
    tin::{Served, Tin},
    units::Nanos,
};
use core::ops::DerefMut;

/// What is to happen next on the link.
#[must_use]
pub enum Decision<P> {
    /// Send this packet now.
    Send(P),
    /// Packets wait; ask again at this time.
    Wait(Nanos),
    /// There is nothing to send.
    Empty,
}

impl<Q, B> Scheduler<Q, B>
where
    Q: PacketQueue,
    B: DerefMut<Target = Tin<Q>>,
{
    /// Decides what the link does at `now`.
    ///
    /// `drop` takes the packets that the AQM gives up on the way.
    #[inline]
    pub fn dequeue(
        &mut self,
        now: Nanos,
        drop: &mut impl FnMut(Q::Packet, DropReason),
    ) -> Decision<Q::Packet> {
        let is_shaped = !self.pace.is_unlimited();
        while self.qlen != 0 {
            if is_shaped {
                if let Some(next) = self.clock.wait(now) {
                    return Decision::Wait(next);
                }
            }
            let Some(at) = self.choose(now) else { break };
            if let Some(packet) = self.serve(at, now, drop) {
                return Decision::Send(packet);
            }
        }
        Decision::Empty
    }

    /// Takes a packet from a tin; [`None`] if the tin's turn ended without one.
    #[inline]
    fn serve(
        &mut self,
        at: TinIndex,
        now: Nanos,
        drop: &mut impl FnMut(Q::Packet, DropReason),
    ) -> Option<Q::Packet> {
        let mode = self.config.flow_mode;
        let ingress = self.config.ingress;
        loop {
            let tin = self.tins[at.at()].as_deref_mut()?;
            match tin.serve(mode, ingress, now, &mut self.random) {
                None => {
                    self.active.remove(at);
                    return None;
                }
                Some((flow, Served::Packet(packet))) => {
                    let len = packet.tag().adjusted_len;
                    tin.charge(flow, len);
                    if self.pace.is_unlimited() {
                        tin.charge_turn(len);
                    } else {
                        tin.charge_clock(now, len);
                        self.clock.sent(self.pace.duration(len));
                    }
                    self.forget(&packet);
                    return Some(packet);
                }
                Some((flow, Served::Dropped(packet, reason))) => {
                    self.account_for(at, flow, now, &packet);
                    drop(packet, reason);
                }
            }
        }
    }

    /// Accounts for a packet that the AQM dropped.
    #[cold]
    fn account_for(&mut self, at: TinIndex, flow: FlowIndex, now: Nanos, packet: &Q::Packet) {
        self.forget(packet);
        if self.config.ingress {
            let len = packet.tag().adjusted_len;
            self.charge_dropped(at, now, len);
            if let Some(tin) = self.tins[at.at()].as_deref_mut() {
                tin.charge(flow, len);
                if self.pace.is_unlimited() {
                    tin.charge_turn(len);
                }
            }
        }
    }

    /// Charges a dropped packet that has crossed the bottleneck already.
    pub(super) fn charge_dropped(&mut self, at: TinIndex, now: Nanos, len: u32) {
        if self.pace.is_unlimited() {
            return;
        }
        self.clock.dropped(self.pace.duration(len));
        if let Some(tin) = self.tins[at.at()].as_deref_mut() {
            tin.charge_clock(now, len);
        }
    }

    /// Takes a packet that left its queue off the totals.
    #[inline]
    pub(super) fn forget(&mut self, packet: &Q::Packet) {
        self.qlen = self.qlen.wrapping_sub(1);
        self.memory.used = self.memory.used.saturating_sub(packet.truesize());
    }
}
