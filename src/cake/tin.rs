// SPDX-License-Identifier: GPL-2.0

//! A tin: one traffic class with its own queues, AQM parameters and threshold.

mod params;
mod report;

pub use params::TinParams;

use super::{
    ack_filter::redundant,
    cobalt::{Blue, Verdict},
    config::AckFilter,
    flow::{Flow, Flows, Rotation, Set},
    hash::{ways, FlowHashes, FlowMode},
    host::Hosts,
    index::{FlowIndex, QUEUES},
    overflow::Backlogs,
    packet::{DropReason, Packet, PacketQueue},
    random::Random,
    shaper::TinClock,
    stats::Delays,
    units::Nanos,
};
use pin_init::{init, init_array_from_fn, Init};

/// How many flows stand where.
#[derive(Clone, Copy, Debug, Default)]
struct Census {
    sparse: u16,
    bulk: u16,
    decaying: u16,
}

impl Census {
    fn of(&mut self, set: Set) -> Option<&mut u16> {
        match set {
            Set::None => None,
            Set::Sparse | Set::SparseWait => Some(&mut self.sparse),
            Set::Bulk => Some(&mut self.bulk),
            Set::Decaying => Some(&mut self.decaying),
        }
    }

    fn moved(&mut self, from: Set, to: Set) {
        if let Some(count) = self.of(from) {
            *count = count.wrapping_sub(1);
        }
        if let Some(count) = self.of(to) {
            *count = count.wrapping_add(1);
        }
    }
}

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
    /// Nothing: the flow had run empty and left its rotation.
    Empty,
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
    tags: [u32; QUEUES],
    hosts: Hosts,
    backlogs: Backlogs,
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
            tags <- init_array_from_fn(|_| 0),
            hosts <- Hosts::init(),
            backlogs <- Backlogs::init(),
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
        (self.census.sparse | self.census.bulk) != 0
    }

    /// Finds the queue of a flow, or a free one, or one to share, and the flow's hosts.
    #[inline]
    pub fn lookup(&mut self, mode: FlowMode, hashes: &FlowHashes, now: Nanos) -> FlowIndex {
        if mode == FlowMode::Flowblind {
            return FlowIndex::new(0);
        }
        let direct = FlowIndex::new(hashes.flow);
        let owned = self.tags[direct.at()] == hashes.flow;
        if owned && self.flows[direct.at()].set != Set::None {
            self.place_idle(mode, direct, hashes);
            return direct;
        }
        let index = self.find_way(hashes.flow, now);
        let flow = &self.flows[index.at()];
        if self.tags[index.at()] != hashes.flow && flow.set == Set::Bulk {
            // Two flows in one queue: the queue goes with the newer one's hosts.
            self.hosts.lose(mode, flow.hosts);
            let hosts = self.hosts.place(mode, flow.hosts, hashes);
            self.hosts.gain(mode, hosts);
            self.flows[index.at()].hosts = hosts;
        }
        self.tags[index.at()] = hashes.flow;
        self.place_idle(mode, index, hashes);
        index
    }

    /// Finds the hosts of a flow that is not counted among any host's bulk flows. A table entry
    /// without bulk flows is up for grabs, so that it may have changed hands meanwhile.
    #[inline]
    fn place_idle(&mut self, mode: FlowMode, index: FlowIndex, hashes: &FlowHashes) {
        let flow = &mut self.flows[index.at()];
        if flow.set != Set::Bulk {
            flow.hosts = self.hosts.place(mode, flow.hosts, hashes);
        }
    }

    fn find_way(&mut self, hash: u32, now: Nanos) -> FlowIndex {
        let direct = FlowIndex::new(hash);
        let mut places = ways(hash).map(FlowIndex::new);
        if let Some(own) = places.find(|way| self.tags[way.at()] == hash) {
            let indirect = u32::from(own != direct);
            self.counters.way_hits = self.counters.way_hits.wrapping_add(indirect);
            return own;
        }
        let mut places = ways(hash).map(FlowIndex::new);
        if let Some(free) = places.find(|way| self.is_free(*way, now)) {
            self.counters.way_misses = self.counters.way_misses.wrapping_add(1);
            return free;
        }
        self.counters.way_collisions = self.counters.way_collisions.wrapping_add(1);
        direct
    }

    fn is_free(&self, index: FlowIndex, now: Nanos) -> bool {
        let flow = &self.flows[index.at()];
        match flow.set {
            Set::None => true,
            Set::Decaying => flow.cobalt.has_decayed(&self.params.cobalt, now),
            _ => false,
        }
    }

    /// Notes the length of an arrival, which may be more than one packet.
    #[inline]
    pub fn arrived(&mut self, len: u32) {
        self.counters.max_len = self.counters.max_len.max(len);
    }

    /// Appends `packet` to a flow's queue.
    #[inline]
    pub fn push(&mut self, index: FlowIndex, packet: Q::Packet) {
        let len = packet.len();
        self.counters.packets = self.counters.packets.wrapping_add(1);
        self.counters.bytes = self.counters.bytes.wrapping_add(u64::from(len));
        self.backlog = self.backlog.wrapping_add(len);
        self.backlogs.grow(index, len);
        self.flows[index.at()].queue.push(packet);
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
        let index = self.turn(mode, random)?;
        let Some(mut packet) = self.pop(index) else {
            self.retire(mode, index, now);
            return Some((index, Served::Empty));
        };
        let bulk_flows = if bulk_counts {
            u32::from(self.census.bulk)
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
                flow.dropped = flow.dropped.wrapping_add(1);
                self.counters.dropped = self.counters.dropped.wrapping_add(1);
                return Some((index, Served::Dropped(packet, reason)));
            }
        }
        let marked = u32::from(verdict == Verdict::Marked);
        self.counters.ecn_marked = self.counters.ecn_marked.wrapping_add(marked);
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

    /// Charges `len` bytes to a flow's and the tin's turn.
    #[inline]
    pub fn charge(&mut self, index: FlowIndex, len: u32) {
        let deficit = &mut self.flows[index.at()].deficit;
        *deficit = deficit.saturating_sub_unsigned(len);
        self.deficit = self.deficit.saturating_sub_unsigned(len);
    }

    /// Charges `len` bytes to the tin's threshold.
    #[inline]
    pub fn charge_clock(&mut self, now: Nanos, len: u32) {
        let TinParams { pace, credit, .. } = self.params;
        self.clock.charge(now, credit, pace.duration(len));
    }

    /// Notes that a packet left without an overflow.
    #[inline]
    pub fn relax(&mut self) {
        self.backlogs.relax();
    }

    /// The longest queue and its bytes.
    pub fn longest(&mut self) -> Option<(u32, FlowIndex)> {
        if self.backlog == 0 {
            return None;
        }
        let index = self.backlogs.longest();
        Some((self.backlogs.of(index), index))
    }

    /// Drops the head of an overflowing queue.
    pub fn drop_head(&mut self, index: FlowIndex, now: Nanos) -> Option<Q::Packet> {
        let packet = self.pop(index)?;
        let flow = &mut self.flows[index.at()];
        flow.dropped = flow.dropped.wrapping_add(1);
        self.counters.dropped = self.counters.dropped.wrapping_add(1);
        let change = flow.cobalt.overflowed(&self.params.cobalt, now);
        self.note(change);
        Some(packet)
    }

    /// Takes packets out of the tin, whatever their turn, and says whose they are.
    pub fn evict(&mut self) -> Option<(FlowHashes, Q::Packet)> {
        if self.backlog == 0 {
            return None;
        }
        let index = self.backlogs.longest();
        let packet = self.pop(index)?;
        let (src_host, dst_host) = self.hosts.tags(self.flows[index.at()].hosts);
        let hashes = FlowHashes {
            flow: self.tags[index.at()],
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

    /// The flow whose turn it is: DRR++.
    #[inline]
    fn turn(&mut self, mode: FlowMode, random: &mut Random) -> Option<FlowIndex> {
        loop {
            let index = self.sparse.first().or(self.bulk.first())?;
            let flow = &self.flows[index.at()];
            if flow.deficit > 0 {
                return Some(index);
            }
            match (flow.set, flow.queue.is_empty()) {
                (Set::Sparse, true) => self.set(mode, index, Set::SparseWait),
                (Set::Sparse, false) => self.set(mode, index, Set::Bulk),
                _ => {}
            }
            let quantum = self.quantum(mode, index, random);
            let deficit = &mut self.flows[index.at()].deficit;
            *deficit = deficit.saturating_add(quantum);
            self.leave_rotation();
            self.bulk.push(&mut self.flows, index);
        }
    }

    /// Takes the flow whose turn it is out of its rotation.
    #[inline]
    fn leave_rotation(&mut self) {
        if self.sparse.pop(&mut self.flows).is_none() {
            self.bulk.pop(&mut self.flows);
        }
    }

    /// Takes the flow whose turn it is, and which has run empty, out of the rotations.
    fn retire(&mut self, mode: FlowMode, index: FlowIndex, now: Nanos) {
        let flow = &mut self.flows[index.at()];
        let change = flow.cobalt.ran_empty(&self.params.cobalt, now);
        let to = if flow.cobalt.is_at_rest(now) {
            Set::None
        } else {
            Set::Decaying
        };
        self.note(change);
        self.leave_rotation();
        self.set(mode, index, to);
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
        self.backlog = self.backlog.saturating_sub(len);
        self.backlogs.shrink(index, len);
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
