// SPDX-License-Identifier: GPL-2.0

//! Overflow: which of a tin's queues is the longest.
//!
//! When memory runs out the longest queue loses its head: it is the one that hurts its neighbours
//! most, and a drop at the head is noticed soonest. A binary heap finds it. The heap is built when
//! the first overflow happens and maintained until overflows have been absent for a while, so that
//! a healthy link does not pay for it.

use super::index::{FlowIndex, QUEUES};
use pin_init::{init, init_array_from_fn, Init};

/// Dequeued packets without an overflow after which the heap is left alone.
const PATIENCE: u16 = u16::MAX;

/// The bytes queued in each flow, and a heap over them that is valid while overflows happen.
pub struct Backlogs {
    bytes: [u32; QUEUES],
    /// Flows, each with at least the backlog of its two children; valid while `patience` is not 0.
    heap: [FlowIndex; QUEUES],
    /// Where each flow is in `heap`.
    position: [FlowIndex; QUEUES],
    patience: u16,
}

impl Backlogs {
    /// Empty queues, made in place.
    pub fn init() -> impl Init<Self> {
        init!(Self {
            bytes <- init_array_from_fn(|_| 0),
            heap <- init_array_from_fn(|i| FlowIndex::new(i as u32)),
            position <- init_array_from_fn(|i| FlowIndex::new(i as u32)),
            patience: 0,
        })
    }

    /// Bytes queued in `flow`.
    #[inline]
    pub fn of(&self, flow: FlowIndex) -> u32 {
        self.bytes[flow.at()]
    }

    /// Notes that `flow` grew by `len` bytes.
    #[inline]
    pub fn grow(&mut self, flow: FlowIndex, len: u32) {
        let bytes = &mut self.bytes[flow.at()];
        *bytes = bytes.wrapping_add(len);
        if self.patience != 0 {
            self.rise(self.position[flow.at()].at());
        }
    }

    /// Notes that `flow` shrank by `len` bytes.
    #[inline]
    pub fn shrink(&mut self, flow: FlowIndex, len: u32) {
        let bytes = &mut self.bytes[flow.at()];
        *bytes = bytes.saturating_sub(len);
        if self.patience != 0 {
            self.sink(self.position[flow.at()].at());
        }
    }

    /// Notes that a packet left without an overflow.
    #[inline]
    pub fn relax(&mut self) {
        self.patience = self.patience.saturating_sub(1);
    }

    /// The flow with the most bytes.
    pub fn longest(&mut self) -> FlowIndex {
        if self.patience == 0 {
            for parent in (0..QUEUES / 2).rev() {
                self.sink(parent);
            }
        }
        self.patience = PATIENCE;
        self.heap[0]
    }

    fn bytes_at(&self, place: usize) -> u32 {
        self.of(self.heap[place & (QUEUES - 1)])
    }

    fn rise(&mut self, mut place: usize) {
        while let Some(above) = place.checked_sub(1) {
            let parent = above / 2;
            if self.bytes_at(place) <= self.bytes_at(parent) {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = place.wrapping_mul(2).wrapping_add(1);
            let right = left.wrapping_add(1);
            if left >= QUEUES {
                break;
            }
            let child = if right < QUEUES && self.bytes_at(right) > self.bytes_at(left) {
                right
            } else {
                left
            };
            if self.bytes_at(child) <= self.bytes_at(place) {
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
