// SPDX-License-Identifier: GPL-2.0

//! Flows: queues of packets, and the rotations in which they take turns.
//!
//! DRR++ (MacGregor and Shi, "Deficits for Bursty Latency-critical Flows", 2000) as used by
//! RFC 8290: a flow that has just become active is *sparse* and goes first. Once it has sent a
//! quantum it joins the *bulk* rotation, where each flow sends a quantum a round. A flow that runs
//! empty is *decaying* until its COBALT state has come to rest.

use super::{
    cobalt::{CobaltParams, CobaltState},
    host::HostPair,
    index::{FlowIndex, QUEUES},
    packet::PacketQueue,
    units::Nanos,
};

/// Where a flow stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Set {
    /// Nowhere: the queue is free.
    #[default]
    None = 0,
    /// In the sparse rotation.
    Sparse = 1,
    /// In the bulk rotation.
    Bulk = 2,
    /// In no rotation; COBALT still remembers it.
    Decaying = 3,
    /// In the bulk rotation to pay off its deficit, but counted as sparse: it was empty when it
    /// left the sparse rotation.
    SparseWait = Self::KINDS + Self::Sparse as u8,
}

impl Set {
    const KINDS: u8 = 4;
}

/// How many flows stand where.
#[derive(Clone, Copy, Debug)]
pub struct Census([u16; Set::KINDS as usize]);

/// All flows are nowhere.
impl Default for Census {
    fn default() -> Self {
        Self([QUEUES as u16, 0, 0, 0])
    }
}

impl Census {
    /// Flows in `set`; those that wait are sparse.
    #[inline]
    pub fn of(&self, set: Set) -> u16 {
        self.0[(set as u8 % Set::KINDS) as usize]
    }

    /// Notes that a flow moved.
    #[inline]
    pub fn moved(&mut self, from: Set, to: Set) {
        let [from, to] = [from, to].map(|set| (set as u8 % Set::KINDS) as usize);
        self.0[from] = self.0[from].wrapping_sub(1);
        self.0[to] = self.0[to].wrapping_add(1);
    }
}

/// The next flow in a rotation: an index, or [`Link::END`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link(u16);

impl Link {
    const END: Self = Self(u16::MAX);

    fn to(flow: FlowIndex) -> Self {
        Self(flow.at() as u16)
    }

    #[inline]
    fn get(self) -> Option<FlowIndex> {
        (self != Self::END).then_some(FlowIndex::new(u32::from(self.0)))
    }
}

/// A queue, what COBALT and DRR++ know of it, and its place in a rotation: one cache line.
#[repr(align(64))]
pub struct Flow<Q> {
    /// The packets.
    pub queue: Q,
    /// The state of the AQM.
    pub cobalt: CobaltState,
    /// Bytes that the flow may still send in this round; in debt if negative.
    pub deficit: i32,
    /// Bytes queued.
    pub backlog: u32,
    /// The hosts that the flow belongs to.
    pub hosts: HostPair,
    next: Link,
    /// Where the flow stands. Changed by [`crate::cake::tin::Tin`] alone, which counts.
    pub(super) set: Set,
}

impl<Q: PacketQueue> Flow<Q> {
    /// A flow that was never used.
    pub fn new() -> Self {
        Self {
            queue: Q::new(),
            cobalt: CobaltState::new(),
            deficit: 0,
            backlog: 0,
            hosts: HostPair::default(),
            next: Link::END,
            set: Set::None,
        }
    }
}

impl<Q> Flow<Q> {
    /// The earliest time at which the queue may be free if nothing happens to it; what is not after
    /// `now` means that it is free now.
    #[inline]
    pub fn free_at(&self, params: &CobaltParams, now: Nanos) -> Nanos {
        match self.set {
            Set::None => Nanos(0),
            Set::Decaying => self.cobalt.rest_time(params, now),
            Set::Sparse | Set::SparseWait | Set::Bulk => Nanos(u64::MAX),
        }
    }
}

impl<Q: PacketQueue> Default for Flow<Q> {
    fn default() -> Self {
        Self::new()
    }
}

/// The flows of one tin.
pub type Flows<Q> = [Flow<Q>; QUEUES];

/// A rotation: flows in the order in which they get their turns, linked through [`Flow`].
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    head: Link,
    tail: Link,
}

impl Rotation {
    /// A rotation without flows.
    pub const fn new() -> Self {
        Self {
            head: Link::END,
            tail: Link::END,
        }
    }

    /// The flow whose turn it is.
    #[inline]
    pub fn first(&self) -> Option<FlowIndex> {
        self.head.get()
    }

    /// Puts the flow whose turn it is behind all others.
    #[inline]
    pub fn rotate<Q>(&mut self, flows: &mut Flows<Q>) {
        if self.head != self.tail {
            if let Some(first) = self.pop(flows) {
                self.push(flows, first);
            }
        }
    }

    /// Adds `flow`, which must be in no rotation, behind all others.
    #[inline]
    pub fn push<Q>(&mut self, flows: &mut Flows<Q>, flow: FlowIndex) {
        flows[flow.at()].next = Link::END;
        match self.tail.get() {
            Some(last) => flows[last.at()].next = Link::to(flow),
            None => self.head = Link::to(flow),
        }
        self.tail = Link::to(flow);
    }

    /// Takes out the flow whose turn it is.
    #[inline]
    pub fn pop<Q>(&mut self, flows: &mut Flows<Q>) -> Option<FlowIndex> {
        let first = self.head.get()?;
        self.head = flows[first.at()].next;
        if self.head == Link::END {
            self.tail = Link::END;
        }
        Some(first)
    }
}

impl Default for Rotation {
    fn default() -> Self {
        Self::new()
    }
}
