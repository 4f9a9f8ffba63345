// SPDX-License-Identifier: GPL-2.0

//! Generic segmentation offload: packets that the device is to cut into segments.
//!
//! C header: [`include/net/gso.h`](srctree/include/net/gso.h)

use super::{
    bindings,
    skb::{next, Skb},
    skb_queue::SkbQueue, //
};
use core::ptr::{addr_of_mut, null_mut, NonNull};
use kernel::error::from_err_ptr;

/// The segments of a packet.
pub(crate) struct Segments {
    /// The segments in order.
    pub(crate) packets: SkbQueue,
    /// How many there are.
    pub(crate) count: u32,
    /// Bytes of all of them, each with its headers.
    pub(crate) bytes: u32,
}

/// Cuts `packet` into the segments that the device would make of it, or returns it if that fails.
pub(crate) fn segment(packet: Skb) -> Result<Segments, Skb> {
    let skb = packet.as_ptr();
    // SAFETY: The packet is valid and ours.
    let list = unsafe {
        let features = bindings::netif_skb_features(skb);
        bindings::__skb_gso_segment(skb, features & !bindings::NETIF_F_GSO_MASK, true)
    };
    let Ok(Some(first)) = from_err_ptr(list).map(NonNull::new) else {
        return Err(packet);
    };
    let mut segments = Segments {
        packets: SkbQueue::new(),
        count: 0,
        bytes: 0,
    };
    let mut segment = Some(first);
    while let Some(skb) = segment {
        let raw = skb.as_ptr();
        // SAFETY: `raw` heads a list of new packets that are ours; each is unlinked before it is
        // taken over, with the control block of a packet in a qdisc's care.
        let packet = unsafe {
            let link = next(raw);
            segment = NonNull::new(*link);
            *link = null_mut();
            let control_block = addr_of_mut!((*raw).cb).cast::<bindings::qdisc_skb_cb>();
            (*control_block).pkt_len = (*raw).len;
            (*control_block).pkt_segs = 1;
            Skb::from_raw(skb)
        };
        segments.count = segments.count.wrapping_add(1);
        segments.bytes = segments.bytes.wrapping_add(packet.pkt_len());
        segments.packets.push(packet);
    }
    packet.consume();
    Ok(segments)
}
