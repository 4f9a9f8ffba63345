// SPDX-License-Identifier: GPL-2.0

//! Tags: which flow has which queue, in a set-associative table.

use super::{
    hash::{ways, WAYS},
    index::{FlowIndex, QUEUES},
    units::Nanos,
};
use pin_init::{init, init_array_from_fn, Init};

const SETS: usize = QUEUES / WAYS as usize;

/// Whose each queue is. The tags of a set share a cache line.
#[repr(align(64))]
pub struct Tags {
    tags: [[u32; WAYS as usize]; SETS],
    /// Before this time no queue of the set is free, so that nobody need look at them.
    taken_until: [Nanos; SETS],
}

impl Tags {
    /// Tags of nobody, made in place.
    pub fn init() -> impl Init<Self> {
        init!(Self {
            tags <- init_array_from_fn(|_| [0; WAYS as usize]),
            taken_until <- init_array_from_fn(|_| Nanos(0)),
        })
    }

    /// The hash of the flow that has the queue.
    #[inline]
    pub fn of(&self, flow: FlowIndex) -> u32 {
        self.tags[set(flow)][flow.at() % WAYS as usize]
    }

    /// Gives the queue to the flow that hashes to `hash`.
    #[inline]
    pub fn give(&mut self, flow: FlowIndex, hash: u32) {
        self.tags[set(flow)][flow.at() % WAYS as usize] = hash;
    }

    /// The queue of the flow that hashes to `hash`, if it has one. A hash is in its set once.
    #[inline]
    pub fn find(&self, hash: u32) -> Option<FlowIndex> {
        let direct = FlowIndex::new(hash);
        if self.of(direct) == hash {
            return Some(direct);
        }
        let way = self.tags[set(direct)].iter().position(|tag| *tag == hash)?;
        Some(FlowIndex::new((set(direct) * WAYS as usize + way) as u32))
    }

    /// The first queue of the set that `hash` names, its own first, that is free at `now`.
    ///
    /// `free_at` tells the earliest time at which a queue may be free if nothing happens to it,
    /// and what is not after `now` means that it is.
    #[inline]
    pub fn find_free(
        &mut self,
        hash: u32,
        now: Nanos,
        free_at: impl Fn(FlowIndex) -> Nanos,
    ) -> Option<FlowIndex> {
        let until = &mut self.taken_until[set(FlowIndex::new(hash))];
        if now < *until {
            return None;
        }
        let mut earliest = Nanos(u64::MAX);
        for flow in ways(hash).map(FlowIndex::new) {
            let free = free_at(flow);
            if free <= now {
                return Some(flow);
            }
            earliest = earliest.min(free);
        }
        *until = earliest;
        None
    }

    /// Notes that something happened to a queue, and that it may be free from `time` on.
    #[inline]
    pub fn may_be_free(&mut self, flow: FlowIndex, time: Nanos) {
        let until = &mut self.taken_until[set(flow)];
        *until = time.min(*until);
    }
}

#[inline]
fn set(flow: FlowIndex) -> usize {
    flow.at() / WAYS as usize
}
