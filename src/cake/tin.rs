// SPDX-License-Identifier: GPL-2.0

//! A tin: one traffic class with its own queues, AQM parameters and threshold.

mod lookup;
mod params;
mod report;

pub use params::TinParams;

use super::{
    ack_filter::redundant,
    cobalt::{Blue, Verdict},
    config::AckFilter,
    flow::{Census, Flow, Flows, Rotation, Set},
    hash::{FlowHashes, FlowMode},
    host::Hosts,
    index::{FlowIndex, QUEUES},
    overflow::Backlogs,
    packet::{DropReason, Packet, PacketQueue},
    random::Random,
    shaper::TinClock,
    stats::Delays,
    tags::Tags,
    units::Nanos,
};
use pin_init::{init, init_array_from_fn, Init};

/// What a tin has counted since it was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct TinCounters {
    pub packets: u32,
    pub bytes: u64,
    pub dropped: u32,
    pub acks_dropped: u32,
    pub ecn_marked: u32,
    pub max_len: u32,
    pub way_hits: u32,
    pub way_misses: u32,
    pub way_collisions: u32,
}

/// What [`Tin::serve`] got from a flow.
pub enum Served<P> {
    /// A packet to send.
    Packet(P),
    /// A packet that the AQM took back.
    Dropped(P, DropReason),
}

/// A traffic class.
pub struct Tin<Q> {
    /// What follows from the configuration.
    pub params: TinParams,
    /// Whether the tin is within its threshold.
    pub clock: TinClock,
    /// Bytes that the tin may still send in this round of unlimited mode.
    pub deficit: i32,
    backlog: u32,
    census: Census,
    unresponsive: u16,
    sparse: Rotation,
    bulk: Rotation,
    /// What the tin has seen.
    pub counters: TinCounters,
    delays: Delays,
    tags: Tags,
    hosts: Hosts,
    /// The longest queues.
    backlogs: Backlogs,
    /// Packets that each flow has lost.
    dropped: [u32; QUEUES],
    flows: Flows<Q>,
}

impl<Q: PacketQueue> Tin<Q> {
    /// An empty tin, made in place: it is far too large for a kernel stack.
    pub fn init() -> impl Init<Self> {
        init!(Self {
            params: TinParams::default(),
            clock: TinClock::default(),
            deficit: 0,
            backlog: 0,
            census: Census::default(),
            unresponsive: 0,
            sparse: Rotation::new(),
            bulk: Rotation::new(),
            counters: TinCounters::default(),
            delays: Delays::default(),
            tags <- Tags::init(),
            hosts <- Hosts::init(),
            backlogs <- Backlogs::init(),
            dropped <- init_array_from_fn(|_| 0),
            flows <- init_array_from_fn(|_| Flow::new()),
        })
    }

    /// Bytes queued.
    #[inline]
    pub fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Whether any flow waits for its turn.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.sparse.first().or(self.bulk.first()).is_some()
    }

    /// Notes the length of an arrival, which may be more than one packet.
    #[inline]
    pub fn arrived(&mut self, len: u32) {
        if len > self.counters.max_len {
            self.counters.max_len = len;
        }
    }

    /// Appends `packet` to a flow's queue.
    #[inline]
    pub fn push(&mut self, index: FlowIndex, packet: Q::Packet) {
        let len = packet.len();
        self.counters.packets = self.counters.packets.wrapping_add(1);
        self.counters.bytes = self.counters.bytes.wrapping_add(u64::from(len));
        self.backlog = self.backlog.wrapping_add(len);
        let Self {
            flows, backlogs, ..
        } = self;
        let flow = &mut flows[index.at()];
        flow.backlog = flow.backlog.wrapping_add(len);
        flow.queue.push(packet);
        backlogs.grew(index, |flow| flows[flow.at()].backlog);
    }

    /// Removes the acknowledgement that the flow's last packet makes redundant, if there is one.
    #[cold]
    pub fn filter_acks(&mut self, index: FlowIndex, filter: AckFilter) -> Option<Q::Packet> {
        let queue = &mut self.flows[index.at()].queue;
        let packet = queue.remove(redundant(queue, filter)?)?;
        self.left(index, packet.len());
        self.counters.acks_dropped = self.counters.acks_dropped.wrapping_add(1);
        Some(packet)
    }

    /// Gives a flow that has just got a packet its place in a rotation.
    #[inline]
    pub fn activate(&mut self, mode: FlowMode, index: FlowIndex, now: Nanos, random: &mut Random) {
        match self.flows[index.at()].set {
            Set::Sparse | Set::Bulk => {}
            Set::SparseWait => self.set(mode, index, Set::Bulk),
            from @ (Set::None | Set::Decaying) => {
                if from == Set::Decaying {
                    let change = self.flows[index.at()]
                        .cobalt
                        .idled(&self.params.cobalt, now);
                    self.note(change);
                }
                self.set(mode, index, Set::Sparse);
                self.sparse.push(&mut self.flows, index);
                self.flows[index.at()].deficit = self.quantum(mode, index, random);
            }
        }
    }

    /// Takes the next packet that the flows' rotations and the AQM let go.
    ///
    /// `bulk_counts` tells whether the AQM has to allow for the other bulk flows.
    #[inline]
    pub fn serve(
        &mut self,
        mode: FlowMode,
        bulk_counts: bool,
        now: Nanos,
        random: &mut Random,
    ) -> Option<(FlowIndex, Served<Q::Packet>)> {
        let (index, mut packet) = loop {
            let index = self.sparse.first().or(self.bulk.first())?;
            if self.flows[index.at()].deficit <= 0 {
                self.end_turn(mode, index, random);
                continue;
            }
            match self.pop(index) {
                Some(packet) => break (index, packet),
                None => self.retire(mode, index, now),
            }
        };
        let bulk_flows = if bulk_counts {
            u32::from(self.census.of(Set::Bulk))
        } else {
            0
        };
        let flow = &mut self.flows[index.at()];
        let sojourn = now.since(packet.tag().enqueued);
        let verdict = flow.cobalt.judge(
            &self.params.cobalt,
            now,
            sojourn,
            bulk_flows,
            random,
            || packet.mark_congestion(),
        );
        if let Verdict::Drop(reason) = verdict {
            // A flow's last packet is never dropped: nothing would tell its receiver.
            if !flow.queue.is_empty() {
                self.count_drop(index);
                return Some((index, Served::Dropped(packet, reason)));
            }
        }
        if verdict == Verdict::Marked {
            self.counters.ecn_marked = self.counters.ecn_marked.wrapping_add(1);
        }
        self.delays.add(sojourn);
        Some((index, Served::Packet(packet)))
    }

    /// Takes as many quanta of unlimited mode as pay off the tin's debt, and returns how many.
    #[inline]
    pub fn pay_off(&mut self) -> u32 {
        if self.deficit >= 0 {
            return 0;
        }
        let quantum = u32::from(self.params.quantum.max(1));
        let rounds = self.deficit.unsigned_abs().div_ceil(quantum);
        self.deficit = self
            .deficit
            .saturating_add_unsigned(rounds.wrapping_mul(quantum));
        rounds
    }

    /// Takes the quanta of `rounds` in which the tin had no packets: until it is out of debt.
    pub fn idle(&mut self, rounds: u32) {
        if self.deficit > 0 {
            return;
        }
        let quantum = u32::from(self.params.quantum.max(1));
        let needed = (self.deficit.unsigned_abs() / quantum).wrapping_add(1);
        let quanta = needed.min(rounds).wrapping_mul(quantum);
        self.deficit = self.deficit.saturating_add_unsigned(quanta);
    }

    /// Charges `len` bytes to a flow's turn.
    #[inline]
    pub fn charge(&mut self, index: FlowIndex, len: u32) {
        let deficit = &mut self.flows[index.at()].deficit;
        *deficit = deficit.wrapping_sub_unsigned(len);
    }

    /// Charges `len` bytes to the tin's turn in unlimited mode.
    #[inline]
    pub fn charge_turn(&mut self, len: u32) {
        self.deficit = self.deficit.wrapping_sub_unsigned(len);
    }

    /// Charges `len` bytes to the tin's threshold.
    #[inline]
    pub fn charge_clock(&mut self, now: Nanos, len: u32) {
        let TinParams { pace, credit, .. } = self.params;
        self.clock.charge(now, credit, pace.duration(len));
    }

    /// The longest queue and its bytes.
    pub fn longest(&mut self) -> Option<(u32, FlowIndex)> {
        if self.backlog == 0 {
            return None;
        }
        let bytes = |flow: FlowIndex| self.flows[flow.at()].backlog;
        let index = self.backlogs.longest(bytes);
        Some((bytes(index), index))
    }

    fn count_drop(&mut self, index: FlowIndex) {
        let dropped = &mut self.dropped[index.at()];
        *dropped = dropped.wrapping_add(1);
        self.counters.dropped = self.counters.dropped.wrapping_add(1);
    }

    /// Drops the head of an overflowing queue.
    pub fn drop_head(&mut self, index: FlowIndex, now: Nanos) -> Option<Q::Packet> {
        let packet = self.pop(index)?;
        self.count_drop(index);
        let flow = &mut self.flows[index.at()];
        let change = flow.cobalt.overflowed(&self.params.cobalt, now);
        self.note(change);
        Some(packet)
    }

    /// Takes packets out of the tin, whatever their turn, and says whose they are.
    pub fn evict(&mut self) -> Option<(FlowHashes, Q::Packet)> {
        let (_, index) = self.longest()?;
        let packet = self.pop(index)?;
        let (src_host, dst_host) = self.hosts.tags(self.flows[index.at()].hosts);
        let hashes = FlowHashes {
            flow: self.tags.of(index),
            src_host,
            dst_host,
        };
        Some((hashes, packet))
    }

    /// Counts hosts' flows anew, because another mode counts them differently.
    pub fn recount_hosts(&mut self, mode: FlowMode) {
        self.hosts.forget_flows();
        for flow in self.flows.iter().filter(|flow| flow.set == Set::Bulk) {
            self.hosts.gain(mode, flow.hosts);
        }
    }

    /// Ends the turn of a flow that has spent its quantum: DRR++.
    fn end_turn(&mut self, mode: FlowMode, index: FlowIndex, random: &mut Random) {
        let flow = &self.flows[index.at()];
        match (flow.set, flow.queue.is_empty()) {
            (Set::Sparse, true) => self.set(mode, index, Set::SparseWait),
            (Set::Sparse, false) => self.set(mode, index, Set::Bulk),
            _ => {}
        }
        let quantum = self.quantum(mode, index, random);
        let deficit = &mut self.flows[index.at()].deficit;
        *deficit = deficit.saturating_add(quantum);
        match self.sparse.pop(&mut self.flows) {
            Some(index) => self.bulk.push(&mut self.flows, index),
            None => self.bulk.rotate(&mut self.flows),
        }
    }

    /// Takes the flow whose turn it is, and which has run empty, out of the rotations.
    fn retire(&mut self, mode: FlowMode, index: FlowIndex, now: Nanos) {
        let cobalt = &mut self.flows[index.at()].cobalt;
        let change = cobalt.ran_empty(&self.params.cobalt, now);
        let rest_time = cobalt.rest_time(&self.params.cobalt, now);
        let to = if cobalt.is_at_rest(now) {
            Set::None
        } else {
            Set::Decaying
        };
        self.note(change);
        if self.sparse.pop(&mut self.flows).is_none() {
            self.bulk.pop(&mut self.flows);
        }
        self.set(mode, index, to);
        self.tags.may_be_free(index, rest_time);
    }

    /// Bytes that a flow gets for a round: its share of its busier host's share.
    ///
    /// Rounding is dithered, so that no flow gains by it in the long run.
    #[inline]
    fn quantum(&self, mode: FlowMode, index: FlowIndex, random: &mut Random) -> i32 {
        let quantum = u32::from(self.params.flow_quantum);
        let load = self.hosts.load(mode, self.flows[index.at()].hosts);
        if load <= 1 {
            return quantum as i32;
        }
        let share = quantum.wrapping_shl(16) / u32::from(load.max(1));
        (share.wrapping_add(random.draw() & 0xffff) >> 16) as i32
    }

    #[inline]
    fn pop(&mut self, index: FlowIndex) -> Option<Q::Packet> {
        let packet = self.flows[index.at()].queue.pop()?;
        self.left(index, packet.len());
        Some(packet)
    }

    /// Notes that a packet of `len` bytes left a flow's queue.
    #[inline]
    fn left(&mut self, index: FlowIndex, len: u32) {
        let Self {
            flows, backlogs, ..
        } = self;
        self.backlog = self.backlog.saturating_sub(len);
        let flow = &mut flows[index.at()];
        flow.backlog = flow.backlog.saturating_sub(len);
        backlogs.shrank(index, |flow| flows[flow.at()].backlog);
    }

    /// Moves a flow from set to set: the only place where sets change, and what is counted by them.
    #[inline]
    fn set(&mut self, mode: FlowMode, index: FlowIndex, to: Set) {
        let flow = &mut self.flows[index.at()];
        let from = core::mem::replace(&mut flow.set, to);
        self.census.moved(from, to);
        match (from, to) {
            (Set::Bulk, Set::Bulk) => {}
            (Set::Bulk, _) => self.hosts.lose(mode, flow.hosts),
            (_, Set::Bulk) => self.hosts.gain(mode, flow.hosts),
            _ => {}
        }
    }

    fn note(&mut self, change: Blue) {
        self.unresponsive = match change {
            Blue::Same => self.unresponsive,
            Blue::Rose => self.unresponsive.wrapping_add(1),
            Blue::Fell => self.unresponsive.wrapping_sub(1),
        };
    }
}
