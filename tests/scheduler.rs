// SPDX-License-Identifier: GPL-2.0

//! The scheduler as a whole: what a router owner would notice.

mod support;

use cake::cake::{
    diffserv::Preset,
    hash::{FlowHashes, FlowMode},
    index::TinIndex,
    overhead::{Cells, Framing},
    scheduler::Decision,
    units::NSEC_PER_SEC,
    Config,
};
use support::{Link, TestPacket};

const MBIT: u64 = 1_000_000 / 8;
const VOICE: TinIndex = TinIndex::new(2);

fn seed_config() -> Config {
    Config {
        bandwidth: 1_969_230 / 8,
        framing: Framing {
            overhead: 34,
            raw: false,
            ..Framing::default()
        },
        flow_mode: FlowMode::DualSrcHost,
        ..Config::default()
    }
}

#[test]
fn seed_line_has_the_tins_that_tc_shows() {
    let mut link = Link::new(seed_config());
    let tins: Vec<_> = (0..3)
        .map(|display| link.scheduler.tin_stats(display, link.now).unwrap())
        .map(|tin| (tin.threshold_rate * 8, tin.target_us, tin.interval_us))
        .collect();
    assert_eq!(
        tins,
        [
            (123_072, 147_620, 295_241),
            (1_969_224, 9_225, 104_225),
            (492_304, 36_904, 131_904),
        ]
    );
}

#[test]
fn empty_instance_has_nothing_to_send() {
    let mut link = Link::new(Config::default());
    assert!(matches!(link.dequeue(), Decision::Empty));
}

#[test]
fn unlimited_instance_sends_at_once_and_in_order() {
    let mut link = Link::new(Config::default());
    for number in 0..100 {
        let _ = link.send(TinIndex::FIRST, TestPacket::new(1, number, 1514));
    }
    for number in 0..100 {
        assert_eq!(link.next().map(|packet| packet.number), Some(number));
    }
    assert_eq!(link.scheduler.qlen(), 0);
    assert_eq!(link.backlog(), 0);
}

/// Offers twice the rate for `seconds` and returns the rate reached.
fn rate_reached(config: Config, seconds: u64) -> f64 {
    let mut link = Link::new(config);
    let start = link.now;
    let mut first = None;
    let mut bytes = 0u64;
    let mut number = 0;
    loop {
        while link.scheduler.qlen() < 50 {
            let _ = link.send(TinIndex::FIRST, TestPacket::new(1, number, 1514));
            number += 1;
        }
        let packet = link.next().unwrap();
        if let Some(first) = first {
            bytes += u64::from(packet.tag.adjusted_len);
            if link.now.since(start) > seconds * NSEC_PER_SEC {
                return bytes as f64 * NSEC_PER_SEC as f64 / link.now.since(first) as f64;
            }
        } else {
            first = Some(link.now);
        }
    }
}

#[test]
fn shaper_keeps_the_rate_within_a_thousandth() {
    for bandwidth in [8_000, MBIT * 2, MBIT * 100, MBIT * 1000] {
        for cells in [Cells::None, Cells::Atm, Cells::Ptm] {
            let config = Config {
                bandwidth,
                preset: Preset::Besteffort,
                framing: Framing {
                    overhead: 34,
                    cells,
                    raw: false,
                    mpu: 0,
                },
                ..Config::default()
            };
            let rate = rate_reached(config, if bandwidth == 8_000 { 60 } else { 1 });
            let error = (rate / bandwidth as f64 - 1.0).abs();
            assert!(error < 0.001, "{bandwidth} byte/s {cells:?}: {rate} byte/s");
        }
    }
}

#[test]
fn voice_burst_never_waits_behind_two_full_packets() {
    let mut link = Link::new(seed_config());
    for number in 0..20 {
        let _ = link.send(TinIndex::FIRST, TestPacket::new(1, number, 1514));
    }
    assert_eq!(link.next().map(|packet| packet.flow), Some(1));
    for flow in 2..5 {
        let _ = link.send(VOICE, TestPacket::new(flow, 0, 192));
    }
    let flows: Vec<_> = (0..4).map(|_| link.next().unwrap().flow).collect();
    assert_eq!(flows, [2, 3, 4, 1]);
}

#[test]
fn voice_above_its_threshold_yields_to_best_effort() {
    let mut link = Link::new(seed_config());
    let mut sent = [0u64; 2];
    let mut number = 0;
    for _ in 0..2000 {
        number += 1;
        let _ = link.send(TinIndex::FIRST, TestPacket::new(0, number, 1000));
        let _ = link.send(VOICE, TestPacket::new(1, number, 1000));
        sent[link.next().unwrap().flow as usize] += 1;
    }
    let share = sent[1] as f64 / 2000.0;
    assert!((0.24..0.27).contains(&share), "Voice took {share}");
}

#[test]
fn host_gets_its_half_however_many_flows_the_other_has() {
    for (mode, shared_is_src) in [
        (FlowMode::DualSrcHost, true),
        (FlowMode::DualDstHost, false),
    ] {
        let mut link = Link::new(Config {
            bandwidth: MBIT * 20,
            preset: Preset::Besteffort,
            flow_mode: mode,
            ..Config::default()
        });
        let mut sent = [0u64; 2];
        let mut queued = [0u32; 9];
        for _ in 0..20_000 {
            for flow in 0..9u32 {
                while queued[flow as usize] < 4 {
                    let host = u32::from(flow == 8) + 77;
                    let hashes = FlowHashes {
                        flow: flow * 8 + 5,
                        src_host: if shared_is_src { host } else { 1 },
                        dst_host: if shared_is_src { 1 } else { host },
                    };
                    let _ = link.enqueue(TinIndex::FIRST, hashes, TestPacket::new(flow, 0, 1514));
                    queued[flow as usize] += 1;
                }
            }
            let dropped = link.dropped.len();
            let packet = link.next().unwrap();
            queued[packet.flow as usize] -= 1;
            for (packet, _) in &link.dropped[dropped..] {
                queued[packet.flow as usize] -= 1;
            }
            sent[usize::from(packet.flow == 8)] += 1;
        }
        let share = sent[1] as f64 / 20_000.0;
        assert!((0.49..0.51).contains(&share), "{mode:?}: {share}");
    }
}

#[test]
fn memory_limit_costs_the_longest_queue_its_head() {
    let mut link = Link::new(Config {
        memory: 100_000,
        ..Config::default()
    });
    let _ = link.send(TinIndex::FIRST, TestPacket::new(1, 0, 1000));
    for number in 0..200 {
        let _ = link.send(VOICE, TestPacket::new(2, number, 1000));
    }
    assert!(!link.dropped.is_empty());
    let numbers: Vec<_> = link
        .dropped
        .iter()
        .map(|(p, _)| (p.flow, p.number))
        .collect();
    let expected: Vec<_> = (0..numbers.len() as u64).map(|n| (2, n)).collect();
    assert_eq!(numbers, expected);
    let stats = link.scheduler.stats();
    assert!(stats.memory_used <= 100_000 + 1256, "{}", stats.memory_used);
}

#[test]
fn change_of_preset_keeps_every_packet() {
    let mut link = Link::new(Config {
        preset: Preset::Diffserv8,
        ..Config::default()
    });
    for flow in 0..64u32 {
        for number in 0..3 {
            let tin = TinIndex::new(flow % 8);
            let _ = link.send(tin, TestPacket::new(flow, number, 500));
        }
    }
    link.reconfigure(Config {
        preset: Preset::Besteffort,
        ..Config::default()
    });
    let mut next = [0; 64];
    while let Some(packet) = link.next() {
        assert_eq!(packet.number, next[packet.flow as usize], "reordered");
        next[packet.flow as usize] += 1;
    }
    assert_eq!(next, [3; 64]);
    assert!(link.dropped.is_empty());
}

/// Keeps a queue standing while the configuration changes from one bandwidth to another, and
/// returns what is sent in the first second after that.
fn sent_after_change(from: u64, to: u64) -> u64 {
    let config = Config {
        bandwidth: from,
        target_us: 60_000_000,
        rtt_us: 120_000_000,
        memory: 100_000_000,
        ..Config::default()
    };
    let mut link = Link::new(config);
    for number in 0..5_000 {
        let _ = link.send(VOICE, TestPacket::new(1, number, 1514));
        let _ = link.send(TinIndex::FIRST, TestPacket::new(2, number, 1514));
    }
    assert!(link.next().is_some());
    link.now = link.now.after(10 * NSEC_PER_SEC);
    assert!(link.next().is_some() && link.next().is_some());
    link.reconfigure(Config {
        bandwidth: to,
        ..config
    });
    let (start, mut bytes) = (link.now, 0);
    while let Some(packet) = link.next() {
        if link.now.since(start) >= NSEC_PER_SEC {
            break;
        }
        bytes += u64::from(packet.len);
    }
    bytes
}

#[test]
fn change_of_bandwidth_takes_effect_at_once() {
    // Unlimited time is not saved up, and the debt of a slow packet does not block a fast line.
    for (from, to) in [(0, MBIT), (1_000, MBIT), (1_000, 0)] {
        let sent = sent_after_change(from, to);
        let most = if to == 0 {
            5_000 * 1514 * 2
        } else {
            to + 2 * 1514
        };
        assert!(sent <= most, "{from} to {to}: {sent} bytes");
        assert!(sent >= most - 6 * 1514, "{from} to {to}: {sent} bytes");
    }
}

#[test]
fn tin_saves_up_no_priority_while_unlimited() {
    let voice_of = |from: u64| {
        let config = Config {
            bandwidth: from,
            preset: Preset::Diffserv4,
            target_us: 60_000_000,
            rtt_us: 120_000_000,
            memory: 100_000_000,
            ..Config::default()
        };
        let mut link = Link::new(config);
        for number in 0..2_000 {
            let _ = link.send(TinIndex::new(3), TestPacket::new(1, number, 1514));
            let _ = link.send(TinIndex::FIRST, TestPacket::new(2, number, 1514));
        }
        link.now = link.now.after(10 * NSEC_PER_SEC);
        link.reconfigure(Config {
            bandwidth: MBIT,
            ..config
        });
        let sent = (0..100).filter(|_| link.next().is_some_and(|packet| packet.flow == 1));
        sent.count()
    };
    assert!(voice_of(0).abs_diff(25) <= 3, "{} of 100", voice_of(0));
}
