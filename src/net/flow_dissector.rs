// SPDX-License-Identifier: GPL-2.0

//! The kernel's flow dissector: which flow a packet belongs to, whatever it is wrapped in.
//!
//! C header: [`include/net/flow_dissector.h`](srctree/include/net/flow_dissector.h)

use super::{bindings, skb::Skb};
use core::{
    mem::MaybeUninit,
    ptr::addr_of, //
};
use kernel::prelude::*;

/// The two ends of a flow, in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addresses {
    /// Neither IPv4 nor IPv6.
    Other,
    /// IPv4, source and destination.
    V4([u8; 4], [u8; 4]),
    /// IPv6, source and destination.
    V6([u8; 16], [u8; 16]),
}

/// What the dissector found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKeys {
    /// The two ends.
    pub(crate) addresses: Addresses,
    /// The number of the transport protocol.
    pub(crate) protocol: u8,
    /// Source and destination port.
    pub(crate) ports: (u16, u16),
    /// IPv6's flow label.
    pub(crate) label: u32,
    /// GRE's key.
    pub(crate) key: u32,
}

/// Dissects `packet`; a flow label ends the search, since it stands for what comes behind it.
pub(crate) fn dissect(packet: &Skb) -> FlowKeys {
    const IPV4: u16 = bindings::flow_dissector_key_id_FLOW_DISSECTOR_KEY_IPV4_ADDRS as u16;
    const IPV6: u16 = bindings::flow_dissector_key_id_FLOW_DISSECTOR_KEY_IPV6_ADDRS as u16;

    let mut keys = MaybeUninit::<bindings::flow_keys>::uninit();
    // SAFETY: The packet is valid, and `keys` is overwritten by zeros before anything else.
    let keys = unsafe {
        bindings::skb_flow_dissect_flow_keys(
            packet.as_ptr(),
            keys.as_mut_ptr(),
            bindings::FLOW_DISSECTOR_F_STOP_AT_FLOW_LABEL,
        );
        keys.assume_init()
    };
    let addresses = &keys.addrs.__bindgen_anon_1;
    // SAFETY: `addr_type` says which member of the union is in use; ports are plain numbers.
    let (addresses, ports) = unsafe {
        let addresses = match keys.control.addr_type {
            IPV4 => {
                let found = &addresses.v4addrs;
                Addresses::V4(found.src.to_ne_bytes(), found.dst.to_ne_bytes())
            }
            IPV6 => {
                let found = &addresses.v6addrs;
                let bytes = |a: &bindings::in6_addr| a.in6_u.u6_addr8;
                Addresses::V6(bytes(&found.src), bytes(&found.dst))
            }
            _ => Addresses::Other,
        };
        let ports = &keys.ports.__bindgen_anon_1.__bindgen_anon_1;
        (
            addresses,
            (u16::from_be(ports.src), u16::from_be(ports.dst)),
        )
    };
    FlowKeys {
        addresses,
        protocol: keys.basic.ip_proto,
        ports,
        label: keys.tags.flow_label,
        key: u32::from_be(keys.keyid.keyid),
    }
}

/// Whether an administrator has put a BPF program in the dissector's place for `packet`.
///
/// If so, headers must not be read past it.
#[inline]
pub(crate) fn is_replaced(packet: &Skb) -> bool {
    [addr_of!(bindings::init_net), packet.net()]
        .into_iter()
        .any(|net| {
            // SAFETY: The initial namespace and that of a packet's device are valid, and the field
            // is at this place in each.
            let program = unsafe {
                net.cast::<u8>()
                    .add(bindings::NETNS_BPF_DISSECTOR_OFFSET)
                    .cast::<*const c_void>()
                    .read_volatile()
            };
            !program.is_null()
        })
}
