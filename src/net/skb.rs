// SPDX-License-Identifier: GPL-2.0

//! Packets.
//!
//! C header: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)

use super::bindings;
use core::{
    mem::ManuallyDrop,
    ptr::{addr_of, addr_of_mut, NonNull},
    slice, //
};
use kernel::{
    prelude::*,
    transmute::{AsBytes, FromBytes}, //
};

/// Why a packet is given up, `enum qdisc_drop_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum DropReason {
    /// None of those below.
    Generic = bindings::qdisc_drop_reason_QDISC_DROP_GENERIC,
    /// The queue exceeded its limit.
    Overlimit = bindings::qdisc_drop_reason_QDISC_DROP_OVERLIMIT,
    /// The queue manager detected congestion.
    Congested = bindings::qdisc_drop_reason_QDISC_DROP_CONGESTED,
    /// A flow ignored the signals of congestion.
    FloodProtection = bindings::qdisc_drop_reason_QDISC_DROP_FLOOD_PROTECTION,
    /// The queue was emptied, `SKB_DROP_REASON_QUEUE_PURGE`.
    QueuePurge = bindings::skb_drop_reason_SKB_DROP_REASON_QUEUE_PURGE,
}

/// Lengths of the segments into which hardware will cut a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentLengths {
    /// How many segments, at least 2.
    pub(crate) count: u32,
    /// Bytes of each segment but the last, headers included.
    pub(crate) len: u32,
    /// Bytes of the last segment.
    pub(crate) last_len: u32,
}

/// A packet that belongs to its holder alone.
///
/// Every packet ends in one of three ways: it is sent, it is dropped for a stated reason
/// ([`Skb::drop_for`], [`super::qdisc::Dropped::push`]), or it goes into a queue. One that is
/// merely forgotten is freed as purged.
///
/// # Invariants
///
/// The pointer is to a valid `struct sk_buff` in a qdisc's care: no list has it, nobody else uses
/// its links or its control block, and the latter holds a `struct qdisc_skb_cb`.
#[repr(transparent)]
pub(crate) struct Skb(NonNull<bindings::sk_buff>);

// SAFETY: Packets may be sent and freed on any CPU.
unsafe impl Send for Skb {}

impl Skb {
    /// Takes over a packet.
    ///
    /// # Safety
    ///
    /// `skb` must be as the type's invariants say, and the caller gives it away.
    #[inline]
    pub(super) unsafe fn from_raw(skb: NonNull<bindings::sk_buff>) -> Self {
        // INVARIANT: By the safety requirements.
        Self(skb)
    }

    /// Hands the packet over to C.
    #[inline]
    pub(super) fn into_raw(self) -> NonNull<bindings::sk_buff> {
        ManuallyDrop::new(self).0
    }

    /// The pointer, for functions that only look at the packet.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut bindings::sk_buff {
        self.0.as_ptr()
    }

    /// The network namespace of the packet's device.
    #[inline]
    pub(super) fn net(&self) -> *const bindings::net {
        // SAFETY: The packet is valid by the type's invariants, and a packet on its way out has a
        // device, which is in a namespace.
        unsafe {
            let dev = (*self.as_ptr())
                .__bindgen_anon_1
                .__bindgen_anon_1
                .__bindgen_anon_1
                .dev;
            (*dev).nd_net.net
        }
    }

    #[inline]
    fn headers(&self) -> &bindings::sk_buff_headers {
        let start = self.as_ptr().cast::<u8>();
        // SAFETY: The struct group `headers` is at this place in every `struct sk_buff`.
        unsafe { &*start.add(bindings::SK_BUFF_HEADERS_OFFSET).cast() }
    }

    #[inline]
    fn control_block(&self) -> *mut bindings::qdisc_skb_cb {
        // SAFETY: The packet is valid by the type's invariants.
        unsafe { addr_of_mut!((*self.as_ptr()).cb) }.cast()
    }

    /// Bytes, as the qdisc layer counts them: link-layer header and `tc … stab` included.
    #[inline]
    pub(crate) fn pkt_len(&self) -> u32 {
        // SAFETY: The control block is the qdisc layer's by the type's invariants.
        unsafe { (*self.control_block()).pkt_len }
    }

    /// Packets on the wire: more than 1 if hardware is to cut it up.
    #[inline]
    pub(crate) fn pkt_segs(&self) -> u32 {
        // SAFETY: The control block is the qdisc layer's by the type's invariants.
        u32::from(unsafe { (*self.control_block()).pkt_segs })
    }

    /// Bytes of memory that the packet holds.
    #[inline]
    pub(crate) fn truesize(&self) -> u32 {
        // SAFETY: The packet is valid by the type's invariants.
        unsafe { (*self.as_ptr()).truesize }
    }

    /// The firewall mark.
    #[inline]
    pub(crate) fn mark(&self) -> u32 {
        let start = self.as_ptr().cast::<u8>();
        // SAFETY: The field `mark` is at this place in every `struct sk_buff`.
        unsafe {
            start
                .add(bindings::SK_BUFF_MARK_OFFSET)
                .cast::<u32>()
                .read()
        }
    }

    /// The priority that the sender or a filter set.
    #[inline]
    pub(crate) fn priority(&self) -> u32 {
        self.headers().priority
    }

    /// The hash of the packet's flow, if whoever made the packet knew one.
    #[inline]
    pub(crate) fn l4_hash(&self) -> Option<u32> {
        let headers = self.headers();
        (headers.l4_hash() != 0).then_some(headers.hash)
    }

    /// The EtherType behind any VLAN tags, in host byte order.
    #[inline]
    pub(crate) fn protocol(&self) -> u16 {
        const VLAN: [u16; 2] = [bindings::ETH_P_8021Q as u16, bindings::ETH_P_8021AD as u16];
        let protocol = u16::from_be(self.headers().protocol);
        if !VLAN.contains(&protocol) {
            return protocol;
        }
        // SAFETY: The packet is valid by the type's invariants.
        u16::from_be(unsafe { bindings::vlan_get_protocol(self.as_ptr()) })
    }

    /// Bytes from the start of the packet to the place `header` bytes into its buffer.
    #[inline]
    fn offset_of(&self, header: u16) -> u32 {
        // SAFETY: The packet is valid by the type's invariants, and headers lie in its buffer.
        let offset = unsafe {
            let start = (*self.as_ptr()).head.add(usize::from(header));
            start.offset_from((*self.as_ptr()).data)
        };
        u32::try_from(offset).unwrap_or(0)
    }

    /// Bytes from the start of the packet to its network header.
    #[inline]
    pub(crate) fn network_offset(&self) -> u32 {
        self.offset_of(self.headers().network_header)
    }

    /// Up to `N` bytes of the packet from `offset` on, without a copy where they lie in one piece.
    #[inline]
    fn bytes_at<'a, const N: usize>(&'a self, offset: u32, buffer: &'a mut [u8; N]) -> &'a [u8] {
        // SAFETY: The packet is valid by the type's invariants.
        let (data, len, data_len) = unsafe {
            (
                (*self.as_ptr()).data,
                (*self.as_ptr()).len,
                (*self.as_ptr()).data_len,
            )
        };
        let wanted = len.saturating_sub(offset).min(N as u32);
        if offset.saturating_add(wanted) <= len.saturating_sub(data_len) {
            // SAFETY: `len - data_len` bytes from `data` on are initialised and nobody writes to
            // them while the packet is borrowed.
            return unsafe { slice::from_raw_parts(data.add(offset as usize), wanted as usize) };
        }
        let to = buffer.as_mut_ptr().cast::<c_void>();
        // SAFETY: `wanted` bytes from `offset` on are within the packet, and fit the buffer.
        let error =
            unsafe { bindings::skb_copy_bits(self.as_ptr(), offset as c_int, to, wanted as c_int) };
        if error != 0 {
            return &[];
        }
        buffer.get(..wanted as usize).unwrap_or_default()
    }

    /// The `N` bytes from the network header on, if the packet has them and in one piece.
    #[inline]
    pub(crate) fn network_header_in_place<const N: usize>(&self) -> Option<&[u8; N]> {
        // SAFETY: The packet is valid by the type's invariants.
        let (head, data, len, data_len) = unsafe {
            let skb = self.as_ptr();
            ((*skb).head, (*skb).data, (*skb).len, (*skb).data_len)
        };
        let header = head.wrapping_add(usize::from(self.headers().network_header));
        let offset = header.addr().wrapping_sub(data.addr());
        let linear = len.wrapping_sub(data_len) as usize;
        // An offset before the data is a huge one.
        if offset.checked_add(N)? > linear {
            return None;
        }
        // SAFETY: `len - data_len` bytes from `data` on are initialised, these among them, and
        // nobody writes to them while the packet is borrowed.
        Some(unsafe { &*header.cast() })
    }

    /// Up to `N` bytes from the network header on; `buffer` is used if they are scattered.
    #[inline]
    pub(crate) fn network_header<'a, const N: usize>(
        &'a self,
        buffer: &'a mut [u8; N],
    ) -> &'a [u8] {
        self.bytes_at(self.network_offset(), buffer)
    }

    /// Lengths of the segments of a GSO packet, [`None`] for any other.
    #[inline]
    pub(crate) fn segment_lengths(&self) -> Option<SegmentLengths> {
        let count = self.pkt_segs();
        if count <= 1 {
            return None;
        }
        // SAFETY: Every packet's buffer ends in a `struct skb_shared_info`.
        let (gso_size, gso_type) = unsafe {
            let shared = self.shared_info();
            (u32::from((*shared).gso_size), (*shared).gso_type)
        };
        // SAFETY: The packet is valid by the type's invariants.
        let len = unsafe { (*self.as_ptr()).len };
        let carried = gso_size.saturating_mul(count.saturating_sub(1));
        Some(SegmentLengths {
            count,
            len: gso_size.saturating_add(self.headers_len(gso_type)),
            last_len: len.saturating_sub(carried),
        })
    }

    /// Bytes of the headers that each segment repeats.
    fn headers_len(&self, gso_type: u32) -> u32 {
        const TCP: u32 = (bindings::SKB_GSO_TCPV4 | bindings::SKB_GSO_TCPV6) as u32;
        const UDP_HEADER: u32 = 8;
        let headers = self.headers();
        let transport = if headers.encapsulation() != 0 {
            headers.inner_transport_header
        } else {
            headers.transport_header
        };
        let offset = self.offset_of(transport);
        let transport_len = if gso_type & TCP == 0 {
            UDP_HEADER
        } else {
            // The data offset, in words of four bytes, is the upper half of byte 12.
            match *self.bytes_at(offset, &mut [0; 13]) {
                [.., data_offset] => u32::from(data_offset >> 4).wrapping_mul(4),
                [] => 0,
            }
        };
        offset.saturating_add(transport_len)
    }

    #[inline]
    fn shared_info(&self) -> *const bindings::skb_shared_info {
        // SAFETY: The packet is valid by the type's invariants. `end` is an offset into the buffer
        // or, on 32-bit machines, a pointer.
        #[cfg(target_pointer_width = "64")]
        let end = unsafe { (*self.as_ptr()).head.add((*self.as_ptr()).end as usize) };
        #[cfg(not(target_pointer_width = "64"))]
        // SAFETY: As above.
        let end = unsafe { (*self.as_ptr()).end };
        end.cast_const().cast()
    }

    /// What the qdisc that holds the packet noted with [`Skb::set_private`].
    #[inline]
    pub(crate) fn private<T: FromBytes + Copy>(&self) -> T {
        const { assert!(Self::fits::<T>()) };
        // SAFETY: The area belongs to the qdisc that holds the packet, `T` fits in, and any bytes
        // make a `T`.
        unsafe {
            addr_of!((*self.control_block()).data)
                .cast::<T>()
                .read_unaligned()
        }
    }

    /// Notes `value` on the packet.
    #[inline]
    pub(crate) fn set_private<T: AsBytes + Copy>(&mut self, value: T) {
        const { assert!(Self::fits::<T>()) };
        // SAFETY: The area belongs to the qdisc that holds the packet, and `T` fits in.
        unsafe {
            addr_of_mut!((*self.control_block()).data)
                .cast::<T>()
                .write_unaligned(value)
        };
    }

    const fn fits<T>() -> bool {
        size_of::<T>() <= bindings::QDISC_CB_PRIV_LEN as usize
    }

    /// Sets Congestion Experienced and returns true, or returns false if the flow does not speak
    /// ECN (RFC 3168).
    #[inline]
    pub(crate) fn set_ecn_ce(&mut self) -> bool {
        // SAFETY: The packet is valid by the type's invariants.
        unsafe { bindings::INET_ECN_set_ce(self.as_ptr()) != 0 }
    }

    /// Clears the code point of an IPv4 or IPv6 packet, the ECN bits aside. Without memory to make
    /// a shared header writable the packet stays as it is.
    pub(crate) fn clear_dscp(&mut self, header_len: u32) {
        let end = self.network_offset().saturating_add(header_len);
        // SAFETY: The packet is valid by the type's invariants, and once the header is writable it
        // may be written to.
        unsafe {
            if bindings::skb_ensure_writable(self.as_ptr(), end) == 0 {
                bindings::skb_clear_dscp(self.as_ptr());
            }
        }
    }

    /// Frees the packet, which has served its purpose.
    pub(crate) fn consume(self) {
        let skb = self.into_raw();
        // SAFETY: The packet was ours and is given away.
        unsafe { bindings::consume_skb(skb.as_ptr()) };
    }

    /// Frees the packet.
    pub(crate) fn drop_for(self, reason: DropReason) {
        let skb = self.into_raw();
        // SAFETY: The packet was ours and is given away.
        unsafe { bindings::kfree_skb_reason(skb.as_ptr(), reason as u32) };
    }

    /// Puts the packet at the front of the list that starts at `*list`, with a reason for its end
    /// unless it has one.
    ///
    /// # Safety
    ///
    /// `list` must be the head of a list of dropped packets, for the caller to change.
    #[inline]
    pub(super) unsafe fn chain(
        self,
        list: *mut *mut bindings::sk_buff,
        reason: Option<DropReason>,
    ) {
        let skb = self.into_raw().as_ptr();
        // SAFETY: The packet was ours, so that its control block and its link may be written.
        unsafe {
            if let Some(reason) = reason {
                let control_block = addr_of_mut!((*skb).cb).cast::<bindings::tc_skb_cb>();
                (*control_block).drop_reason = reason as u32;
            }
            *next(skb) = *list;
            *list = skb;
        }
    }
}

impl Drop for Skb {
    fn drop(&mut self) {
        // SAFETY: The packet is ours by the type's invariants.
        unsafe { bindings::kfree_skb_reason(self.as_ptr(), DropReason::QueuePurge as u32) };
    }
}

/// Where a packet's link to the next one is.
///
/// # Safety
///
/// `skb` must point to a valid packet.
#[inline]
pub(super) unsafe fn next(skb: *mut bindings::sk_buff) -> *mut *mut bindings::sk_buff {
    // SAFETY: By the safety requirements.
    unsafe { addr_of_mut!((*skb).__bindgen_anon_1.__bindgen_anon_1.next) }
}
