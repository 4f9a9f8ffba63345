// SPDX-License-Identifier: GPL-2.0

//! The kernel's packets as the algorithm sees them.

use crate::{
    cake::{
        packet::{Segments, Tag},
        Nanos,
        Packet,
        PacketQueue, //
    },
    net::{
        skb::{self, Skb},
        skb_queue::SkbQueue, //
    },
};

impl Packet for Skb {
    #[inline]
    fn len(&self) -> u32 {
        self.pkt_len()
    }

    #[inline]
    fn network_offset(&self) -> u32 {
        self.network_offset()
    }

    #[inline]
    fn truesize(&self) -> u32 {
        self.truesize()
    }

    #[inline]
    fn segments(&self) -> Option<Segments> {
        self.segment_lengths().map(
            |skb::SegmentLengths {
                 count,
                 len,
                 last_len,
             }| Segments {
                count,
                len,
                last_len,
            },
        )
    }

    #[inline]
    fn headers<'a, const N: usize>(&'a self, buffer: &'a mut [u8; N]) -> &'a [u8] {
        self.network_header(buffer)
    }

    #[inline]
    fn tag(&self) -> Tag {
        let [enqueued, adjusted_len] = self.private::<[u64; 2]>();
        Tag {
            enqueued: Nanos(enqueued),
            adjusted_len: adjusted_len as u32,
        }
    }

    #[inline]
    fn set_tag(&mut self, tag: Tag) {
        self.set_private([tag.enqueued.0, u64::from(tag.adjusted_len)]);
    }

    #[inline]
    fn mark_congestion(&mut self) -> bool {
        self.set_ecn_ce()
    }
}

impl PacketQueue for SkbQueue {
    type Packet = Skb;

    #[inline]
    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn push(&mut self, packet: Skb) {
        self.push(packet);
    }

    #[inline]
    fn pop(&mut self) -> Option<Skb> {
        self.pop()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = &Skb> {
        self.iter()
    }

    fn last(&self) -> Option<&Skb> {
        self.last()
    }

    fn remove(&mut self, position: usize) -> Option<Skb> {
        self.remove(position)
    }
}
