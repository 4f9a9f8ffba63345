// SPDX-License-Identifier: GPL-2.0

//! What the algorithm asks of packets and of queues of packets.
//!
//! The module implements these traits for `sk_buff`, tests for a plain struct.

use super::units::Nanos;

/// What CAKE notes on a packet while it is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// When the packet arrived.
    pub enqueued: Nanos,
    /// Bytes that the packet occupies on the link, framing included.
    pub adjusted_len: u32,
}

/// The segments of a packet that is sent whole but leaves the device in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// How many segments, at least 2.
    pub count: u32,
    /// Bytes of each segment but the last, headers included.
    pub len: u32,
    /// Bytes of the last segment, headers included.
    pub last_len: u32,
}

/// A packet that is owned by whoever holds it.
// No packet is empty.
#[allow(clippy::len_without_is_empty)]
pub trait Packet {
    /// Length in bytes as accounted by the qdisc layer.
    fn len(&self) -> u32;

    /// Bytes from the start of the packet to its network header.
    fn network_offset(&self) -> u32;

    /// Memory in bytes that the packet holds.
    fn truesize(&self) -> u32;

    /// The segments of a GSO packet, [`None`] for a plain packet.
    fn segments(&self) -> Option<Segments>;

    /// Up to `N` bytes from the network header on; `buffer` is used if they do not lie in one piece.
    fn headers<'a, const N: usize>(&'a self, buffer: &'a mut [u8; N]) -> &'a [u8];

    /// What was noted by [`Packet::set_tag`].
    fn tag(&self) -> Tag;

    /// Notes `tag` on the packet.
    fn set_tag(&mut self, tag: Tag);

    /// Sets Congestion Experienced (RFC 3168) and returns true, or returns false and leaves the
    /// packet untouched if its flow does not speak ECN.
    fn mark_congestion(&mut self) -> bool;
}

/// A first-in-first-out queue that owns its packets.
pub trait PacketQueue {
    /// The packets in the queue.
    type Packet: Packet;

    /// An empty queue.
    fn new() -> Self;

    /// Appends `packet`.
    fn push(&mut self, packet: Self::Packet);

    /// Removes the oldest packet.
    fn pop(&mut self) -> Option<Self::Packet>;

    /// Whether there is no packet.
    fn is_empty(&self) -> bool;

    /// The packets from the oldest to the newest.
    fn iter(&self) -> impl Iterator<Item = &Self::Packet>;

    /// The newest packet.
    fn last(&self) -> Option<&Self::Packet>;

    /// Removes the packet at `position`, counted from the oldest.
    fn remove(&mut self, position: usize) -> Option<Self::Packet>;
}

/// Why the algorithm gave up a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The memory limit was exceeded and this packet headed the longest queue.
    Overlimit,
    /// CoDel: the queue stood for too long.
    Congested,
    /// BLUE: the flow did not respond to earlier signals.
    FloodProtection,
    /// A later acknowledgement says the same and more.
    RedundantAck,
}
