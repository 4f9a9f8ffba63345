// SPDX-License-Identifier: GPL-2.0

//! Settings of single tins: what follows from them, and what a threshold promises.

mod support;

use cake::cake::{
    config::{Config, Threshold, TinConfig},
    diffserv::{self, Classes, CodePoints, Preset},
    index::TinIndex,
    tin::TinParams,
    Decision, Nanos,
};
use proptest::prelude::*;
use support::{Link, TestPacket, MTU};

const MS: u64 = 1_000_000;
const BULK: TinIndex = TinIndex::new(1);
const VOICE: TinIndex = TinIndex::new(2);
const RATE: u64 = 250_000;

/// A 2 Mbit/s line in `diffserv3` with settings for Voice.
fn with_voice(voice: TinConfig) -> Config {
    let mut config = Config {
        bandwidth: RATE,
        ..Config::default()
    };
    *config.tin_mut(VOICE) = voice;
    config
}

fn voice_params(voice: TinConfig) -> TinParams {
    TinParams::derive(&with_voice(voice), VOICE, MTU)
}

#[test]
fn untouched_tins_are_as_the_preset_has_them() {
    let params = voice_params(TinConfig::default());
    assert_eq!(params.threshold, RATE / 4);
    assert_eq!(params.quantum, 256);
    assert_eq!(params.burst, params.pace.duration(MTU));
}

#[test]
fn share_follows_the_bandwidth() {
    let mut config = with_voice(TinConfig {
        threshold: Threshold::Share(500_000),
        ..TinConfig::default()
    });
    for bandwidth in [2, RATE, 1 << 40, u64::MAX] {
        config.bandwidth = bandwidth;
        let half = TinParams::derive(&config, VOICE, MTU).threshold;
        assert!(half.abs_diff(bandwidth / 2) <= 1, "{half} of {bandwidth}");
    }
    config.bandwidth = 1;
    assert_eq!(TinParams::derive(&config, VOICE, MTU).threshold, 1);
}

#[test]
fn share_is_the_weight_when_unlimited() {
    let mut config = with_voice(TinConfig {
        threshold: Threshold::Share(500_000),
        ..TinConfig::default()
    });
    config.bandwidth = 0;
    let params = TinParams::derive(&config, VOICE, MTU);
    assert_eq!((params.threshold, params.quantum), (0, 512));
    config.tin_mut(VOICE).threshold = Threshold::Share(1);
    assert_eq!(TinParams::derive(&config, VOICE, MTU).quantum, 1);
}

#[test]
fn rate_stays_when_the_bandwidth_changes_and_is_divided_among_sharers() {
    let config = with_voice(TinConfig {
        threshold: Threshold::Rate(100_000),
        ..TinConfig::default()
    });
    assert_eq!(TinParams::derive(&config, VOICE, MTU).threshold, 100_000);
    let part = config.shared_by(4);
    assert_eq!(part.bandwidth, RATE / 4);
    assert_eq!(TinParams::derive(&part, VOICE, MTU).threshold, 25_000);
    assert_eq!(config.shared_by(0), config);
}

#[test]
fn target_and_interval_are_honoured_as_given() {
    let cobalt = |target_us, interval_us| {
        let params = voice_params(TinConfig {
            target_us,
            interval_us,
            ..TinConfig::default()
        });
        (params.cobalt.target, params.cobalt.interval)
    };
    assert_eq!(cobalt(10_000, 60_000), (10 * MS, 60 * MS));
    assert_eq!(cobalt(1, 2), (1_000, 2_000));
    // A target alone stretches the interval as the slow line's own would.
    assert_eq!(cobalt(1_000, 0), (MS, 100 * MS));
    assert_eq!(cobalt(80_000, 0), (80 * MS, 175 * MS));
    // An interval alone leaves the target at the 36 ms that a packet needs, or half of itself.
    assert_eq!(cobalt(0, 500_000), (36_336_000, 500 * MS));
    assert_eq!(cobalt(0, 20_000), (10 * MS, 20 * MS));
}

#[test]
fn burst_is_time_at_the_threshold() {
    let burst = |bytes| {
        voice_params(TinConfig {
            burst: Some(bytes),
            ..TinConfig::default()
        })
        .burst
    };
    assert_eq!(burst(0), 0);
    assert_eq!(burst(625), 10 * MS);
}

#[test]
fn code_points_go_where_they_are_sent() {
    let mut config = with_voice(TinConfig {
        code_points: CodePoints((1 << 32) | (1 << 8)),
        ..TinConfig::default()
    });
    config.tin_mut(BULK).code_points = CodePoints(1 << 46);
    let classes = Classes::of(&config);
    assert_eq!(classes.tin(32), VOICE);
    assert_eq!(classes.tin(8), VOICE);
    assert_eq!(classes.tin(46), BULK);
    assert_eq!(classes.tin(56), VOICE);
    assert_eq!(classes.tin(0), TinIndex::FIRST);
}

#[test]
fn settings_go_with_the_preset() {
    let set = with_voice(TinConfig {
        target_us: 10,
        ..TinConfig::default()
    });
    let mut config = set;
    config.set_preset(Preset::Diffserv3);
    assert_eq!(config, set);
    config.set_preset(Preset::Diffserv4);
    config.set_preset(Preset::Diffserv3);
    assert_eq!(config, with_voice(TinConfig::default()));
}

/// A packet that was sent.
struct Sent {
    at: Nanos,
    tin: TinIndex,
    len: u64,
    /// Whether a tin below it waited.
    ahead: bool,
}

/// Plays `arrivals` of (gap in ns, tin, bytes) while Best Effort and Bulk always have packets.
fn play(config: Config, arrivals: &[(u64, u32, u32)]) -> Vec<Sent> {
    let mut link = Link::new(config);
    let mut sent = Vec::new();
    let mut waiting = [0u32; 4];
    let mut number = 0;
    let mut arrive = |link: &mut Link, waiting: &mut [u32; 4], tin: u32, len: u32| {
        number += 1;
        let packet = TestPacket {
            ecn_capable: true,
            ..TestPacket::new(tin, number, len)
        };
        let _ = link.send(TinIndex::new(tin), packet);
        waiting[tin as usize] += 1;
    };
    for (gap, tin, len) in arrivals {
        let next = link.now.after(*gap);
        loop {
            for tin in 0..2 {
                while waiting[tin as usize] < 2 {
                    arrive(&mut link, &mut waiting, tin, MTU);
                }
            }
            match link.dequeue() {
                Decision::Send(packet) => {
                    let tin = packet.flow as usize;
                    waiting[tin] -= 1;
                    sent.push(Sent {
                        at: link.now,
                        tin: TinIndex::new(packet.flow),
                        len: packet.len.into(),
                        ahead: waiting[..tin].iter().any(|count| *count != 0),
                    });
                }
                Decision::Wait(until) if until < next => link.now = until,
                _ => break,
            }
        }
        link.now = next;
        arrive(&mut link, &mut waiting, *tin, *len);
    }
    assert!(link.dropped.is_empty());
    sent
}

prop_compose! {
    fn tin_config()(
        threshold in prop_oneof![
            Just(Threshold::Preset),
            (10_000u32..=1_000_000).prop_map(Threshold::Share),
            (2_000u64..250_000).prop_map(Threshold::Rate),
        ],
        // Without a burst a tin saves up what higher tins keep it from sending, as in the C module.
        burst in prop_oneof![Just(None), (1u32..20_000).prop_map(Some)],
    ) -> TinConfig {
        // Nothing is to be dropped.
        TinConfig { threshold, burst, target_us: 1_000_000_000, ..TinConfig::default() }
    }
}

proptest! {
    /// In any window a tin sends ahead of waiting lower tins what its threshold lets it send in
    /// that time, and in the time that the packet in front of it took, plus its burst and the
    /// packet with which it goes over.
    #[test]
    fn priority_is_bounded_in_any_window(
        video in tin_config(),
        voice in tin_config(),
        arrivals in prop::collection::vec((0u64..20_000_000, 2u32..4, 64u32..=MTU), 1..300),
    ) {
        let mut config = Config {
            bandwidth: RATE,
            preset: Preset::Diffserv4,
            target_us: 1_000_000_000,
            rtt_us: 2_000_000_000,
            memory: 1 << 30,
            ..Config::default()
        };
        *config.tin_mut(TinIndex::new(2)) = video;
        *config.tin_mut(TinIndex::new(3)) = voice;
        let sent = play(config, &arrivals);
        let front = u64::from(MTU) * 1_000_000_000 / RATE;
        for tin in [2, 3].map(TinIndex::new) {
            let params = TinParams::derive(&config, tin, MTU);
            let bytes = |ns: u64| u128::from(ns) * u128::from(params.threshold) / 1_000_000_000;
            for (i, first) in sent.iter().enumerate() {
                let mut total = 0;
                for packet in &sent[i..] {
                    if packet.tin == tin && packet.ahead {
                        total += packet.len;
                    }
                    let window = packet.at.since(first.at);
                    let most = bytes(window + front + params.burst) + u128::from(MTU) + 2;
                    prop_assert!(
                        u128::from(total) <= most,
                        "tin {tin:?}: {total} in {window} ns, at most {most}"
                    );
                }
            }
        }
    }
}

/// The code points that a cell of the manual's table names: `af2x` is three, `8 to 15` a range.
fn code_points_of(cell: &str) -> Vec<u8> {
    if let Some((first, last)) = cell.split_once(" to ") {
        return (first.parse().unwrap()..=last.parse().unwrap()).collect();
    }
    cell.split(' ')
        .flat_map(|name| {
            let stem = name.trim_end_matches('x');
            let is_named = move |known: &str| {
                known == name || (stem != name && known[..known.len() - 1] == *stem)
            };
            diffserv::NAMES
                .iter()
                .filter(move |(known, _)| is_named(known))
                .map(|(_, point)| *point)
        })
        .collect()
}

#[test]
fn manual_tells_code_points_and_bursts_of_all_presets() {
    let page = include_str!("../src/tc/tc-cake-tins.8");
    let table = page.split(".SH PRESETS").nth(1).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|cells| cells.len() == 6 && cells[0] != "Tin")
        .collect();
    let mut rows = rows.iter();
    for preset in [
        Preset::Diffserv3,
        Preset::Diffserv4,
        Preset::Diffserv8,
        Preset::Precedence,
        Preset::Besteffort,
    ] {
        let config = Config {
            bandwidth: RATE,
            preset,
            ..Config::default()
        };
        let classes = Classes::of(&config);
        let mut unnamed: Vec<u8> = (0..64).collect();
        let mut rest = None;
        for (display, name) in (0..).zip(preset.tin_names()) {
            let row = rows.next().unwrap();
            let tin = preset.tin_at(display).unwrap();
            assert_eq!(row[0], *name, "{preset:?}");
            let params = TinParams::derive(&config, tin, MTU);
            let burst = if params.burst == 0 { "0" } else { "1514b" };
            assert_eq!(row[5], burst, "{preset:?} {name}");
            assert!([0, params.pace.duration(MTU)].contains(&params.burst));
            if row[1].starts_with("all") {
                rest = Some(tin);
                continue;
            }
            let named = code_points_of(row[1]);
            assert!(!named.is_empty(), "{preset:?} {name}");
            for point in named {
                assert_eq!(classes.tin(point), tin, "{preset:?} {name} {point}");
                unnamed.retain(|other| *other != point);
            }
        }
        for point in unnamed {
            assert_eq!(Some(classes.tin(point)), rest, "{preset:?} {point}");
        }
    }
    assert!(rows.next().is_none());
}
