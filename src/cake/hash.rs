// SPDX-License-Identifier: GPL-2.0

//! Flow modes, and hashes in the place of flows and hosts.
//!
//! Tables are set-associative: a hash names a set of [`WAYS`] neighbouring places, and any of them
//! may hold the flow. With 1024 queues two flows rarely share one before some 400 are active
//! (CAKE paper, section III-B).

use super::{
    dissect::{Addresses, FlowKeys},
    index::QUEUES,
    siphash::{SipHash, SipKey},
};

/// Places in a set.
pub const WAYS: u32 = 8;

/// The places of the set that `hash` names, its own place first.
#[inline]
pub fn ways(hash: u32) -> impl Iterator<Item = u32> {
    let direct = hash % QUEUES as u32;
    let set = direct & !(WAYS - 1);
    (0..WAYS).map(move |i| set | (direct.wrapping_add(i) & (WAYS - 1)))
}

/// What is isolated from what: bit 0 stands for sources, 1 for destinations, 2 for flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowMode {
    /// Nothing: one queue a tin.
    Flowblind = 0b000,
    /// A queue for each source.
    SrcHost = 0b001,
    /// A queue for each destination.
    DstHost = 0b010,
    /// A queue for each pair of source and destination.
    Hosts = 0b011,
    /// A queue for each flow.
    Flows = 0b100,
    /// Flows, and fairness among sources.
    DualSrcHost = 0b101,
    /// Flows, and fairness among destinations.
    DualDstHost = 0b110,
    /// Flows, and fairness among sources and among destinations.
    #[default]
    Triple = 0b111,
}

impl FlowMode {
    /// Whether this mode does all that `other` does.
    #[inline]
    const fn has(self, other: Self) -> bool {
        self as u8 & other as u8 == other as u8
    }

    /// Whether queues are chosen by flow.
    #[inline]
    pub const fn by_flow(self) -> bool {
        self.has(Self::Flows)
    }

    /// Whether a flow's quantum depends on how many flows its source has.
    #[inline]
    pub const fn isolates_src(self) -> bool {
        self.has(Self::DualSrcHost)
    }

    /// Whether a flow's quantum depends on how many flows its destination has.
    #[inline]
    pub const fn isolates_dst(self) -> bool {
        self.has(Self::DualDstHost)
    }

    /// Whether [`FlowHashes::src_host`] plays a part.
    #[inline]
    pub const fn hashes_src(self) -> bool {
        self.has(Self::SrcHost)
    }

    /// Whether [`FlowHashes::dst_host`] plays a part.
    #[inline]
    pub const fn hashes_dst(self) -> bool {
        self.has(Self::DstHost)
    }
}

/// A packet's flow and hosts as hashes. Those that the mode does not use are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowHashes {
    /// What chooses the queue.
    pub flow: u32,
    /// The source address.
    pub src_host: u32,
    /// The destination address.
    pub dst_host: u32,
}

/// What is known of a packet's flow without looking at its headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Stands for the flow. In modes that do not tell flows from one another it makes one apart.
    pub flow: Option<u32>,
    /// Stands for both hosts.
    pub host: Option<u32>,
}

impl Known {
    /// What the class means that a filter chose: its minor number names a queue and its major
    /// number a host, each from 1 to the number of queues; others mean nothing.
    pub fn from_class(class: u32) -> Self {
        let named = |number: u32| number.checked_sub(1).filter(|n| *n < QUEUES as u32);
        Self {
            flow: named(class & 0xffff),
            host: named(class >> 16),
        }
    }

    /// Whether `mode` needs nothing else.
    #[inline]
    pub const fn suffices(&self, mode: FlowMode) -> bool {
        (!mode.by_flow() || self.flow.is_some())
            && (!(mode.hashes_src() || mode.hashes_dst()) || self.host.is_some())
    }
}

impl FlowKeys {
    /// The hashes that `mode` needs, under `key`, as far as they are not `known`.
    ///
    /// Inlined where the kind of address is known, so that it is not asked for three times.
    #[inline(always)]
    pub fn hashes(&self, mode: FlowMode, key: &SipKey, known: &Known) -> FlowHashes {
        let mut hashes = FlowHashes::default();
        if mode.hashes_src() {
            hashes.src_host = known.host.unwrap_or_else(|| self.addresses.hash_src(key));
        }
        if mode.hashes_dst() {
            hashes.dst_host = known.host.unwrap_or_else(|| self.addresses.hash_dst(key));
        }
        hashes.flow = if mode.by_flow() {
            known.flow.unwrap_or_else(|| self.hash_flow(key))
        } else {
            known.flow.unwrap_or(0) ^ hashes.src_host ^ hashes.dst_host
        };
        hashes
    }

    #[inline(always)]
    fn hash_flow(&self, key: &SipKey) -> u32 {
        let ports = (u64::from(self.ports.0) << 16) | u64::from(self.ports.1);
        let hash = SipHash::new(key);
        let hash = match self.addresses {
            Addresses::None => hash,
            Addresses::V4 { src, dst } => hash.word((u64::from(src) << 32) | u64::from(dst)),
            Addresses::V6 { src, dst } => {
                let [a, b] = src;
                let [c, d] = dst;
                hash.word(a).word(b).word(c).word(d)
            }
        };
        let hash = match self.label {
            0 => hash,
            label => hash.word(u64::from(label)),
        };
        hash.finish((u64::from(self.protocol) << 32) | ports, 5)
    }
}

impl Addresses {
    #[inline]
    fn hash_src(&self, key: &SipKey) -> u32 {
        match *self {
            Self::None => 0,
            Self::V4 { src, .. } => hash_v4(key, src),
            Self::V6 { src, .. } => hash_v6(key, src),
        }
    }

    #[inline]
    fn hash_dst(&self, key: &SipKey) -> u32 {
        match *self {
            Self::None => 0,
            Self::V4 { dst, .. } => hash_v4(key, dst),
            Self::V6 { dst, .. } => hash_v6(key, dst),
        }
    }
}

#[inline]
fn hash_v4(key: &SipKey, address: u32) -> u32 {
    SipHash::new(key).finish(u64::from(address), 4)
}

fn hash_v6(key: &SipKey, [high, low]: [u64; 2]) -> u32 {
    SipHash::new(key).word(high).word(low).finish(0, 0)
}
