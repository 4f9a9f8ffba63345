// SPDX-License-Identifier: GPL-2.0

//! The way in.

use super::Scheduler;
use crate::cake::{
    config::AckFilter,
    hash::FlowHashes,
    index::{FlowIndex, TinIndex},
    packet::{DropReason, Packet, PacketQueue, Tag},
    tin::Tin,
    units::Nanos,
};
use core::ops::DerefMut;

/// One packet, or several that came as one, on the way into the queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The time.
    pub now: Nanos,
    /// The tin that the packet belongs to.
    pub tin: TinIndex,
    /// The packet's flow and hosts.
    pub hashes: FlowHashes,
    /// Bytes as it came, before any splitting.
    pub len: u32,
    /// Whether it was split: then it carries data and is no acknowledgement.
    pub is_split: bool,
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Enqueued {
    /// It is in the queue.
    Queued,
    /// It is in the queue, and the memory limit cost its flow packets.
    Congested,
}

/// An arrival that is in its queue and may cost packets: [`Scheduler::settle`] is to follow.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Unsettled {
    at: TinIndex,
    flow: FlowIndex,
    bytes: u32,
}

impl<Q, B> Scheduler<Q, B>
where
    Q: PacketQueue,
    B: DerefMut<Target = Tin<Q>>,
{
    /// Queues an arrival: `packets` is the packet itself or what it was split into.
    ///
    /// Most arrivals are done with that, and [`None`] is returned.
    #[inline]
    pub fn enter(
        &mut self,
        arrival: &Arrival,
        packets: impl Iterator<Item = Q::Packet>,
    ) -> Option<Unsettled> {
        let Arrival { now, hashes, .. } = *arrival;
        let mode = self.config.flow_mode;
        let mut at = arrival.tin;
        if self.tins[at.at()].is_none() {
            at = TinIndex::FIRST;
        }
        let tin = self.tins[at.at()].as_deref_mut()?;
        if tin.backlog() == 0 && !self.pace.is_unlimited() {
            tin.clock.wake(now, tin.params.burst);
            if self.qlen == 0 {
                self.clock.wake(now);
            }
        }
        tin.arrived(arrival.len);
        let flow = tin.lookup(mode, &hashes, now);
        let mut bytes = 0u32;
        for mut packet in packets {
            packet.set_tag(Tag {
                enqueued: now,
                adjusted_len: self.lengths.measure(&self.config.framing, &packet),
            });
            self.qlen = self.qlen.wrapping_add(1);
            bytes = bytes.wrapping_add(packet.len());
            self.memory.used = self.memory.used.saturating_add(packet.truesize());
            tin.push(flow, packet);
        }
        tin.activate(mode, flow, now, &mut self.random);
        self.active.insert(at);
        if self.is_followed || self.memory.used > self.memory.limit {
            return Some(Unsettled { at, flow, bytes });
        }
        self.memory.note_peak();
        None
    }

    /// Drops what an arrival makes superfluous, through `drop`: an acknowledgement, or packets over
    /// the memory limit.
    #[inline(never)]
    pub fn settle(
        &mut self,
        arrival: &Arrival,
        entered: Unsettled,
        drop: &mut impl FnMut(Q::Packet, DropReason),
    ) -> Enqueued {
        let Unsettled {
            at,
            flow,
            mut bytes,
        } = entered;
        if let Some(packet) = self.find_redundant(arrival, at, flow) {
            bytes = bytes.wrapping_sub(packet.len());
            self.give_up(at, arrival.now, packet, DropReason::RedundantAck, drop);
        }
        self.memory.note_peak();
        if self.config.autorate_ingress {
            self.follow_rate(arrival.now, bytes);
        }
        let mut outcome = Enqueued::Queued;
        while self.memory.used > self.memory.limit {
            match self.drop_from_longest(arrival.now, drop) {
                Some(victim) if victim == (at, flow) => outcome = Enqueued::Congested,
                Some(_) => {}
                None => break,
            }
        }
        outcome
    }

    /// Takes the acknowledgement out of a flow's queue that the arrival makes redundant.
    #[inline]
    fn find_redundant(
        &mut self,
        arrival: &Arrival,
        at: TinIndex,
        flow: FlowIndex,
    ) -> Option<Q::Packet> {
        match self.config.ack_filter {
            AckFilter::Off => None,
            _ if arrival.is_split => None,
            filter => self.tins[at.at()].as_deref_mut()?.filter_acks(flow, filter),
        }
    }

    /// Shapes to the rate at which packets arrive.
    #[cold]
    fn follow_rate(&mut self, now: Nanos, bytes: u32) {
        if let Some(bandwidth) = self.autorate.arrived(now, bytes) {
            self.config.bandwidth = bandwidth;
            self.derive_at(now);
        }
    }

    /// Drops the head of the longest queue of all tins, and says which queue it was.
    fn drop_from_longest(
        &mut self,
        now: Nanos,
        drop: &mut impl FnMut(Q::Packet, DropReason),
    ) -> Option<(TinIndex, FlowIndex)> {
        let mut longest: Option<(u32, TinIndex, FlowIndex)> = None;
        for at in self.config.preset.tins() {
            let Some(tin) = self.tins[at.at()].as_deref_mut() else {
                continue;
            };
            if let Some((bytes, flow)) = tin.longest() {
                if longest.is_none_or(|(most, ..)| bytes > most) {
                    longest = Some((bytes, at, flow));
                }
            }
        }
        let (_, at, flow) = longest?;
        let packet = self.tins[at.at()].as_deref_mut()?.drop_head(flow, now)?;
        self.give_up(at, now, packet, DropReason::Overlimit, drop);
        Some((at, flow))
    }

    /// Drops a packet that has left its queue.
    fn give_up(
        &mut self,
        at: TinIndex,
        now: Nanos,
        packet: Q::Packet,
        reason: DropReason,
        drop: &mut impl FnMut(Q::Packet, DropReason),
    ) {
        self.forget(&packet);
        if self.config.ingress {
            self.charge_dropped(at, now, packet.tag().adjusted_len);
        }
        drop(packet, reason);
    }
}
