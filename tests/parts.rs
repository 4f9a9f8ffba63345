// SPDX-License-Identifier: GPL-2.0

//! The parts one by one: tables, formulas and parsers against what their sources say.

mod support;

use cake::cake::{
    cobalt::{Blue, CobaltParams, CobaltState, Verdict},
    config::Config,
    diffserv::{Classes, Preset},
    dissect::{self, Addresses, FlowKeys, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6},
    hash::{ways, FlowMode, Known},
    index::{FlowIndex, TinIndex},
    overflow::Backlogs,
    overhead::{Cells, Framing},
    packet::DropReason,
    random::Random,
    shaper::{LinkClock, Pace, TinClock},
    siphash::{SipHash, SipKey},
    tags::Tags,
    tin::TinParams,
    Nanos,
};
use std::hash::Hasher;

const MS: u64 = 1_000_000;
const PARAMS: CobaltParams = CobaltParams {
    target: 5 * MS,
    interval: 100 * MS,
    mtu_time: MS / 10,
};

/// The tins of all 64 code points, a row for each precedence.
fn map(preset: Preset) -> Vec<String> {
    let config = Config {
        preset,
        ..Config::default()
    };
    map_of(&config)
}

/// The same under a whole configuration.
fn map_of(config: &Config) -> Vec<String> {
    let classes = Classes::of(config);
    let tin = |point: u8| classes.tin(point).at().to_string();
    (0..8)
        .map(|row| (0..8).map(|column| tin(row * 8 + column)).collect())
        .collect()
}

#[test]
fn presets_send_code_points_where_the_manual_says() {
    assert_eq!(map(Preset::Besteffort), ["00000000"; 8]);
    assert_eq!(
        map(Preset::Precedence),
        [
            "00000000", "11111111", "22222222", "33333333", "44444444", "55555555", "66666666",
            "77777777"
        ]
    );
    assert_eq!(
        map(Preset::Diffserv3),
        [
            "01002000", "10000000", "00000000", "00000000", "00000000", "00002020", "20000000",
            "20000000"
        ]
    );
    assert_eq!(
        map(Preset::Diffserv4),
        [
            "01002000", "10000000", "20202020", "20202020", "30202020", "30003030", "30000000",
            "30000000"
        ]
    );
    assert_eq!(
        map(Preset::Diffserv8),
        [
            "20124222", "12121212", "52424242", "32323232", "62323232", "62226262", "72222222",
            "72222222"
        ]
    );
}

#[test]
fn display_order_puts_bulk_first() {
    let order = |preset: Preset| -> Vec<_> {
        (0..9)
            .map_while(|display| preset.tin_at(display))
            .map(TinIndex::at)
            .collect()
    };
    assert_eq!(order(Preset::Besteffort), [0]);
    assert_eq!(order(Preset::Diffserv3), [1, 0, 2]);
    assert_eq!(order(Preset::Diffserv4), [1, 0, 2, 3]);
    assert_eq!(order(Preset::Diffserv8), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(order(Preset::Precedence), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn tins_get_their_shares_and_weights() {
    let specs = |preset: Preset| -> Vec<_> {
        preset
            .tins()
            .map(|tin| preset.spec(tin, 1 << 20))
            .map(|spec| (spec.threshold, spec.quantum, spec.above_best_effort))
            .collect()
    };
    assert_eq!(specs(Preset::Besteffort), [(1 << 20, 65535, false)]);
    assert_eq!(
        specs(Preset::Diffserv3),
        [
            (1 << 20, 1024, false),
            (1 << 16, 64, false),
            (1 << 18, 256, true)
        ]
    );
    assert_eq!(
        specs(Preset::Diffserv4),
        [
            (1 << 20, 1024, false),
            (1 << 16, 64, false),
            (1 << 19, 512, true),
            (1 << 18, 256, true)
        ]
    );
    let eighths = [
        (1048576, 256),
        (917504, 224),
        (802816, 196),
        (702464, 171),
        (614656, 149),
        (537824, 130),
        (470596, 113),
        (411771, 98),
    ];
    for (preset, best_effort) in [(Preset::Diffserv8, 2), (Preset::Precedence, 0)] {
        let expected: Vec<_> = (0..8)
            .map(|tin| (eighths[tin].0, eighths[tin].1, tin > best_effort))
            .collect();
        assert_eq!(specs(preset), expected);
    }
}

#[test]
fn slow_tins_get_targets_that_a_packet_fits_into() {
    let config = Config {
        bandwidth: 64_000 / 8,
        ..Config::default()
    };
    let bulk = TinParams::derive(&config, TinIndex::new(1), 1514);
    // 1514 bytes at 500 byte/s take 3.028 s, half as much again is the target.
    assert_eq!(bulk.cobalt.mtu_time / MS, 3028);
    assert_eq!(bulk.cobalt.target / MS, 4542);
    assert_eq!(bulk.cobalt.interval / MS, 9084);
    assert_eq!(bulk.burst, 0);
    let voice = TinParams::derive(&config, TinIndex::new(2), 1514);
    assert_eq!(voice.burst, voice.cobalt.mtu_time);

    let unlimited = TinParams::derive(&Config::default(), TinIndex::FIRST, 1514);
    assert_eq!(unlimited.cobalt.target, 5 * MS);
    assert_eq!(unlimited.cobalt.interval, 100 * MS);
    assert_eq!(unlimited.flow_quantum, 1514);
    assert!(unlimited.pace.is_unlimited());
}

#[test]
fn flow_quantum_follows_the_rate_between_300_and_1514_bytes() {
    let quantum = |bandwidth| {
        let config = Config {
            bandwidth,
            ..Config::default()
        };
        TinParams::derive(&config, TinIndex::FIRST, 1514).flow_quantum
    };
    assert_eq!(quantum(1), 300);
    assert_eq!(quantum(300 << 12), 300);
    assert_eq!(quantum(1000 << 12), 1000);
    assert_eq!(quantum(1514 << 12), 1514);
    assert_eq!(quantum(u64::MAX), 1514);
}

#[test]
fn memory_limit_is_four_products_of_bandwidth_and_delay() {
    let limit = |bandwidth, memory| {
        let config = Config {
            bandwidth,
            memory,
            ..Config::default()
        };
        config.memory_limit(1514)
    };
    assert_eq!(limit(0, 0), 10_240 * 1514);
    assert_eq!(limit(1, 0), 4 << 20);
    assert_eq!(limit(12_500_000, 0), 5_000_000);
    assert_eq!(limit(125_000_000, 0), 10_240 * 1514);
    assert_eq!(limit(125_000_000, 70_000), 70_000);
    assert_eq!(limit(0, 100_000_000), 100_000_000);
}

#[test]
fn firewall_mark_names_a_tin_from_one() {
    let tin = |fwmark, mark| {
        let config = Config {
            fwmark,
            ..Config::default()
        };
        config.marked_tin(mark)
    };
    assert_eq!(tin(0, 3), None);
    assert_eq!(tin(0xff, 0), None);
    assert_eq!(tin(0xff, 0x103), Some(2));
    assert_eq!(tin(0xf0, 0x2f), Some(1));
    assert_eq!(tin(0x8000_0000, u32::MAX), Some(0));
}

#[test]
fn framing_counts_what_the_link_adds() {
    let framing = |overhead, mpu, cells| Framing {
        overhead,
        mpu,
        cells,
        raw: false,
    };
    assert_eq!(framing(34, 0, Cells::None).adjusted(1500), 1534);
    assert_eq!(framing(0, 84, Cells::None).adjusted(40), 84);
    assert_eq!(framing(-64, 0, Cells::None).adjusted(20), 0);
    assert_eq!(framing(0, 0, Cells::Atm).adjusted(48), 53);
    assert_eq!(framing(0, 0, Cells::Atm).adjusted(49), 106);
    assert_eq!(framing(0, 0, Cells::Ptm).adjusted(64), 65);
    assert_eq!(framing(0, 0, Cells::Ptm).adjusted(65), 67);
    assert_eq!(framing(10, 0, Cells::None).counted(1514, 14), 1500);
    assert_eq!(framing(10, 0, Cells::None).counted(5, 14), 0);
    assert_eq!(Framing::default().counted(1514, 14), 1514);
}

#[test]
fn pace_is_exact_at_slow_and_fast_rates() {
    for rate in [
        64,
        8_000,
        246_153,
        12_500_000,
        1_250_000_000,
        100_000_000_000,
    ] {
        let pace = Pace::of_rate(rate);
        let exact = 1_000_000_000f64 * 1500. / rate as f64;
        let error = (pace.duration(1500) as f64 - exact).abs();
        assert!(error <= 1. + exact / 1e9, "{rate}: {error} ns off");
    }
    assert_eq!(Pace::of_rate(1), Pace::of_rate(64));
    assert!(Pace::of_rate(0).is_unlimited());
    assert_eq!(Pace::of_rate(0).duration(1500), 0);
}

#[test]
fn link_clock_keeps_time_and_forgives_idleness() {
    let mut clock = LinkClock::default();
    clock.wake(Nanos(100));
    assert_eq!(clock.wait(Nanos(100)), None);
    clock.sent(10);
    assert_eq!(clock.wait(Nanos(100)), Some(Nanos(110)));
    assert_eq!(clock.wait(Nanos(110)), None);
    clock.wake(Nanos(105));
    assert_eq!(clock.wait(Nanos(105)), Some(Nanos(110)));
    clock.wake(Nanos(1000));
    clock.sent(10);
    assert_eq!(clock.wait(Nanos(1000)), Some(Nanos(1010)));
}

#[test]
fn failsafe_clock_lets_two_thirds_through_a_flood_of_drops() {
    let mut clock = LinkClock::default();
    clock.wake(Nanos(0));
    clock.sent(10);
    clock.dropped(1000);
    assert_eq!(clock.wait(Nanos(0)), Some(Nanos(15)));
}

#[test]
fn failsafe_clock_saves_up_no_idle_time() {
    let mut clock = LinkClock::default();
    clock.wake(Nanos(0));
    clock.dropped(1000);
    clock.wake(Nanos(500));
    clock.sent(10);
    assert_eq!(clock.wait(Nanos(500)), Some(Nanos(515)));
}

#[test]
fn tin_clock_gives_credit_for_idleness_up_to_the_burst() {
    let mut clock = TinClock::default();
    clock.wake(Nanos(1000), 100);
    assert_eq!(clock.next(), Nanos(900));
    clock.charge(Nanos(1000), 100, 80);
    assert!(clock.next() <= Nanos(1000));
    clock.charge(Nanos(1000), 100, 80);
    assert!(clock.next() > Nanos(1000));
    assert_eq!(clock.next(), Nanos(1060));
    // Sending on others' bandwidth runs up no debt beyond one packet.
    clock.charge(Nanos(1000), 100, 80);
    assert_eq!(clock.next(), Nanos(1080));
    clock.charge(Nanos(1000), 100, 80);
    assert_eq!(clock.next(), Nanos(1080));
}

#[test]
fn siphash_agrees_with_the_standard_library() {
    let tail = 0x0076_5432_1fed_cba9u64;
    for words in [vec![], vec![1], vec![u64::MAX, 0x0123_4567_89ab_cdef]] {
        for len in 0..=7 {
            let mut theirs = std::hash::DefaultHasher::new();
            let mut ours = SipHash::new(&SipKey::new([0, 0]));
            for word in &words {
                theirs.write_u64(*word);
                ours = ours.word(*word);
            }
            theirs.write(&tail.to_le_bytes()[..len]);
            let theirs = theirs.finish();
            let ours = ours.finish(tail & ((1 << (8 * len)) - 1), len as u64);
            assert_eq!(ours, (theirs ^ (theirs >> 32)) as u32);
        }
    }
}

#[test]
fn ways_are_the_eight_places_of_a_set() {
    let places: Vec<_> = ways(1024 + 13).collect();
    assert_eq!(places, [13, 14, 15, 8, 9, 10, 11, 12]);
}

#[test]
fn modes_hash_what_they_isolate_and_nothing_else() {
    let keys = FlowKeys {
        addresses: Addresses::V4 { src: 1, dst: 2 },
        protocol: 6,
        ports: (3, 4),
        label: 0,
    };
    let key = SipKey::new([5, 6]);
    let of = |keys: &FlowKeys, mode| keys.hashes(mode, &key, &Known::default());
    let other_port = FlowKeys {
        ports: (3, 5),
        ..keys
    };
    let other_src = FlowKeys {
        addresses: Addresses::V4 { src: 9, dst: 2 },
        ..keys
    };
    for (mode, ports, src, src_host, dst_host) in [
        (FlowMode::Flowblind, false, false, false, false),
        (FlowMode::SrcHost, false, true, true, false),
        (FlowMode::DstHost, false, false, false, true),
        (FlowMode::Hosts, false, true, true, true),
        (FlowMode::Flows, true, true, false, false),
        (FlowMode::DualSrcHost, true, true, true, false),
        (FlowMode::DualDstHost, true, true, false, true),
        (FlowMode::Triple, true, true, true, true),
    ] {
        let hashes = of(&keys, mode);
        assert_eq!(hashes.flow != of(&other_port, mode).flow, ports, "{mode:?}");
        assert_eq!(hashes.flow != of(&other_src, mode).flow, src, "{mode:?}");
        assert_eq!(hashes.src_host != 0, src_host, "{mode:?}");
        assert_eq!(hashes.dst_host != 0, dst_host, "{mode:?}");
    }
    let known = keys.hashes(
        FlowMode::Triple,
        &key,
        &Known {
            flow: Some(77),
            host: None,
        },
    );
    assert_eq!(known.flow, 77);
}

const V4: [u8; 28] = [
    0x45, 0xb9, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0,
    53, 0, 8, 0, 0,
];

fn v6() -> Vec<u8> {
    let mut packet = vec![0x6b, 0x90, 0, 0, 0, 8, 6, 64];
    packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend([0x12, 0x34, 0, 80]);
    packet
}

#[test]
fn plain_packets_are_dissected() {
    assert_eq!(
        dissect::plain(ETH_P_IP, &V4),
        Some(FlowKeys {
            addresses: Addresses::V4 {
                src: 0xc000_0201,
                dst: 0xc633_6402
            },
            protocol: 17,
            ports: (0x1234, 53),
            label: 0
        })
    );
    assert_eq!(
        dissect::plain(ETH_P_IPV6, &v6()),
        Some(FlowKeys {
            addresses: Addresses::V6 {
                src: [0x2001_0db8_0000_0000, 1],
                dst: [0x2001_0db8_0000_0000, 2]
            },
            protocol: 6,
            ports: (0x1234, 80),
            label: 0
        })
    );
}

#[test]
fn packets_that_are_not_plain_are_left_to_the_kernel() {
    let changed = |at: usize, byte: u8| {
        let mut packet = V4;
        packet[at] = byte;
        packet
    };
    for packet in [
        changed(0, 0x46),
        changed(0, 0x55),
        changed(6, 0x20),
        changed(7, 1),
        changed(9, 47),
    ] {
        assert_eq!(dissect::plain(ETH_P_IP, &packet), None);
    }
    let mut labelled = v6();
    labelled[3] = 1;
    assert_eq!(dissect::plain(ETH_P_IPV6, &labelled), None);
    let mut extended = v6();
    extended[6] = 0;
    assert_eq!(dissect::plain(ETH_P_IPV6, &extended), None);
    assert_eq!(dissect::plain(ETH_P_ARP, &V4), None);
}

#[test]
fn truncated_packets_are_left_to_the_kernel() {
    for len in 0..24 {
        assert_eq!(dissect::plain(ETH_P_IP, &V4[..len]), None);
    }
    for len in 0..44 {
        assert_eq!(dissect::plain(ETH_P_IPV6, &v6()[..len]), None);
    }
}

#[test]
fn code_point_is_read_from_either_protocol() {
    assert_eq!(dissect::dscp(ETH_P_IP, &V4), 46);
    assert_eq!(dissect::dscp(ETH_P_IPV6, &v6()), 46);
    assert_eq!(dissect::dscp(ETH_P_ARP, &[]), 56);
    assert_eq!(dissect::dscp(ETH_P_IP, &V4[..1]), 0);
    assert_eq!(dissect::dscp(0x8863, &V4), 0);
}

/// Runs a queue whose packets all wait for `sojourn`, one a millisecond, and returns at which
/// milliseconds CoDel signals.
fn signals(state: &mut CobaltState, sojourn: u64, from: u64, for_ms: u64) -> Vec<u64> {
    let mut random = Random::new(1);
    (from..from + for_ms)
        .filter(|ms| {
            let now = Nanos(ms * MS);
            let verdict = state.judge(&PARAMS, now, sojourn, 0, &mut random, || false);
            verdict == Verdict::Drop(DropReason::Congested)
        })
        .collect()
}

#[test]
fn codel_signals_at_once_in_a_queue_that_was_never_used() {
    let mut state = CobaltState::new();
    assert_eq!(signals(&mut state, 6 * MS, 1000, 100), [1001, 1071]);
}

#[test]
fn codel_signals_after_an_interval_and_then_ever_faster() {
    let mut state = CobaltState::new();
    signals(&mut state, 6 * MS, 100, 50);
    assert_eq!(signals(&mut state, 4 * MS, 1000, 500), []);
    // 100 ms, then 100 / sqrt(n) ms apart: 71, 58, 50, 45, 41.
    let at = signals(&mut state, 6 * MS, 1500, 370);
    assert_eq!(at, [1600, 1671, 1729, 1779, 1824, 1864]);
    assert_eq!(state.count(), 7);
}

#[test]
fn codel_remembers_its_count_and_lets_it_decay() {
    let mut state = CobaltState::new();
    signals(&mut state, 6 * MS, 1000, 1000);
    let count = state.count();
    assert!(count > 10);
    signals(&mut state, MS, 2000, 100);
    assert!((1..count).contains(&state.count()));
    signals(&mut state, MS, 2100, 3000);
    assert_eq!(state.count(), 0);
}

#[test]
fn codel_marks_instead_of_dropping_where_it_can() {
    let mut state = CobaltState::new();
    let mut random = Random::new(1);
    let mut judge = |ms: u64| state.judge(&PARAMS, Nanos(ms * MS), 9 * MS, 0, &mut random, || true);
    assert_eq!(judge(1000), Verdict::Pass);
    assert_eq!(judge(1101), Verdict::Marked);
}

#[test]
fn codel_grants_each_flow_two_packets_where_flows_cannot_drain_alone() {
    let mut state = CobaltState::new();
    let mut random = Random::new(1);
    for ms in 1000..2000 {
        let now = Nanos(ms * MS);
        let verdict = state.judge(&PARAMS, now, 9 * MS, 50, &mut random, || false);
        assert_eq!(verdict, Verdict::Pass);
    }
}

#[test]
fn idle_time_decays_what_many_visits_would() {
    let mut visited = CobaltState::new();
    signals(&mut visited, 6 * MS, 1000, 1000);
    let mut left_alone = visited;
    for ms in 2000..2400 {
        visited.ran_empty(&PARAMS, Nanos(ms * MS));
    }
    left_alone.idled(&PARAMS, Nanos(2399 * MS));
    assert_eq!(visited.count(), left_alone.count());
    assert!(!left_alone.is_at_rest(Nanos(2399 * MS)));
    let much_later = Nanos(10_000 * MS);
    assert!(left_alone.rest_time(&PARAMS, Nanos(2399 * MS)) > Nanos(2399 * MS));
    assert!(left_alone.rest_time(&PARAMS, much_later) <= much_later);
}

#[test]
fn blue_rises_with_overflows_and_falls_with_idleness() {
    let mut state = CobaltState::new();
    assert_eq!(state.overflowed(&PARAMS, Nanos(1000 * MS)), Blue::Rose);
    assert_eq!(state.p_drop(), 1 << 24);
    assert_eq!(state.overflowed(&PARAMS, Nanos(1004 * MS)), Blue::Same);
    assert_eq!(state.p_drop(), 1 << 24, "at most once per target");
    assert_eq!(state.overflowed(&PARAMS, Nanos(1006 * MS)), Blue::Same);
    assert_eq!(state.p_drop(), 2 << 24);
    assert_eq!(state.ran_empty(&PARAMS, Nanos(1012 * MS)), Blue::Same);
    assert_eq!(state.p_drop(), (2 << 24) - (1 << 20));
    assert_eq!(state.idled(&PARAMS, Nanos(1062 * MS)), Blue::Same);
    assert_eq!(state.p_drop(), (2 << 24) - (11 << 20));
    assert_eq!(state.idled(&PARAMS, Nanos(9000 * MS)), Blue::Fell);
    assert_eq!(state.p_drop(), 0);
}

#[test]
fn blue_drops_its_share() {
    let mut state = CobaltState::new();
    for n in 0..64 {
        state.overflowed(&PARAMS, Nanos((1000 + 6 * n) * MS));
    }
    let mut random = Random::new(7);
    let now = Nanos(1400 * MS);
    let dropped = (0..10_000)
        .filter(|_| {
            let verdict = state.judge(&PARAMS, now, 0, 0, &mut random, || false);
            verdict == Verdict::Drop(DropReason::FloodProtection)
        })
        .count();
    assert!((2400..2600).contains(&dropped), "{dropped} of 10000");
}

#[test]
fn count_of_a_million_decays_in_bounded_time() {
    let mut state = CobaltState::new();
    let mut random = Random::new(1);
    let mut now = Nanos(MS);
    while state.count() < 1_000_000 {
        state.judge(&PARAMS, now, 50 * MS, 0, &mut random, || false);
        now = now.after(MS / 5);
    }
    state.idled(&PARAMS, now.after(3_600_000 * MS));
    assert_eq!(state.count(), 0);
}

#[test]
fn heap_names_the_longest_queue_as_queues_change() {
    let mut backlogs = support::in_place(Backlogs::init());
    let mut model = [0u32; 1024];
    let mut random = Random::new(3);
    for step in 0..20_000 {
        let flow = random.draw() % 1024;
        let len = random.draw() % 1500 + 1;
        if random.draw() % 3 == 0 {
            let len = len.min(model[flow as usize]);
            model[flow as usize] -= len;
            backlogs.shrank(FlowIndex::new(flow), |flow| model[flow.at()]);
        } else {
            model[flow as usize] += len;
            backlogs.grew(FlowIndex::new(flow), |flow| model[flow.at()]);
        }
        if step % 7 == 0 {
            let longest = backlogs.longest(|flow| model[flow.at()]);
            let most = model.iter().max().unwrap();
            assert_eq!(model[longest.at()], *most);
        }
    }
}

#[test]
fn free_queue_is_found_as_if_all_were_looked_at() {
    let mut tags = support::in_place(Tags::init());
    let mut free_at = [0u64; 1024];
    let mut random = Random::new(9);
    for now in 1..200_000u64 {
        let hash = random.draw() % 64;
        let expected = ways(hash).find(|way| free_at[*way as usize] <= now);
        let found = tags.find_free(hash, Nanos(now), |flow| Nanos(free_at[flow.at()]));
        assert_eq!(found.map(FlowIndex::at), expected.map(|way| way as usize));
        match found {
            Some(flow) => free_at[flow.at()] = u64::MAX,
            None => {
                let done = FlowIndex::new(random.draw() % 64);
                free_at[done.at()] = now + u64::from(random.draw() % 40);
                tags.may_be_free(done, Nanos(free_at[done.at()]));
            }
        }
    }
}
