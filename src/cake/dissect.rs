// SPDX-License-Identifier: GPL-2.0

//! Headers: what a packet says of its class and its flow.
//!
//! Pure functions over the bytes from the network header on. They read the plain cases, which are
//! nearly all packets; whatever else there is (fragments, options, extension headers, tunnels) is
//! for the kernel's flow dissector.

/// EtherType of IPv4.
pub const ETH_P_IP: u16 = 0x0800;
/// EtherType of ARP.
pub const ETH_P_ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const ETH_P_IPV6: u16 = 0x86dd;

const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;

/// Length of an IPv4 header without options.
pub const IPV4_LEN: usize = 20;
/// Length of an IPv6 header.
pub const IPV6_LEN: usize = 40;

/// Bytes that [`plain`] looks at in an IPv4 packet.
pub const PLAIN_IPV4_LEN: usize = IPV4_LEN + 4;
/// Bytes that [`plain`] looks at in an IPv6 packet, the most that any function here looks at.
pub const PLAIN_IPV6_LEN: usize = IPV6_LEN + 4;

/// A packet's addresses, as numbers in any one byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Neither IPv4 nor IPv6.
    #[default]
    None,
    /// IPv4.
    V4 {
        /// Source.
        src: u32,
        /// Destination.
        dst: u32,
    },
    /// IPv6.
    V6 {
        /// Source, upper and lower half.
        src: [u64; 2],
        /// Destination, upper and lower half.
        dst: [u64; 2],
    },
}

/// What tells one flow from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKeys {
    /// The two ends.
    pub addresses: Addresses,
    /// The number of the transport protocol.
    pub protocol: u8,
    /// Source and destination port, or whatever the protocol has in their place.
    pub ports: (u16, u16),
    /// IPv6's flow label where it stands for the ports, 0 elsewhere.
    pub label: u32,
}

/// The keys of a plain packet: IPv4 or IPv6 with TCP or UDP next to it, whole.
///
/// `bytes` starts at the network header and may end anywhere. [`None`] means that the packet is
/// not plain or that too little of it is in `bytes`.
#[inline]
pub fn plain(protocol: u16, bytes: &[u8]) -> Option<FlowKeys> {
    match protocol {
        ETH_P_IP => plain_v4(bytes.first_chunk()?),
        ETH_P_IPV6 => plain_v6(bytes.first_chunk()?),
        _ => None,
    }
}

/// [`plain`] for IPv4.
#[inline]
pub fn plain_v4(bytes: &[u8; PLAIN_IPV4_LEN]) -> Option<FlowKeys> {
    /// More Fragments and the fragment's offset.
    const FRAGMENT: u16 = 0x3fff;
    const VERSION_4_NO_OPTIONS: u8 = 0x45;

    let (header, transport) = bytes.split_first_chunk::<IPV4_LEN>()?;
    let [version, _, _, _, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
        *header;
    if version != VERSION_4_NO_OPTIONS || u16::from_be_bytes([f0, f1]) & FRAGMENT != 0 {
        return None;
    }
    Some(FlowKeys {
        addresses: Addresses::V4 {
            src: u32::from_be_bytes([s0, s1, s2, s3]),
            dst: u32::from_be_bytes([d0, d1, d2, d3]),
        },
        protocol,
        ports: ports(protocol, transport)?,
        label: 0,
    })
}

/// [`plain`] for IPv6.
#[inline]
pub fn plain_v6(bytes: &[u8; PLAIN_IPV6_LEN]) -> Option<FlowKeys> {
    /// The flow label in the first word. The kernel's dissector takes a flow that has one by it.
    const LABEL: u32 = 0x000f_ffff;

    let (header, transport) = bytes.split_first_chunk::<IPV6_LEN>()?;
    let (first, rest) = header.split_first_chunk::<4>()?;
    let first = u32::from_be_bytes(*first);
    let ([_, _, protocol, _], rest) = rest.split_first_chunk::<4>()?;
    if first >> 28 != 6 || first & LABEL != 0 {
        return None;
    }
    let (src, rest) = address_v6(rest)?;
    let (dst, _) = address_v6(rest)?;
    Some(FlowKeys {
        addresses: Addresses::V6 { src, dst },
        protocol: *protocol,
        ports: ports(*protocol, transport)?,
        label: 0,
    })
}

/// An IPv6 address and what follows it.
#[inline]
pub fn address_v6(bytes: &[u8]) -> Option<([u64; 2], &[u8])> {
    let (high, rest) = bytes.split_first_chunk::<8>()?;
    let (low, rest) = rest.split_first_chunk::<8>()?;
    Some(([u64::from_be_bytes(*high), u64::from_be_bytes(*low)], rest))
}

#[inline]
fn ports(protocol: u8, transport: &[u8]) -> Option<(u16, u16)> {
    if !matches!(protocol, IPPROTO_TCP | IPPROTO_UDP) {
        return None;
    }
    let [s0, s1, d0, d1] = *transport.first_chunk::<4>()?;
    Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])))
}

/// The code point of a packet; 0 if it has none.
///
/// The DiffServ field is IPv4's second byte, and in IPv6 it spans the first and the second.
#[inline]
pub fn dscp(protocol: u16, bytes: &[u8]) -> u8 {
    match (protocol, bytes) {
        (ETH_P_IP, [_, tos, ..]) => tos >> 2,
        (ETH_P_IPV6, [first, second, ..]) => ((first & 0x0f) << 2) | (second >> 6),
        (ETH_P_ARP, _) => super::diffserv::NETWORK_CONTROL,
        _ => 0,
    }
}
