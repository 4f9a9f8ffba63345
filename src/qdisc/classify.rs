// SPDX-License-Identifier: GPL-2.0

//! Which tin a packet belongs to, and which flow and hosts.

use crate::{
    cake::{
        diffserv::{Classes, Preset},
        dissect::{self, FlowKeys, ETH_P_IP, ETH_P_IPV6, PLAIN_IPV6_LEN},
        hash::{FlowMode, Known},
        index::TinIndex,
        siphash::SipKey,
        Config,
        FlowHashes, //
    },
    net::{
        conntrack::{self, Ends},
        flow_dissector,
        pkt_sched::{TC_H_MAJ_MASK, TC_H_MIN_MASK},
        skb::Skb, //
    },
};

/// What tells to which tin, flow and hosts a packet belongs.
pub(super) struct Classifier<'a> {
    /// The configuration in force.
    pub(super) config: &'a Config,
    /// The tins of code points.
    pub(super) classes: &'a Classes,
    /// The key of hashes.
    pub(super) key: &'a SipKey,
    /// The number that names the instance.
    pub(super) handle: u32,
    /// The class that a filter chose, if one did.
    pub(super) class: Option<u32>,
}

impl Classifier<'_> {
    /// The tin, flow and hosts of `packet`.
    ///
    /// If the configuration says so the packet's code point is cleared on the way.
    #[inline]
    pub(super) fn classify(&self, packet: &mut Skb) -> (TinIndex, FlowHashes) {
        let config = self.config;
        if config.preset == Preset::Besteffort
            && config.flow_mode == FlowMode::Flowblind
            && !config.wash
        {
            return (TinIndex::FIRST, FlowHashes::default());
        }
        let protocol = packet.protocol();
        // Headers of known length spare the checks.
        let (dscp, hashes) = match protocol {
            ETH_P_IP => match packet.network_header_in_place() {
                Some(header) => (
                    dissect::dscp(protocol, header),
                    self.hashes(protocol, packet, || dissect::plain_v4(header)),
                ),
                None => self.read_scattered(protocol, packet),
            },
            ETH_P_IPV6 => match packet.network_header_in_place() {
                Some(header) => (
                    dissect::dscp(protocol, header),
                    self.hashes(protocol, packet, || dissect::plain_v6(header)),
                ),
                None => self.read_scattered(protocol, packet),
            },
            _ => self.read_scattered(protocol, packet),
        };
        let tin = self
            .named_tin(packet)
            .unwrap_or_else(|| self.classes.tin(dscp));
        if config.wash && dscp != 0 {
            wash(protocol, packet);
        }
        (tin, hashes)
    }

    /// The code point and the hashes of a packet whose header is short or in pieces.
    #[cold]
    fn read_scattered(&self, protocol: u16, packet: &Skb) -> (u8, FlowHashes) {
        let mut buffer = [0; PLAIN_IPV6_LEN];
        let header = packet.network_header(&mut buffer);
        (
            dissect::dscp(protocol, header),
            self.hashes(protocol, packet, || dissect::plain(protocol, header)),
        )
    }

    /// The tin that the firewall mark names or else the priority, if either names one.
    #[inline]
    fn named_tin(&self, packet: &Skb) -> Option<TinIndex> {
        let config = self.config;
        if config.preset == Preset::Besteffort {
            return None;
        }
        let marked = config.marked_tin(packet.mark());
        if let Some(tin) = marked.and_then(|display| config.preset.tin_at(display)) {
            return Some(tin);
        }
        let priority = packet.priority();
        if priority & TC_H_MAJ_MASK != self.handle {
            return None;
        }
        let display = (priority & TC_H_MIN_MASK).checked_sub(1)?;
        config.preset.tin_at(display)
    }

    /// The hashes that the flow mode asks for, from as little of the packet as they need. `plain`
    /// reads its header.
    #[inline]
    fn hashes(
        &self,
        protocol: u16,
        packet: &Skb,
        plain: impl FnOnce() -> Option<FlowKeys>,
    ) -> FlowHashes {
        let Self { config, key, .. } = *self;
        let mode = config.flow_mode;
        let named = self.class.map(Known::from_class).unwrap_or_default();
        let mut known = named;
        if known.flow.is_none() && mode.by_flow() {
            known.flow = packet.l4_hash();
        }
        let mut keys = match mode {
            FlowMode::Flowblind => return FlowHashes::default(),
            _ if known.suffices(mode) && !config.nat => FlowKeys::default(),
            _ if flow_dissector::is_replaced(packet) => dissected(packet),
            _ => plain().unwrap_or_else(|| dissected(packet)),
        };
        if config.nat && protocol == ETH_P_IP && untranslate(&mut keys, packet) {
            // A hash that was taken before the translation is of another flow.
            known = named;
        }
        keys.hashes(mode, key, &known)
    }
}

/// Puts the ends behind an address translator into `keys`. Returns whether that changed anything.
#[cold]
fn untranslate(keys: &mut FlowKeys, packet: &Skb) -> bool {
    let Some(Ends {
        addresses: (src, dst),
        ports,
    }) = conntrack::untranslated(packet)
    else {
        return false;
    };
    let before = *keys;
    keys.addresses = dissect::Addresses::V4 { src, dst };
    if keys.ports != (0, 0) {
        keys.ports = ports;
    }
    *keys != before
}

/// What the kernel's dissector says.
#[cold]
fn dissected(packet: &Skb) -> FlowKeys {
    let found = flow_dissector::dissect(packet);
    // GRE has a key where others have ports.
    let key_halves = ((found.key >> 16) as u16, found.key as u16);
    FlowKeys {
        addresses: match found.addresses {
            flow_dissector::Addresses::V4(src, dst) => dissect::Addresses::V4 {
                src: u32::from_be_bytes(src),
                dst: u32::from_be_bytes(dst),
            },
            flow_dissector::Addresses::V6(src, dst) => dissect::Addresses::V6 {
                src: halves(&src),
                dst: halves(&dst),
            },
            flow_dissector::Addresses::Other => dissect::Addresses::None,
        },
        protocol: found.protocol,
        ports: if found.key == 0 {
            found.ports
        } else {
            key_halves
        },
        label: found.label,
    }
}

fn halves(address: &[u8; 16]) -> [u64; 2] {
    dissect::address_v6(address).map_or([0; 2], |(halves, _)| halves)
}

/// Clears the code point.
#[cold]
fn wash(protocol: u16, packet: &mut Skb) {
    match protocol {
        ETH_P_IP => packet.clear_dscp(dissect::IPV4_LEN as u32),
        ETH_P_IPV6 => packet.clear_dscp(dissect::IPV6_LEN as u32),
        _ => {}
    }
}
