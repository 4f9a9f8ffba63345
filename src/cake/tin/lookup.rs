// SPDX-License-Identifier: GPL-2.0

//! Which queue a packet goes to.

use super::{Set, Tin};
use crate::cake::{
    hash::{FlowHashes, FlowMode},
    index::FlowIndex,
    packet::PacketQueue,
    units::Nanos,
};

impl<Q: PacketQueue> Tin<Q> {
    /// Finds the queue of a flow, or a free one, or one to share, and the flow's hosts.
    #[inline]
    pub fn lookup(&mut self, mode: FlowMode, hashes: &FlowHashes, now: Nanos) -> FlowIndex {
        if mode == FlowMode::Flowblind {
            return FlowIndex::new(0);
        }
        let direct = FlowIndex::new(hashes.flow);
        let index = match self.tags.find(hashes.flow) {
            Some(own) => {
                if own != direct {
                    self.counters.way_hits = self.counters.way_hits.wrapping_add(1);
                }
                own
            }
            None => self.claim(mode, direct, hashes, now),
        };
        let flow = &mut self.flows[index.at()];
        // A table entry without bulk flows is up for grabs, so that the hosts of a flow that is not
        // counted among any host's bulk flows may have changed hands meanwhile.
        if flow.set != Set::Bulk {
            flow.hosts = self.hosts.place(mode, flow.hosts, hashes);
        }
        index
    }

    /// Gives a flow that is new a free queue or else its direct one, to share.
    #[inline(never)]
    fn claim(
        &mut self,
        mode: FlowMode,
        direct: FlowIndex,
        hashes: &FlowHashes,
        now: Nanos,
    ) -> FlowIndex {
        let Self {
            tags,
            flows,
            params,
            ..
        } = self;
        let free_at = |index: FlowIndex| flows[index.at()].free_at(&params.cobalt, now);
        let index = match tags.find_free(hashes.flow, now, free_at) {
            Some(free) => {
                self.counters.way_misses = self.counters.way_misses.wrapping_add(1);
                free
            }
            None => {
                self.counters.way_collisions = self.counters.way_collisions.wrapping_add(1);
                direct
            }
        };
        let flow = &mut self.flows[index.at()];
        if flow.set == Set::Bulk {
            // Two flows in one queue: the queue goes with the newer one's hosts.
            self.hosts.lose(mode, flow.hosts);
            flow.hosts = self.hosts.place(mode, flow.hosts, hashes);
            self.hosts.gain(mode, flow.hosts);
        }
        self.tags.give(index, hashes.flow);
        index
    }
}
