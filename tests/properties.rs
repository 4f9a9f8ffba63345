// SPDX-License-Identifier: GPL-2.0

//! What holds for whatever happens to an instance and whatever a packet holds.

mod support;

use cake::cake::{
    config::{AckFilter, Config},
    diffserv::Preset,
    dissect,
    hash::{FlowHashes, FlowMode, Known},
    index::TinIndex,
    overhead::{Cells, Framing},
    packet::Packet,
    siphash::SipKey,
    Decision, Nanos,
};
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};
use support::{Link, TestPacket};

fn preset() -> impl Strategy<Value = Preset> {
    prop::sample::select(vec![
        Preset::Besteffort,
        Preset::Precedence,
        Preset::Diffserv3,
        Preset::Diffserv4,
        Preset::Diffserv8,
    ])
}

fn flow_mode() -> impl Strategy<Value = FlowMode> {
    prop::sample::select(vec![
        FlowMode::Flowblind,
        FlowMode::SrcHost,
        FlowMode::DstHost,
        FlowMode::Hosts,
        FlowMode::Flows,
        FlowMode::DualSrcHost,
        FlowMode::DualDstHost,
        FlowMode::Triple,
    ])
}

prop_compose! {
    fn framing()(
        overhead in -64i16..=256,
        mpu in 0u16..=256,
        cells in prop::sample::select(vec![Cells::None, Cells::Atm, Cells::Ptm]),
        raw in any::<bool>(),
    ) -> Framing {
        Framing { overhead, mpu, cells, raw }
    }
}

prop_compose! {
    fn config()(
        bandwidth in prop_oneof![Just(0u64), Just(1), 1_000u64..10_000_000, any::<u64>()],
        preset in preset(),
        flow_mode in flow_mode(),
        framing in framing(),
        rtt_us in prop_oneof![1u32..1_000_000, any::<u32>().prop_map(|us| us.max(1))],
        target_us in prop_oneof![1u32..50_000, any::<u32>().prop_map(|us| us.max(1))],
        memory in prop_oneof![Just(0u32), 1u32..100_000],
        ingress in any::<bool>(),
        autorate_ingress in any::<bool>(),
        ack_filter in prop::sample::select(vec![
            AckFilter::Off, AckFilter::Conservative, AckFilter::Aggressive,
        ]),
    ) -> Config {
        Config {
            bandwidth, preset, flow_mode, framing, rtt_us, target_us, memory, ingress,
            autorate_ingress, ack_filter,
            ..Config::default()
        }
    }
}

/// What may happen to an instance.
#[derive(Clone, Debug)]
enum Event {
    Arrive {
        tin: u32,
        flow: u32,
        len: u32,
        ecn: bool,
    },
    Leave,
    Pass {
        ns: u64,
    },
    /// The clock was set back.
    Jump {
        ns: u64,
    },
    Change(Box<Config>),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => (0u32..8, 0u32..40, 1u32..=1514, any::<bool>())
            .prop_map(|(tin, flow, len, ecn)| Event::Arrive { tin, flow, len, ecn }),
        8 => Just(Event::Leave),
        4 => prop_oneof![0u64..10_000_000, 0u64..100_000_000_000]
            .prop_map(|ns| Event::Pass { ns }),
        1 => (0u64..10_000_000_000_000).prop_map(|ns| Event::Jump { ns }),
        1 => config().prop_map(|config| Event::Change(Box::new(config))),
    ]
}

/// Bytes that queued packets hold.
fn memory_of(queued: &HashMap<u64, u32>) -> u32 {
    let packets = queued.values().map(|len| TestPacket::new(0, 0, *len));
    packets.map(|packet| packet.truesize()).sum()
}

proptest! {
    /// Every packet leaves exactly once, sent or dropped, nothing is counted that is not there, and
    /// the memory limit holds, whatever the clock does.
    #[test]
    fn packets_are_neither_lost_nor_made(
        first in config(),
        start in prop::sample::select(vec![0, 1 << 30, (1 << 63) - 1000, u64::MAX - (1 << 45)]),
        events in prop::collection::vec(event(), 1..400),
    ) {
        let mut link = Link::new(first);
        link.now = Nanos(start);
        let mut queued: HashMap<u64, u32> = HashMap::new();
        let mut number = 0;
        let mut dropped = 0;
        for event in events {
            let is_arrival = matches!(event, Event::Arrive { .. });
            match event {
                Event::Arrive { tin, flow, len, ecn } => {
                    number += 1;
                    queued.insert(number, len);
                    let mut packet = TestPacket::new(flow, number, len);
                    packet.ecn_capable = ecn;
                    let _ = link.send(TinIndex::new(tin), packet);
                }
                Event::Leave => {
                    if let Decision::Send(packet) = link.dequeue() {
                        prop_assert_eq!(queued.remove(&packet.number), Some(packet.len));
                    }
                }
                Event::Pass { ns } => link.now = link.now.after(ns),
                Event::Jump { ns } => link.now = link.now.before(ns),
                Event::Change(config) => link.reconfigure(*config),
            }
            for (packet, _) in &link.dropped[dropped..] {
                prop_assert_eq!(queued.remove(&packet.number), Some(packet.len));
            }
            dropped = link.dropped.len();
            prop_assert_eq!(link.scheduler.qlen() as usize, queued.len());
            prop_assert_eq!(link.backlog(), queued.values().sum::<u32>());
            let (memory, limit) = (memory_of(&queued), link.scheduler.stats().memory_limit);
            // A change may lower the limit; the next arrival makes room.
            prop_assert!(!is_arrival || memory <= limit, "{} of {} bytes", memory, limit);
        }
        // Whoever waits long enough gets the rest.
        link.reconfigure(Config::default());
        while let Some(packet) = link.next() {
            prop_assert_eq!(queued.remove(&packet.number), Some(packet.len));
        }
        for (packet, _) in &link.dropped[dropped..] {
            prop_assert_eq!(queued.remove(&packet.number), Some(packet.len));
        }
        prop_assert!(queued.is_empty());
        prop_assert_eq!((link.scheduler.qlen(), link.backlog()), (0, 0));
    }

    /// Whatever flows came and went, hosts get their halves afterwards: their flows were counted
    /// right all the time. Few hosts and many flows make queues change hands.
    #[test]
    fn churn_leaves_hosts_alike(
        mode in prop::sample::select(vec![
            FlowMode::DualSrcHost, FlowMode::DualDstHost, FlowMode::Triple,
        ]),
        churn in prop::collection::vec((0u32..2000, 0u32..4, 1u32..=1514, 0u32..3), 0..3000),
        others in prop::collection::vec(flow_mode(), 0..3),
    ) {
        let mut link = Link::new(Config {
            bandwidth: 1_250_000,
            preset: Preset::Besteffort,
            flow_mode: mode,
            ..Config::default()
        });
        let hashes = |flow: u32, host: u32| FlowHashes {
            flow: flow.wrapping_mul(0x9e37_79b1),
            src_host: host.wrapping_mul(0x85eb_ca6b),
            dst_host: host.wrapping_mul(0xc2b2_ae35),
        };
        let mut number = 0;
        let mut others = others.into_iter();
        for (i, (flow, host, len, take)) in churn.into_iter().enumerate() {
            number += 1;
            let packet = TestPacket::new(flow, number, len);
            let _ = link.enqueue(TinIndex::FIRST, hashes(flow, host), packet);
            for _ in 0..take {
                let _ = link.next();
            }
            // For some time another mode is in force.
            let config = *link.scheduler.config();
            match i % 700 {
                349 => {
                    if let Some(flow_mode) = others.next() {
                        link.reconfigure(Config { flow_mode, ..config });
                    }
                }
                699 => link.reconfigure(Config { flow_mode: mode, ..config }),
                _ => {}
            }
        }
        let config = *link.scheduler.config();
        link.reconfigure(Config { flow_mode: mode, ..config });
        while link.next().is_some() {}
        link.now = link.now.after(100_000_000_000);

        // Host 0 keeps four flows busy and host 1 one.
        let mut sent = [0u32; 2];
        let busy: Vec<_> = (0..5u32).map(|i| (3000 + i, u32::from(i == 4))).collect();
        for (flow, host) in &busy {
            for _ in 0..4 {
                number += 1;
                let packet = TestPacket { ecn_capable: true, ..TestPacket::new(*flow, number, 1000) };
                let _ = link.enqueue(TinIndex::FIRST, hashes(*flow, *host), packet);
            }
        }
        for _ in 0..2000 {
            let Some(packet) = link.next() else { break };
            let host = u32::from(packet.flow == 3004);
            sent[host as usize] += 1;
            number += 1;
            let next = TestPacket { ecn_capable: true, ..TestPacket::new(packet.flow, number, 1000) };
            let _ = link.enqueue(TinIndex::FIRST, hashes(packet.flow, host), next);
        }
        let share = f64::from(sent[0]) / f64::from(sent[0] + sent[1]);
        prop_assert!((share - 0.5).abs() < 0.02, "{:?}", sent);
    }

    /// A flow's packets leave in the order in which they came.
    #[test]
    fn flows_keep_their_order(
        config in config(),
        arrivals in prop::collection::vec((0u32..20, 1u32..=1514), 1..200),
    ) {
        let mut link = Link::new(Config { bandwidth: config.bandwidth.max(100_000), ..config });
        for (number, (flow, len)) in arrivals.iter().enumerate() {
            // One tin for each flow: a flow that changes its class changes its queue.
            let tin = TinIndex::new(flow % 3);
            let _ = link.send(tin, TestPacket::new(*flow, number as u64, *len));
        }
        let mut last: HashMap<u32, u64> = HashMap::new();
        while let Some(packet) = link.next() {
            let before = last.insert(packet.flow, packet.number);
            prop_assert!(before.is_none_or(|before| before < packet.number));
        }
    }

    /// Headers of any shape are read without harm, and padding changes nothing.
    #[test]
    fn any_bytes_can_be_dissected(
        protocol in prop::sample::select(vec![0x0800u16, 0x86dd, 0x0806, 0x88cc]),
        bytes in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let dscp = dissect::dscp(protocol, &bytes);
        prop_assert!(dscp < 64);
        if let Some(keys) = dissect::plain(protocol, &bytes) {
            let mut padded = bytes.clone();
            padded.extend([0xff; 20]);
            prop_assert_eq!(dissect::plain(protocol, &padded), Some(keys));
        }
    }

    /// Hosts count by their address alone, and modes use no side that they do not isolate.
    #[test]
    fn host_hashes_depend_on_the_address_alone(
        mode in flow_mode(),
        key in any::<[u64; 2]>(),
        src in any::<u32>(),
        dst in any::<u32>(),
        ports in any::<[(u16, u16); 2]>(),
    ) {
        let hashes = ports.map(|ports| {
            dissect::FlowKeys {
                addresses: dissect::Addresses::V4 { src, dst },
                protocol: 17,
                ports,
                label: 0,
            }
            .hashes(mode, &SipKey::new(key), &Known::default())
        });
        prop_assert_eq!(hashes[0].src_host, hashes[1].src_host);
        prop_assert_eq!(hashes[0].dst_host, hashes[1].dst_host);
        if !mode.hashes_src() {
            prop_assert_eq!(hashes[0].src_host, 0);
        }
        if !mode.hashes_dst() {
            prop_assert_eq!(hashes[0].dst_host, 0);
        }
    }

    /// More bytes never take less of the link, and cells are whole.
    #[test]
    fn framing_is_monotonic(framing in framing(), len in 0u32..65_536, offset in 0u32..64) {
        let on_link = |len| framing.adjusted(framing.counted(len, offset));
        prop_assert!(on_link(len) <= on_link(len + 1));
        prop_assert!(on_link(len) >= u32::from(framing.mpu));
        if framing.cells == Cells::Atm {
            prop_assert_eq!(on_link(len) % 53, 0);
        }
    }

    /// A packet waits no longer than the shaper needs for it, whatever was sent before.
    #[test]
    fn shaper_never_stalls(
        rate in 1_000u64..100_000_000,
        lens in prop::collection::vec(64u32..=1514, 1..50),
    ) {
        let config = Config { bandwidth: rate, preset: Preset::Besteffort, ..Config::default() };
        let mut link = Link::new(config);
        for (number, len) in lens.iter().enumerate() {
            let _ = link.send(TinIndex::FIRST, TestPacket::new(1, number as u64, *len));
        }
        let start = link.now;
        let mut sent = 0u64;
        while let Some(packet) = link.next() {
            let due = sent * 1_000_000_000 / rate;
            let late = link.now.since(start.after(due));
            prop_assert!(late <= 1_000 + due / 100_000, "late by {} ns", late);
            sent += u64::from(packet.len);
            let dropped: u64 = link.dropped.iter().map(|(packet, _)| u64::from(packet.len)).sum();
            prop_assert!(sent + dropped <= lens.iter().map(|len| u64::from(*len)).sum());
        }
        prop_assert!(link.now >= Nanos(1));
    }

    /// Without a shaper tins take turns by deficit round robin, as in a plain model of it that
    /// visits each tin in each round.
    #[test]
    fn tins_take_turns_by_weight(
        events in prop::collection::vec((0u32..4, 1u32..=1514, 0u32..4), 1..300),
    ) {
        const QUANTA: [i32; 4] = [1024, 64, 512, 256];
        let mut link = Link::new(Config { preset: Preset::Diffserv4, ..Config::default() });
        let (mut deficits, mut waiting) = ([0i32; 4], [const { VecDeque::new() }; 4]);
        let (mut active, mut current) = ([false; 4], 0);
        for (number, (tin, len, take)) in events.iter().enumerate() {
            let _ = link.send(TinIndex::new(*tin), TestPacket::new(*tin, number as u64, *len));
            waiting[*tin as usize].push_back(*len);
            active[*tin as usize] = true;
            for _ in 0..*take {
                let expected = (0..10_000).find_map(|_| {
                    if waiting.iter().all(VecDeque::is_empty) {
                        return Some(None);
                    }
                    if active[current] && deficits[current] >= 0 {
                        let Some(len) = waiting[current].pop_front() else {
                            active[current] = false;
                            return None;
                        };
                        deficits[current] -= len as i32;
                        return Some(Some(current as u32));
                    }
                    if deficits[current] <= 0 {
                        deficits[current] += QUANTA[current];
                    }
                    current = (current + 1) % 4;
                    None
                });
                let sent = match link.dequeue() {
                    Decision::Send(packet) => Some(packet.flow),
                    _ => None,
                };
                prop_assert_eq!(Some(sent), expected);
            }
        }
    }
}
