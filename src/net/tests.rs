// SPDX-License-Identifier: GPL-2.0

//! KUnit tests, and what others need to write some.

use super::{
    bindings,
    netlink::{Attribute, ExtAck, Policy},
    skb::Skb,
    skb_queue::SkbQueue, //
};
use core::ptr::{null_mut, NonNull};
use kernel::prelude::*;

/// A packet made of an Ethernet frame, [`None`] without memory.
pub(crate) fn packet(frame: &[u8]) -> Option<Skb> {
    // SAFETY: The frame is as long as is said.
    let skb = unsafe { bindings::skb_of_frame(frame.as_ptr().cast(), frame.len() as c_uint) };
    // SAFETY: The packet is new, and its control block is set up.
    NonNull::new(skb).map(|skb| unsafe { Skb::from_raw(skb) })
}

/// An [`ExtAck`] that keeps nothing.
pub(crate) fn no_extack() -> ExtAck<'static> {
    // SAFETY: Null is allowed.
    unsafe { ExtAck::from_raw(null_mut()) }
}

/// A frame with an EtherType, and its payload.
pub(crate) fn frame<const N: usize>(protocol: u16, payload: &[u8]) -> [u8; N] {
    let mut frame = [0; N];
    for (to, from) in frame.iter_mut().skip(12).zip(protocol.to_be_bytes()) {
        *to = from;
    }
    for (to, from) in frame.iter_mut().skip(14).zip(payload) {
        *to = *from;
    }
    frame
}

#[kunit_tests(cake_net)]
mod suite {
    use super::*;

    static POLICY: Policy<4> = Policy::numbers(&[(3, "A_U64")], &[(1, "A_U32")]);

    #[test]
    fn attributes_are_read_as_far_as_they_are_whole() {
        // One of 32 bits, one that is cut off.
        let bytes = [16u8, 0, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0, 8, 0, 2, 0, 1];
        let outer = Attribute::first(&bytes);
        assert!(outer.is_some());
        let Some((outer, rest)) = outer else { return };
        assert_eq!(rest.len(), 1);
        let mut children = outer.children();
        let first = children.next().flatten();
        assert_eq!(first.and_then(|child| child.u32()), Some(7));
        assert!(first.is_some_and(|child| child.kind() == 1 && child.u64().is_none()));
        assert!(matches!(children.next(), Some(None)));
        assert!(children.next().is_none());
        let found = outer.nested(&POLICY, &mut no_extack());
        assert!(found.is_ok_and(|found| found.get(1).is_some() && found.get(3).is_none()));
    }

    #[test]
    fn numbers_that_are_too_short_are_refused() {
        let bytes = [12u8, 0, 0, 0, 8, 0, 3, 0, 7, 0, 0, 0];
        let Some((outer, _)) = Attribute::first(&bytes) else {
            return assert!(false);
        };
        let error = outer.nested(&POLICY, &mut no_extack()).err();
        assert_eq!(error, Some(ERANGE));
        assert!(Attribute::first(&[3, 0, 0, 0]).is_none());
        assert!(Attribute::first(&[5, 0, 0, 0]).is_none());
        assert!(Attribute::first(&[4]).is_none());
    }

    #[test]
    fn queue_keeps_order_and_gives_any_packet() {
        let mut queue = SkbQueue::new();
        for number in 0..4u8 {
            let Some(mut packet) = packet(&frame::<60>(0x0800, &[])) else {
                return;
            };
            packet.set_private([u64::from(number)]);
            queue.push(packet);
        }
        fn number(packet: &Skb) -> u64 {
            let [number] = packet.private();
            number
        }
        assert_eq!(queue.remove(2).as_ref().map(number), Some(2));
        assert_eq!(SkbQueue::last(&queue).map(number), Some(3));
        assert_eq!(queue.remove(2).as_ref().map(number), Some(3));
        assert_eq!(SkbQueue::last(&queue).map(number), Some(1));
        assert!(queue.remove(2).is_none());
        assert_eq!(queue.iter().count(), 2);
        assert_eq!(queue.pop().as_ref().map(number), Some(0));
        assert_eq!(queue.remove(0).as_ref().map(number), Some(1));
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    #[test]
    fn headers_end_with_the_packet() {
        let Some(packet) = packet(&frame::<20>(0x0800, &[1, 2, 3, 4, 5, 6])) else {
            return;
        };
        assert_eq!((packet.pkt_len(), packet.network_offset()), (20, 14));
        assert_eq!(packet.network_header(&mut [0; 4]), &[1, 2, 3, 4][..]);
        assert_eq!(packet.network_header(&mut [0; 40]), &[1, 2, 3, 4, 5, 6][..]);
        assert!(packet.segment_lengths().is_none());
    }

    #[test]
    fn protocol_is_that_behind_tags() {
        let tagged = frame::<60>(0x88a8, &[0, 7, 0x81, 0, 0, 5, 0x86, 0xdd]);
        assert_eq!(
            packet(&tagged).map(|packet| packet.protocol()),
            Some(0x86dd)
        );
        let plain = frame::<60>(0x0806, &[]);
        assert_eq!(packet(&plain).map(|packet| packet.protocol()), Some(0x0806));
    }

    #[test]
    fn code_points_go_and_congestion_is_marked() {
        let header = [0x45, 0xb9, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1];
        let Some(mut packet) = packet(&frame::<60>(0x0800, &header)) else {
            return;
        };
        packet.clear_dscp(20);
        assert_eq!(packet.network_header(&mut [0; 2]), &[0x45, 0x01][..]);
        assert!(packet.set_ecn_ce());
        assert_eq!(packet.network_header(&mut [0; 2]), &[0x45, 0x03][..]);
        let Some(mut other) = super::packet(&frame::<60>(0x0800, &[0x45, 0])) else {
            return;
        };
        assert!(!other.set_ecn_ce());
    }
}
