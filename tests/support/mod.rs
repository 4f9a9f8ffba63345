// SPDX-License-Identifier: GPL-2.0

//! Packets and boxes for the algorithm on a desk.

#![allow(dead_code)]

use cake::cake::{
    diffserv::Preset,
    hash::FlowHashes,
    index::{TinIndex, MAX_TINS},
    packet::{DropReason, Packet, PacketQueue, Segments, Tag},
    scheduler::{Arrival, Decision, Enqueued, Scheduler, Tins},
    tin::Tin,
    Config, Nanos,
};
use pinned_init::Init;
use std::{collections::VecDeque, mem::MaybeUninit};

/// A packet that knows who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestPacket {
    pub len: u32,
    pub flow: u32,
    pub number: u64,
    pub ecn_capable: bool,
    pub marked: bool,
    pub segments: Option<Segments>,
    /// From the network header on.
    pub headers: Vec<u8>,
    pub tag: Tag,
}

impl TestPacket {
    pub fn new(flow: u32, number: u64, len: u32) -> Self {
        Self {
            len,
            flow,
            number,
            ecn_capable: false,
            marked: false,
            segments: None,
            headers: Vec::new(),
            tag: Tag::default(),
        }
    }
}

impl Packet for TestPacket {
    fn len(&self) -> u32 {
        self.len
    }

    fn network_offset(&self) -> u32 {
        14
    }

    fn truesize(&self) -> u32 {
        self.len + 256
    }

    fn segments(&self) -> Option<Segments> {
        self.segments
    }

    fn headers<'a, const N: usize>(&'a self, _buffer: &'a mut [u8; N]) -> &'a [u8] {
        &self.headers[..N.min(self.headers.len())]
    }

    fn tag(&self) -> Tag {
        self.tag
    }

    fn set_tag(&mut self, tag: Tag) {
        self.tag = tag;
    }

    fn mark_congestion(&mut self) -> bool {
        self.marked |= self.ecn_capable;
        self.ecn_capable
    }
}

/// A queue of [`TestPacket`]s.
pub struct TestQueue(VecDeque<TestPacket>);

impl PacketQueue for TestQueue {
    type Packet = TestPacket;

    fn new() -> Self {
        Self(VecDeque::new())
    }

    fn push(&mut self, packet: TestPacket) {
        self.0.push_back(packet);
    }

    fn pop(&mut self) -> Option<TestPacket> {
        self.0.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = &TestPacket> {
        self.0.iter()
    }

    fn last(&self) -> Option<&TestPacket> {
        self.0.back()
    }

    fn remove(&mut self, position: usize) -> Option<TestPacket> {
        self.0.remove(position)
    }
}

pub type TestTin = Tin<TestQueue>;

/// A value made in place, as the kernel makes it.
pub fn in_place<T>(init: impl Init<T>) -> Box<T> {
    let mut memory: Box<MaybeUninit<T>> = Box::new_uninit();
    // SAFETY: The initializer writes the whole of the memory that it is given and cannot fail; the
    // memory is a `T` from then on.
    unsafe {
        let Ok(()) = init.__init(memory.as_mut_ptr());
        memory.assume_init()
    }
}

pub fn boxed_tin() -> Box<TestTin> {
    in_place(TestTin::init())
}

/// Boxes for the tins of `preset`.
pub fn tins(preset: Preset) -> Tins<Box<TestTin>> {
    let mut tins = [const { None }; MAX_TINS];
    for tin in preset.tins() {
        tins[tin.at()] = Some(boxed_tin());
    }
    tins
}

/// A link with CAKE in front of it, driven by hand.
pub struct Link {
    pub scheduler: Scheduler<TestQueue, Box<TestTin>>,
    pub now: Nanos,
    pub dropped: Vec<(TestPacket, DropReason)>,
}

pub const MTU: u32 = 1514;

impl Link {
    pub fn new(config: Config) -> Self {
        Self {
            scheduler: Scheduler::new(config, MTU, tins(config.preset), 1),
            // A clock at 0 is as special as none that a kernel ever shows.
            now: Nanos(1_000_000_000),
            dropped: Vec::new(),
        }
    }

    pub fn enqueue(&mut self, tin: TinIndex, hashes: FlowHashes, packet: TestPacket) -> Enqueued {
        let arrival = Arrival {
            now: self.now,
            tin,
            hashes,
            len: packet.len,
            is_split: false,
        };
        let dropped = &mut self.dropped;
        match self.scheduler.enter(&arrival, std::iter::once(packet)) {
            None => Enqueued::Queued,
            Some(entered) => self
                .scheduler
                .settle(&arrival, entered, &mut |packet, reason| {
                    dropped.push((packet, reason))
                }),
        }
    }

    /// Queues a packet of a flow between hosts that nobody else uses.
    pub fn send(&mut self, tin: TinIndex, packet: TestPacket) -> Enqueued {
        let hash = packet.flow.wrapping_mul(0x9e37_79b1);
        let hashes = FlowHashes {
            flow: hash,
            src_host: hash,
            dst_host: !hash,
        };
        self.enqueue(tin, hashes, packet)
    }

    pub fn dequeue(&mut self) -> Decision<TestPacket> {
        let dropped = &mut self.dropped;
        self.scheduler.dequeue(self.now, &mut |packet, reason| {
            dropped.push((packet, reason))
        })
    }

    /// The next packet, after waiting for the shaper if need be.
    pub fn next(&mut self) -> Option<TestPacket> {
        loop {
            match self.dequeue() {
                Decision::Send(packet) => return Some(packet),
                Decision::Wait(until) => {
                    assert!(until > self.now, "the shaper waits for the past");
                    self.now = until;
                }
                Decision::Empty => return None,
            }
        }
    }

    /// Bytes in the queue, as the tins count them.
    pub fn backlog(&mut self) -> u32 {
        let tins = self.scheduler.config().preset.tin_count() as u32;
        (0..tins)
            .filter_map(|display| self.scheduler.tin_stats(display, self.now))
            .map(|tin| tin.backlog_bytes)
            .sum()
    }

    /// Changes the configuration as the kernel glue does.
    pub fn reconfigure(&mut self, config: Config) {
        let mut fresh = [const { None }; MAX_TINS];
        for tin in config.preset.tins() {
            if self.scheduler.lacks(config.preset, tin) {
                fresh[tin.at()] = Some(boxed_tin());
            }
        }
        self.scheduler.reconfigure(config, MTU, self.now, fresh);
    }
}
