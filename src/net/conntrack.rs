// SPDX-License-Identifier: GPL-2.0

//! Connection tracking: who is behind an address translator.
//!
//! C header: [`include/net/netfilter/nf_conntrack.h`](srctree/include/net/netfilter/nf_conntrack.h)

use super::{bindings, skb::Skb};

/// Whether the kernel has connection tracking at all.
pub(crate) const IS_AVAILABLE: bool = bindings::HAS_NF_CONNTRACK;

/// The ends of an IPv4 connection as seen by the network behind the translator, in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Source and destination address.
    pub(crate) addresses: (u32, u32),
    /// Source and destination port.
    pub(crate) ports: (u16, u16),
}

/// The ends of the connection that an IPv4 packet belongs to, if it is tracked.
pub(crate) fn untranslated(packet: &Skb) -> Option<Ends> {
    let (mut src, mut dst, mut sport, mut dport) = (0, 0, 0, 0);
    // SAFETY: The packet is valid, and so are the numbers.
    let is_tracked = unsafe {
        bindings::skb_untranslated(packet.as_ptr(), &mut src, &mut dst, &mut sport, &mut dport)
    };
    is_tracked.then(|| Ends {
        addresses: (u32::from_be(src), u32::from_be(dst)),
        ports: (u16::from_be(sport), u16::from_be(dport)),
    })
}
