// SPDX-License-Identifier: GPL-2.0

//! Overflow: which of a tin's queues is the longest.
//!
//! When memory runs out the longest queue loses its head: it is the one that hurts its neighbours
//! most, and a drop at the head is noticed soonest. A binary heap finds it. The heap is built when
//! the first overflow happens and maintained until overflows have been absent for a while, so that
//! a healthy link does not pay for it.

use super::index::{FlowIndex, QUEUES};
use pin_init::{init, init_array_from_fn, Init};

/// Packets that leave without an overflow after which the heap is left alone.
const PATIENCE: u16 = u16::MAX;

/// A heap over the flows' backlogs that is valid while overflows happen.
///
/// It asks for the bytes that are queued in a flow where it needs them.
pub struct Backlogs {
    /// Flows, each with at least the backlog of its two children; valid while `patience` is not 0.
    heap: [FlowIndex; QUEUES],
    /// Where each flow is in `heap`.
    position: [FlowIndex; QUEUES],
    patience: u16,
}

impl Backlogs {
    /// A heap that is not in use, made in place.
    pub fn init() -> impl Init<Self> {
        init!(Self {
            heap <- init_array_from_fn(|i| FlowIndex::new(i as u32)),
            position <- init_array_from_fn(|i| FlowIndex::new(i as u32)),
            patience: 0,
        })
    }

    /// Notes that `flow` grew.
    #[inline]
    pub fn grew(&mut self, flow: FlowIndex, bytes: impl Fn(FlowIndex) -> u32) {
        if self.patience != 0 {
            self.rise(self.position[flow.at()].at(), &bytes);
        }
    }

    /// Notes that a packet left `flow`.
    #[inline]
    pub fn shrank(&mut self, flow: FlowIndex, bytes: impl Fn(FlowIndex) -> u32) {
        if self.patience != 0 {
            self.patience = self.patience.wrapping_sub(1);
            self.sink(self.position[flow.at()].at(), &bytes);
        }
    }

    /// The flow with the most bytes.
    pub fn longest(&mut self, bytes: impl Fn(FlowIndex) -> u32) -> FlowIndex {
        if self.patience == 0 {
            for parent in (0..QUEUES / 2).rev() {
                self.sink(parent, &bytes);
            }
        }
        self.patience = PATIENCE;
        self.heap[0]
    }

    fn at(&self, place: usize) -> FlowIndex {
        self.heap[place & (QUEUES - 1)]
    }

    #[cold]
    fn rise(&mut self, mut place: usize, bytes: &impl Fn(FlowIndex) -> u32) {
        while let Some(above) = place.checked_sub(1) {
            let parent = above / 2;
            if bytes(self.at(place)) <= bytes(self.at(parent)) {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    #[cold]
    fn sink(&mut self, mut place: usize, bytes: &impl Fn(FlowIndex) -> u32) {
        let bytes_at = |heap: &Self, place| bytes(heap.at(place));
        loop {
            let left = place.wrapping_mul(2).wrapping_add(1);
            let right = left.wrapping_add(1);
            if left >= QUEUES {
                break;
            }
            let child = if right < QUEUES && bytes_at(self, right) > bytes_at(self, left) {
                right
            } else {
                left
            };
            if bytes_at(self, child) <= bytes_at(self, place) {
                break;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (a, b) = (a & (QUEUES - 1), b & (QUEUES - 1));
        let (flow_a, flow_b) = (self.heap[a], self.heap[b]);
        self.heap[a] = flow_b;
        self.heap[b] = flow_a;
        self.position[flow_a.at()] = FlowIndex::new(b as u32);
        self.position[flow_b.at()] = FlowIndex::new(a as u32);
    }
}
