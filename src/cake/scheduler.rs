// SPDX-License-Identifier: GPL-2.0

//! The scheduler: one instance of CAKE.
//!
//! It ties the parts together and owns what all tins share: the link's clock, the memory limit and
//! the length of the queue.

mod choice;
mod report;

use super::{
    autorate::Autorate,
    config::{AckFilter, Config},
    diffserv::{Classes, Preset},
    hash::FlowHashes,
    index::{FlowIndex, TinIndex, TinSet, MAX_TINS},
    packet::{DropReason, Packet, PacketQueue, Tag},
    random::Random,
    shaper::{LinkClock, Pace},
    stats::Lengths,
    tin::{Served, Tin, TinParams},
    units::Nanos,
};
use core::ops::DerefMut;

/// The boxes of an instance's tins. Those that the preset does not use are not allocated.
pub type Tins<B> = [Option<B>; MAX_TINS];

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

/// The memory that queued packets hold, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    used: u32,
    max_used: u32,
    limit: u32,
}

/// One instance of CAKE. `Q` is a queue of packets and `B` the box of a tin.
pub struct Scheduler<Q, B> {
    config: Config,
    classes: Classes,
    clock: LinkClock,
    pace: Pace,
    /// Whose turn it is in unlimited mode.
    current: TinIndex,
    /// Rounds in which nobody but `current` had packets, for which the others are due their quanta.
    solo_rounds: u32,
    /// The tins that have flows in their rotations.
    active: TinSet,
    qlen: u32,
    backlog: u32,
    memory: Memory,
    lengths: Lengths,
    random: Random,
    autorate: Autorate,
    /// Instances that share the bandwidth; 0 if it is not to be shared.
    sharers: u32,
    /// The device's largest packet in bytes, link-layer header included.
    mtu: u32,
    tins: Tins<B>,
    queues: core::marker::PhantomData<Q>,
}

impl<Q, B> Scheduler<Q, B>
where
    Q: PacketQueue,
    B: DerefMut<Target = Tin<Q>>,
{
    /// An idle instance.
    ///
    /// `tins` holds a box for each tin of the configured preset; `mtu` is the device's largest
    /// packet in bytes, link-layer header included; `seed` is random.
    pub fn new(config: Config, mtu: u32, tins: Tins<B>, seed: u64) -> Self {
        let mut new = Self {
            config,
            classes: Classes::of(&config),
            clock: LinkClock::default(),
            pace: Pace::default(),
            current: TinIndex::FIRST,
            solo_rounds: 0,
            active: TinSet::default(),
            qlen: 0,
            backlog: 0,
            memory: Memory::default(),
            lengths: Lengths::new(),
            random: Random::new(seed),
            autorate: Autorate::new(config.bandwidth),
            sharers: 0,
            mtu,
            tins,
            queues: core::marker::PhantomData,
        };
        new.derive();
        new
    }

    /// Packets in the queue.
    #[inline]
    pub fn qlen(&self) -> u32 {
        self.qlen
    }

    /// Bytes in the queue. The kernel keeps a count of its own.
    #[allow(dead_code)]
    pub fn backlog(&self) -> u32 {
        self.backlog
    }

    /// The configuration in force.
    #[inline]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The tins of all code points.
    #[inline]
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Queues an arrival: `packets` is the packet itself or what it was split into.
    ///
    /// `drop` takes the packets that the memory limit costs.
    #[inline]
    pub fn enqueue(
        &mut self,
        arrival: &Arrival,
        packets: impl Iterator<Item = Q::Packet>,
        drop: &mut impl FnMut(Q::Packet, DropReason),
    ) -> Enqueued {
        let Arrival { now, hashes, .. } = *arrival;
        let mode = self.config.flow_mode;
        let at = if self.tins[arrival.tin.at()].is_some() {
            arrival.tin
        } else {
            TinIndex::FIRST
        };
        let Some(tin) = self.tins[at.at()].as_deref_mut() else {
            packets.for_each(|packet| drop(packet, DropReason::Overlimit));
            return Enqueued::Queued;
        };
        if tin.backlog() == 0 {
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
        self.backlog = self.backlog.wrapping_add(bytes);
        let redundant = match self.config.ack_filter {
            AckFilter::Off => None,
            _ if arrival.is_split => None,
            filter => tin.filter_acks(flow, filter),
        };
        if let Some(packet) = redundant {
            bytes = bytes.wrapping_sub(packet.len());
            self.give_up(at, now, packet, DropReason::RedundantAck, drop);
        }
        self.memory.max_used = self.memory.max_used.max(self.memory.used);
        if self.config.autorate_ingress {
            self.follow_rate(now, bytes);
        }

        let mut outcome = Enqueued::Queued;
        while self.memory.used > self.memory.limit {
            match self.drop_from_longest(now, drop) {
                Some(victim) if victim == (at, flow) => outcome = Enqueued::Congested,
                Some(_) => {}
                None => break,
            }
        }
        outcome
    }

    /// Shapes to the rate at which packets arrive.
    #[cold]
    fn follow_rate(&mut self, now: Nanos, bytes: u32) {
        if let Some(bandwidth) = self.autorate.arrived(now, bytes) {
            self.config.bandwidth = bandwidth;
            self.derive();
        }
    }

    /// Decides what the link does at `now`.
    ///
    /// `drop` takes the packets that the AQM gives up on the way.
    #[inline]
    pub fn dequeue(
        &mut self,
        now: Nanos,
        drop: &mut impl FnMut(Q::Packet, DropReason),
    ) -> Decision<Q::Packet> {
        while self.qlen != 0 {
            if let Some(next) = self.clock.wait(now) {
                return Decision::Wait(next);
            }
            let chosen = if self.pace.is_unlimited() {
                self.choose_by_weight()
            } else {
                self.choose_by_priority(now)
            };
            let Some(at) = chosen else { break };
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
            let Some((flow, served)) = tin.serve(mode, ingress, now, &mut self.random) else {
                self.active.remove(at);
                return None;
            };
            match served {
                Served::Dropped(packet, reason) => {
                    self.forget(&packet);
                    if ingress {
                        let len = packet.tag().adjusted_len;
                        self.charge_dropped(at, now, len);
                        if let Some(tin) = self.tins[at.at()].as_deref_mut() {
                            tin.charge(flow, len);
                        }
                    }
                    drop(packet, reason);
                }
                Served::Packet(packet) => {
                    let len = packet.tag().adjusted_len;
                    tin.charge(flow, len);
                    if !self.pace.is_unlimited() {
                        tin.charge_clock(now, len);
                        self.clock.sent(self.pace.duration(len));
                    }
                    self.forget(&packet);
                    return Some(packet);
                }
            }
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

    /// Charges a dropped packet that has crossed the bottleneck already.
    fn charge_dropped(&mut self, at: TinIndex, now: Nanos, len: u32) {
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
    fn forget(&mut self, packet: &Q::Packet) {
        self.qlen = self.qlen.wrapping_sub(1);
        self.backlog = self.backlog.wrapping_sub(packet.len());
        self.memory.used = self.memory.used.saturating_sub(packet.truesize());
    }

    /// Whether a change to `preset` has to bring a box for `tin`.
    pub fn lacks(&self, preset: Preset, tin: TinIndex) -> bool {
        tin.at() < preset.tin_count() && self.tins[tin.at()].is_none()
    }

    /// Changes the configuration and loses neither packets nor state.
    ///
    /// `fresh` brings the boxes of tins that are new. Returned are the boxes of tins that are gone;
    /// their packets have moved to the first tin.
    pub fn reconfigure(&mut self, config: Config, mtu: u32, now: Nanos, fresh: Tins<B>) -> Tins<B> {
        if config.framing != self.config.framing {
            self.lengths.forget_ranges();
        }
        if config.autorate_ingress && !self.config.autorate_ingress {
            self.autorate.restart(now);
        }
        let recount = config.flow_mode != self.config.flow_mode;
        let is_faster = config.bandwidth == 0 || config.bandwidth > self.config.bandwidth;
        self.config = config;
        self.classes = Classes::of(&config);
        self.mtu = mtu;
        let mut spare: Tins<B> = [const { None }; MAX_TINS];
        for (i, fresh) in fresh.into_iter().enumerate() {
            let slot = &mut self.tins[i & (MAX_TINS - 1)];
            if fresh.is_some() {
                *slot = fresh;
            } else if i >= config.preset.tin_count() {
                spare[i & (MAX_TINS - 1)] = slot.take();
            }
        }
        if self.current.at() >= config.preset.tin_count() {
            self.current = TinIndex::FIRST;
        }
        self.solo_rounds = 0;
        let was_unlimited = self.pace.is_unlimited();
        self.derive();
        self.clock.wake(now);
        if was_unlimited {
            // Their clocks have stood still.
            for tin in self.tins.iter_mut().flatten() {
                let tin: &mut Tin<Q> = tin;
                tin.clock.wake(now, tin.params.burst);
            }
        }
        if is_faster {
            self.clock.wait_at_most(now.after(self.pace.duration(mtu)));
        }
        if recount {
            for tin in self.tins.iter_mut().flatten() {
                tin.recount_hosts(config.flow_mode);
            }
        }
        if let Some(first) = self.tins[TinIndex::FIRST.at()].as_deref_mut() {
            if first.backlog() == 0 {
                first.clock.wake(now, first.params.burst);
            }
            for tin in spare.iter_mut().flatten() {
                while let Some((hashes, packet)) = tin.evict() {
                    let flow = first.lookup(config.flow_mode, &hashes, now);
                    first.push(flow, packet);
                    first.activate(config.flow_mode, flow, now, &mut self.random);
                }
            }
        }
        self.active = TinSet::default();
        for at in config.preset.tins() {
            if self.tins[at.at()].as_deref().is_some_and(Tin::is_active) {
                self.active.insert(at);
            }
        }
        spare
    }

    /// Empties all queues.
    pub fn reset(&mut self, drop: &mut impl FnMut(Q::Packet)) {
        for i in 0..MAX_TINS {
            while let Some((_, packet)) = self.tins[i].as_deref_mut().and_then(Tin::evict) {
                self.forget(&packet);
                drop(packet);
            }
        }
    }

    /// The device's largest packet in bytes for which the instance is set up.
    #[inline]
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Sets the instance up for a device whose largest packet has `mtu` bytes.
    pub fn set_mtu(&mut self, mtu: u32) {
        self.mtu = mtu;
        self.derive();
    }

    /// Takes an equal part of the bandwidth, because that many instances share it, this one among
    /// them.
    pub fn share(&mut self, sharers: u32) {
        if sharers != self.sharers {
            self.sharers = sharers;
            self.derive();
        }
    }

    /// Works out what follows from the configuration. Sharing slows the clocks down; targets stay
    /// those of the whole link, on which a packet takes no longer for it.
    fn derive(&mut self) {
        let whole = self.config;
        let part = whole.shared_by(self.sharers);
        self.memory.limit = whole.memory_limit(self.mtu);
        self.pace = Pace::of_rate(part.bandwidth);
        for at in whole.preset.tins() {
            if let Some(tin) = self.tins[at.at()].as_deref_mut() {
                tin.params = TinParams {
                    cobalt: TinParams::derive(&whole, at, self.mtu).cobalt,
                    ..TinParams::derive(&part, at, self.mtu)
                };
            }
        }
    }
}
