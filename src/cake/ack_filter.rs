// SPDX-License-Identifier: GPL-2.0

//! The ACK filter: TCP acknowledgements that a later one makes redundant.
//!
//! On a line whose uplink is much slower than its downlink, acknowledgements of a download alone can
//! fill the uplink. An acknowledgement may go if a later one in the same queue says all that it says
//! and more. What carries data, flags or options that are not understood is left alone.

use super::{
    config::AckFilter,
    dissect::{address_v6, Addresses, IPV4_LEN, IPV6_LEN},
    packet::{Packet, PacketQueue},
};

/// The most bytes of headers that the filter looks at: IPv4 with all options, IPv6 in it, TCP with
/// all options.
pub const HEADERS_LEN: usize = 60 + IPV6_LEN + 60;

const IPPROTO_TCP: u8 = 6;
const IPPROTO_IPV6: u8 = 41;
const TCP_LEN: usize = 20;
/// The most bytes of options that a TCP header has.
const OPTIONS_LEN: usize = 40;

/// TCP's flags, the lower half of the words 12 and 13 of its header.
mod flag {
    pub(super) const SYN: u16 = 0x002;
    pub(super) const ACK: u16 = 0x010;
    pub(super) const ECE: u16 = 0x040;
    pub(super) const CWR: u16 = 0x080;
    /// The flags that there are, reserved ones included.
    pub(super) const ALL: u16 = 0xfff;
}

/// TCP's options.
mod option {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMP: u8 = 8;
    pub(super) const MD5: u8 = 19;
}

/// What the filter wants to know of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    addresses: Addresses,
    /// Source and destination.
    ports: (u16, u16),
    ack: u32,
    flags: u16,
    /// What remains of the packet behind the headers.
    carries_data: bool,
    options: &'a [u8],
}

impl Segment<'_> {
    /// The same with its options in `place`.
    fn kept<'a>(&self, place: &'a mut [u8; OPTIONS_LEN]) -> Option<Segment<'a>> {
        let options = place.get_mut(..self.options.len())?;
        options.copy_from_slice(self.options);
        let Self {
            addresses,
            ports,
            ack,
            flags,
            carries_data,
            ..
        } = *self;
        Some(Segment {
            addresses,
            ports,
            ack,
            flags,
            carries_data,
            options,
        })
    }
}

/// Reads the segment in a packet whose network header `bytes` starts with; 6in4, the common way to
/// IPv6 in many homes, is looked into. [`None`] if there is none or its headers are not whole.
pub fn segment(bytes: &[u8]) -> Option<Segment<'_>> {
    match *bytes.first()? >> 4 {
        4 => {
            let header = bytes.first_chunk::<IPV4_LEN>()?;
            let [version_len, _, l0, l1, _, _, _, _, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
                *header;
            let header_len = usize::from(version_len & 0x0f)
                .wrapping_mul(4)
                .max(IPV4_LEN);
            let inner = bytes.get(header_len..)?;
            let addresses = Addresses::V4 {
                src: u32::from_be_bytes([s0, s1, s2, s3]),
                dst: u32::from_be_bytes([d0, d1, d2, d3]),
            };
            let total = usize::from(u16::from_be_bytes([l0, l1]));
            match protocol {
                IPPROTO_TCP => tcp(addresses, total.saturating_sub(header_len), inner),
                IPPROTO_IPV6 => segment_v6(inner),
                _ => None,
            }
        }
        6 => segment_v6(bytes),
        _ => None,
    }
}

fn segment_v6(bytes: &[u8]) -> Option<Segment<'_>> {
    let (header, inner) = bytes.split_first_chunk::<IPV6_LEN>()?;
    let (first, rest) = header.split_first_chunk::<8>()?;
    let [version, _, _, _, l0, l1, protocol, _] = *first;
    if version >> 4 != 6 || protocol != IPPROTO_TCP {
        return None;
    }
    let (src, rest) = address_v6(rest)?;
    let (dst, _) = address_v6(rest)?;
    let len = usize::from(u16::from_be_bytes([l0, l1]));
    tcp(Addresses::V6 { src, dst }, len, inner)
}

/// Reads a TCP header; `len` bytes of header and data are said to be there.
fn tcp(addresses: Addresses, len: usize, bytes: &[u8]) -> Option<Segment<'_>> {
    let header = bytes.first_chunk::<TCP_LEN>()?;
    let [s0, s1, d0, d1, _, _, _, _, a0, a1, a2, a3, offset, flags, ..] = *header;
    let header_len = usize::from(offset >> 4).wrapping_mul(4);
    Some(Segment {
        addresses,
        ports: (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])),
        ack: u32::from_be_bytes([a0, a1, a2, a3]),
        flags: u16::from_be_bytes([offset, flags]) & flag::ALL,
        carries_data: len != header_len,
        // Fails, too, if the header claims to be shorter than it must be.
        options: bytes.get(TCP_LEN..header_len)?,
    })
}

/// Whether sequence number `a` is after `b` (RFC 9293, section 3.4).
fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// The options in `bytes`, kind and content. It ends at one that is malformed.
fn options(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    core::iter::from_fn(move || loop {
        match *bytes {
            [] | [option::END, ..] => return None,
            [option::NOP, ref rest @ ..] => bytes = rest,
            [kind, len, ..] => {
                let content = bytes.get(2..usize::from(len))?;
                bytes = bytes.get(usize::from(len)..)?;
                return Some((kind, content));
            }
            _ => return None,
        }
    })
}

/// Two numbers, as a timestamp option has them (RFC 7323) and each range of a SACK option. [`None`]
/// if `content` is of another length.
fn pair(content: &[u8]) -> Option<(u32, u32)> {
    let [v0, v1, v2, v3, e0, e1, e2, e3] = *<&[u8; 8]>::try_from(content).ok()?;
    Some((
        u32::from_be_bytes([v0, v1, v2, v3]),
        u32::from_be_bytes([e0, e1, e2, e3]),
    ))
}

/// The ranges that a segment's SACK option names (RFC 2018), start and end.
fn sacked<'a>(segment: &Segment<'a>) -> impl Iterator<Item = (u32, u32)> + 'a {
    let found = options(segment.options).find(|(kind, _)| *kind == option::SACK);
    let content = found.map_or(&[][..], |(_, content)| content);
    content.chunks_exact(8).filter_map(pair)
}

/// Bytes that a segment's SACK option names.
fn sacked_bytes(segment: &Segment<'_>) -> u32 {
    sacked(segment).fold(0, |sum, (start, end)| {
        sum.wrapping_add(end.wrapping_sub(start))
    })
}

/// Whether `newer` says all that `older` says, and more.
///
/// Each range that `older` reports must be within one of `newer`'s. A duplicate that `older`
/// reports (RFC 2883) is said only once.
fn supersedes(newer: &Segment<'_>, older: &Segment<'_>) -> bool {
    let is_covered = |(start, end): (u32, u32)| {
        let is_duplicate = after(older.ack, start);
        !is_duplicate && sacked(newer).any(|(from, to)| !after(from, start) && !after(end, to))
    };
    !after(older.ack, newer.ack)
        && sacked(older).all(is_covered)
        && (older.ack != newer.ack || sacked_bytes(newer) > sacked_bytes(older))
}

/// Whether a segment is an acknowledgement and nothing else that its receiver has to see.
/// `newest` is the timestamp of the newest segment.
fn is_pure(segment: &Segment<'_>, newest: (u32, u32)) -> bool {
    let is_harmless = |(kind, content): (u8, &[u8])| match kind {
        option::MD5 => true,
        option::SACK => content.len() % 8 == 0,
        option::TIMESTAMP => pair(content)
            .is_some_and(|(value, echo)| !after(value, newest.0) && !after(echo, newest.1)),
        _ => false,
    };
    segment.flags & !(flag::ECE | flag::CWR) == flag::ACK
        && !segment.carries_data
        && options(segment.options).all(is_harmless)
}

/// The position of the packet in `queue` that the last one makes redundant, if there is one.
///
/// The conservative filter lets the oldest redundant acknowledgement go only if there is another;
/// the aggressive one also if the last packet comes right behind it. Neither loses a change of the
/// ECN flags (RFC 3168).
pub fn redundant<Q: PacketQueue>(queue: &Q, filter: AckFilter) -> Option<usize> {
    // One buffer for all: the kernel's stack is small.
    let mut headers = [0; HEADERS_LEN];
    let mut newest_options = [0; OPTIONS_LEN];
    let newest = segment(queue.last()?.headers(&mut headers))?.kept(&mut newest_options)?;
    if newest.flags & (flag::ACK | flag::SYN) != flag::ACK {
        return None;
    }
    let stamps = options(newest.options).find(|(kind, _)| *kind == option::TIMESTAMP);
    let stamps = stamps
        .and_then(|(_, content)| pair(content))
        .unwrap_or_default();
    let ecn = |segment: &Segment<'_>| segment.flags & (flag::ECE | flag::CWR);

    let mut candidate: Option<(usize, u16)> = None;
    let mut packets = (0..usize::MAX).zip(queue.iter()).peekable();
    while let Some((position, packet)) = packets.next() {
        if packets.peek().is_none() {
            // This is the newest itself.
            let (found, flags) = candidate?;
            let is_next = found.wrapping_add(1) == position;
            let may_go = filter == AckFilter::Aggressive && is_next && flags == ecn(&newest);
            return may_go.then_some(found);
        }
        let Some(older) = segment(packet.headers(&mut headers)) else {
            continue;
        };
        if (older.addresses, older.ports) != (newest.addresses, newest.ports) {
            continue;
        }
        if candidate.is_some_and(|(_, flags)| flags != ecn(&older)) {
            candidate = None;
        }
        if is_pure(&older, stamps) && supersedes(&newest, &older) {
            match candidate {
                Some((found, _)) => return Some(found),
                None => candidate = Some((position, ecn(&older))),
            }
        }
    }
    None
}
