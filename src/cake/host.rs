// SPDX-License-Identifier: GPL-2.0

//! Host isolation: how many bulk flows each host has.
//!
//! A flow's quantum is divided by the number of bulk flows of its host, so that a host gets its
//! share of the link however many flows it opens. Sources and destinations are counted apart: one
//! address may be either.

use super::{
    hash::{ways, FlowHashes, FlowMode},
    index::{HostIndex, QUEUES},
};
use pin_init::{init, init_array_from_fn, Init};

/// Where a flow's source and destination are in the tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostPair {
    src: HostIndex,
    dst: HostIndex,
}

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    /// The hash of its address.
    tag: u32,
    /// How many of its flows are in the bulk rotation. There are no more flows than queues.
    bulk_flows: u16,
}

/// The hosts at one end of a tin's flows, in a set-associative table.
struct Ends {
    hosts: [Host; QUEUES],
}

impl Ends {
    fn init() -> impl Init<Self> {
        init!(Self {
            hosts <- init_array_from_fn(|_| Host::default()),
        })
    }

    /// The place of the host whose address hashes to `hash`: `current` if it is still there, else
    /// its own, else one without bulk flows, else one that it must share.
    #[inline]
    fn place(&mut self, current: HostIndex, hash: u32) -> HostIndex {
        if self.hosts[current.at()].tag == hash {
            return current;
        }
        let found = ways(hash)
            .map(HostIndex::new)
            .find(|way| self.hosts[way.at()].tag == hash)
            .or_else(|| {
                let mut free = ways(hash).map(HostIndex::new);
                free.find(|way| self.hosts[way.at()].bulk_flows == 0)
            })
            .unwrap_or(HostIndex::new(hash));
        self.hosts[found.at()].tag = hash;
        found
    }

    fn gain(&mut self, host: HostIndex) {
        let flows = &mut self.hosts[host.at()].bulk_flows;
        *flows = flows.saturating_add(1);
    }

    fn lose(&mut self, host: HostIndex) {
        let flows = &mut self.hosts[host.at()].bulk_flows;
        *flows = flows.saturating_sub(1);
    }
}

/// The hosts of one tin.
pub struct Hosts {
    src: Ends,
    dst: Ends,
}

impl Hosts {
    /// Tables without hosts, made in place.
    pub fn init() -> impl Init<Self> {
        init!(Self {
            src <- Ends::init(),
            dst <- Ends::init(),
        })
    }

    /// Finds the places of a flow's hosts as far as `mode` isolates them.
    #[inline]
    pub fn place(&mut self, mode: FlowMode, current: HostPair, hashes: &FlowHashes) -> HostPair {
        let mut pair = current;
        if mode.isolates_src() {
            pair.src = self.src.place(current.src, hashes.src_host);
        }
        if mode.isolates_dst() {
            pair.dst = self.dst.place(current.dst, hashes.dst_host);
        }
        pair
    }

    /// Counts a flow that joined the bulk rotation.
    #[inline]
    pub fn gain(&mut self, mode: FlowMode, pair: HostPair) {
        if mode.isolates_src() {
            self.src.gain(pair.src);
        }
        if mode.isolates_dst() {
            self.dst.gain(pair.dst);
        }
    }

    /// Takes back what [`Hosts::gain`] counted.
    #[inline]
    pub fn lose(&mut self, mode: FlowMode, pair: HostPair) {
        if mode.isolates_src() {
            self.src.lose(pair.src);
        }
        if mode.isolates_dst() {
            self.dst.lose(pair.dst);
        }
    }

    /// Among how many flows the busier of the two hosts shares what it gets: at least 1.
    #[inline]
    pub fn load(&self, mode: FlowMode, pair: HostPair) -> u16 {
        let mut load = 1;
        if mode.isolates_src() {
            load = load.max(self.src.hosts[pair.src.at()].bulk_flows);
        }
        if mode.isolates_dst() {
            load = load.max(self.dst.hosts[pair.dst.at()].bulk_flows);
        }
        load
    }

    /// The hashes of a flow's hosts.
    pub fn tags(&self, pair: HostPair) -> (u32, u32) {
        (
            self.src.hosts[pair.src.at()].tag,
            self.dst.hosts[pair.dst.at()].tag,
        )
    }

    /// Forgets all bulk flows, for when the way of counting them changes.
    pub fn forget_flows(&mut self) {
        for ends in [&mut self.src, &mut self.dst] {
            ends.hosts.iter_mut().for_each(|host| host.bulk_flows = 0);
        }
    }
}
