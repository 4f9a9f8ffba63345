// SPDX-License-Identifier: GPL-2.0

//! Who gets how much and who waits for whom: the bounds of DRR++ and of host isolation.

mod support;

use cake::cake::{
    diffserv::Preset,
    hash::{FlowHashes, FlowMode},
    host::{HostPair, Hosts},
    index::{FlowIndex, TinIndex},
    random::Random,
    tin::{Served, TinParams},
    Config, Nanos,
};
use proptest::prelude::*;
use std::collections::HashMap;
use support::{boxed_tin, in_place, Link, TestPacket, MTU};

/// A link that isolates as `mode` says and drops nothing.
fn fair_link(mode: FlowMode) -> Link {
    Link::new(Config {
        bandwidth: 1_250_000,
        preset: Preset::Besteffort,
        flow_mode: mode,
        target_us: 1_000_000_000,
        rtt_us: 2_000_000_000,
        memory: 1 << 30,
        ..Config::default()
    })
}

/// Keeps flow `i` of host `hosts[i]` backlogged with packets of `lens[i]` bytes until `packets` were
/// sent, and returns each flow's bytes.
fn compete(link: &mut Link, hosts: &[u32], lens: &[u32], packets: u32) -> Vec<u64> {
    let mut sent = vec![0; hosts.len()];
    let mut number = 0;
    let mut refill = |link: &mut Link, flow: usize| {
        number += 1;
        let hashes = FlowHashes {
            // In sets of their own.
            flow: 8 * flow as u32,
            src_host: 8 * (hosts[flow] + 1),
            dst_host: 8 * flow as u32,
        };
        let packet = TestPacket::new(flow as u32, number, lens[flow]);
        let _ = link.enqueue(TinIndex::FIRST, hashes, packet);
    };
    for (flow, len) in lens.iter().enumerate() {
        for _ in 0..MTU / len + 2 {
            refill(link, flow);
        }
    }
    for _ in 0..packets {
        let packet = link.next().unwrap();
        sent[packet.flow as usize] += u64::from(packet.len);
        refill(link, packet.flow as usize);
    }
    sent
}

fn quantum(link: &mut Link) -> u64 {
    let now = link.now;
    u64::from(link.scheduler.tin_stats(0, now).unwrap().flow_quantum)
}

proptest! {
    /// Two flows that always have packets differ by no more than a round and a packet.
    #[test]
    fn flows_get_the_same(
        lens in prop::collection::vec(64..=MTU, 2..12),
        packets in 100u32..1000,
    ) {
        let mut link = fair_link(FlowMode::Flows);
        let sent = compete(&mut link, &vec![0; lens.len()], &lens, packets);
        let bound = 2 * quantum(&mut link) + u64::from(MTU);
        for (i, one) in sent.iter().enumerate() {
            for other in &sent[i..] {
                prop_assert!(one.abs_diff(*other) <= bound, "{:?}, bound {}", sent, bound);
            }
        }
    }

    /// So do two hosts, for each of their flows, and what dithering adds.
    #[test]
    fn hosts_get_the_same(
        flows in prop::collection::vec(1usize..6, 2..5),
        len in 64..=MTU,
        packets in 500u32..3000,
    ) {
        let hosts: Vec<u32> = (0..).zip(&flows).flat_map(|(host, n)| vec![host; *n]).collect();
        let mut link = fair_link(FlowMode::DualSrcHost);
        let sent = compete(&mut link, &hosts, &vec![len; hosts.len()], packets);
        let mut of_host = vec![0u64; flows.len()];
        for (host, bytes) in hosts.iter().zip(&sent) {
            of_host[*host as usize] += bytes;
        }
        let each = 2 * quantum(&mut link) + u64::from(MTU) + 100;
        for (i, one) in of_host.iter().enumerate() {
            for (j, other) in of_host.iter().enumerate() {
                let bound = each * (flows[i] + flows[j]) as u64;
                prop_assert!(one.abs_diff(*other) <= bound, "{:?}: {:?}", flows, of_host);
            }
        }
    }

    /// Flows that send less than a quantum at a time go before all that always have packets.
    #[test]
    fn sparse_flows_wait_for_no_bulk_flow(
        lens in prop::collection::vec(64..=MTU, 1..12),
        sparse in 1u32..6,
        rounds in 1u32..20,
    ) {
        let mut link = fair_link(FlowMode::Flows);
        compete(&mut link, &vec![0; lens.len()], &lens, 300);
        for round in 0..rounds {
            // Long enough for them to be forgotten.
            let _ = link.next();
            link.now = link.now.after(100);
            for flow in 0..sparse {
                let flow = 100 + round * sparse + flow;
                let hashes = FlowHashes { flow: 8 * (flow % 128) + 4, src_host: 0, dst_host: 0 };
                let _ = link.enqueue(TinIndex::FIRST, hashes, TestPacket::new(flow, 0, 200));
            }
            for flow in 0..sparse {
                let next = link.next().map(|packet| packet.flow);
                prop_assert_eq!(next, Some(100 + round * sparse + flow));
            }
        }
    }

    /// A flow that sends more than a quantum waits for one round of the others, and no longer.
    #[test]
    fn flow_waits_for_one_round(lens in prop::collection::vec(64..=MTU, 1..12)) {
        let mut link = fair_link(FlowMode::Flows);
        compete(&mut link, &vec![0; lens.len()], &lens, 300);
        let quantum = quantum(&mut link);
        for number in 0..3 {
            let hashes = FlowHashes { flow: 1020, src_host: 0, dst_host: 0 };
            let _ = link.enqueue(TinIndex::FIRST, hashes, TestPacket::new(99, number, MTU));
        }
        let (mut others, mut own) = (0, 0);
        while own < 3 {
            let packet = link.next().unwrap();
            if packet.flow == 99 {
                own += 1;
            } else {
                others += u64::from(packet.len);
            }
            let rounds = own * u64::from(MTU) / quantum + 1;
            let most = rounds * (quantum + u64::from(MTU)) * lens.len() as u64;
            prop_assert!(others <= most, "{} bytes of others before packet {}", others, own);
        }
    }

    /// Hosts are charged for the flows that they have, and for none once these have gone.
    #[test]
    fn host_counters_return_to_zero(
        mode in prop::sample::select(vec![
            FlowMode::DualSrcHost, FlowMode::DualDstHost, FlowMode::Triple,
        ]),
        // In a set of eight places.
        count in prop::sample::select(vec![8, 12]),
        steps in prop::collection::vec((0u32..12, 0u32..12, 0u32..3), 1..400),
    ) {
        let mut hosts = in_place(Hosts::init());
        let hashes = |src: u32, dst: u32| FlowHashes {
            flow: 0,
            src_host: 1024 * src + 8,
            dst_host: 1024 * dst + 16,
        };
        let mut flows: Vec<(u32, u32, HostPair)> = Vec::new();
        for (src, dst, what) in steps {
            let (src, dst) = (src % count, dst % count);
            if what > 0 {
                let pair = hosts.place(mode, HostPair::default(), &hashes(src, dst));
                hosts.gain(mode, pair);
                flows.push((src, dst, pair));
            } else if !flows.is_empty() {
                let (_, _, pair) = flows.swap_remove(src as usize % flows.len());
                hosts.lose(mode, pair);
            }
            for (src, dst, pair) in &flows {
                let of_src = flows.iter().filter(|(other, ..)| other == src).count();
                let of_dst = flows.iter().filter(|(_, other, _)| other == dst).count();
                let own = match mode {
                    FlowMode::DualSrcHost => of_src,
                    FlowMode::DualDstHost => of_dst,
                    _ => of_src.max(of_dst),
                };
                let load = usize::from(hosts.load(mode, *pair));
                // Hosts that share a place are charged for each other's flows.
                let is_right = if count == 8 { load == own } else { load <= flows.len() };
                prop_assert!(is_right, "{} for {} flows", load, own);
            }
        }
        let pairs: Vec<_> = flows.drain(..).map(|(.., pair)| pair).collect();
        for pair in &pairs {
            hosts.lose(mode, *pair);
        }
        for pair in &pairs {
            prop_assert_eq!(hosts.load(mode, *pair), 1);
        }
    }
}

/// Counters start again from zero, and what is made of their differences stays right.
#[test]
fn counters_wrap() {
    let mut tin = boxed_tin();
    let mut random = Random::new(1);
    let mode = FlowMode::Flows;
    tin.params = TinParams::derive(&Config::default(), TinIndex::FIRST, MTU);
    tin.counters.packets = u32::MAX - 4;
    tin.counters.bytes = u64::MAX - 2_000;
    tin.counters.dropped = u32::MAX - 1;
    tin.counters.way_misses = u32::MAX;
    tin.counters.ecn_marked = u32::MAX;
    let now = Nanos(1 << 40);
    let mut sent = HashMap::new();
    for number in 0..10 {
        let hashes = FlowHashes {
            flow: (number as u32 + 1) * 8,
            ..FlowHashes::default()
        };
        let flow = tin.lookup(mode, &hashes, now);
        for len in [1000, 500] {
            tin.push(flow, TestPacket::new(number as u32, number, len));
        }
        tin.activate(mode, flow, now, &mut random);
    }
    for flow in [8, 16, 24] {
        assert!(tin.drop_head(FlowIndex::new(flow), now).is_some());
    }
    while let Some((flow, served)) = tin.serve(mode, false, now, &mut random) {
        if let Served::Packet(packet) = served {
            tin.charge(flow, packet.len);
            *sent.entry(packet.flow).or_insert(0) += packet.len;
        }
    }
    let stats = tin.stats();
    assert_eq!((stats.sent_packets, stats.sent_bytes), (15, 12_999));
    assert_eq!((stats.dropped_packets, stats.way_misses), (1, 9));
    assert_eq!((stats.backlog_bytes, tin.backlog()), (0, 0));
    assert_eq!(sent.values().sum::<u32>(), 12_000);
}
