// SPDX-License-Identifier: GPL-2.0

//! Hours of a home's line in seconds: discrete events over the algorithm, the same for each seed.
//!
//! All that must hold is checked as it happens: packets and bytes are conserved, flows keep their
//! order, the rate and the memory limit are kept, and the link is not idle while packets wait. A
//! failure shows the latest events and the seed that repeats it. `SIMULATOR_SEED=n` plays another
//! seed, `SIMULATOR_SEEDS=n` as many of them one after the other.

mod ledger;
mod sources;
#[path = "../support/mod.rs"]
mod support;
mod world;

use cake::cake::{
    config::AckFilter,
    diffserv::Preset,
    hash::FlowMode,
    index::TinIndex,
    overhead::{Cells, Framing},
    Config,
};
use rand::{seq::IndexedRandom, Rng};
use rand_chacha::ChaCha8Rng;
use sources::{OnOff, Response, Steady, Swarm, Tcp};
use world::{Draw, World, MS, SECOND};

const MBIT: u64 = 1_000_000 / 8;
const MINUTE: u64 = 60 * SECOND;
const VOICE: TinIndex = TinIndex::new(2);

/// Plays `scenario` with each seed that was asked for.
fn with_seeds(scenario: impl Fn(u64)) {
    let number = |name| {
        std::env::var(name).ok().map(|text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{name} is no number"))
        })
    };
    let first: u64 = number("SIMULATOR_SEED").unwrap_or(1);
    for seed in first..first + number("SIMULATOR_SEEDS").unwrap_or(1) {
        scenario(seed);
    }
}

/// The line of the user who began it all.
fn vdsl() -> Config {
    Config {
        bandwidth: 1_969_230 / 8,
        flow_mode: FlowMode::DualSrcHost,
        framing: Framing {
            overhead: 34,
            ..Framing::default()
        },
        ..Config::default()
    }
}

#[test]
fn marked_games_wait_no_longer_than_unmarked_ones() {
    with_seeds(|seed| {
        for tin in [TinIndex::FIRST, VOICE] {
            let mut world = World::new(vdsl(), seed);
            let games = [1, 2, 3].map(|host| world.add(Steady::game(host, tin)));
            world.add(Tcp::new(Response::Reno, 4, 40 * MS));
            world.play(20 * MINUTE);
            // A full packet in front, the other games' own, and the next one of theirs.
            let bytes = (1514 - 14 + 34) + 4 * (192 - 14 + 34);
            for game in games {
                world.expect_delay(game, bytes * SECOND / vdsl().bandwidth);
            }
            world.drain();
        }
    });
}

#[test]
fn reno_and_cubic_get_the_same() {
    with_seeds(|seed| {
        let mut world = World::new(
            Config {
                bandwidth: 20 * MBIT,
                flow_mode: FlowMode::Flows,
                preset: Preset::Besteffort,
                ..Config::default()
            },
            seed,
        );
        for i in 0..8 {
            let response = if i % 2 == 0 {
                Response::Reno
            } else {
                Response::Cubic
            };
            let mut tcp = Tcp::new(response, 1, 20 * MS);
            tcp.ecn = i % 4 < 2;
            world.add(tcp);
        }
        world.play(5 * MINUTE);
        for source in 0..8 {
            world.expect_share(source, 1.0 / 8.0, 0.015);
        }
        world.drain();
    });
}

#[test]
fn host_with_one_upload_gets_as_much_as_one_with_sixteen() {
    with_seeds(|seed| {
        let mut world = World::new(
            Config {
                bandwidth: 20 * MBIT,
                flow_mode: FlowMode::DualSrcHost,
                preset: Preset::Besteffort,
                ..Config::default()
            },
            seed,
        );
        for i in 0..17 {
            world.add(Tcp::new(Response::Cubic, u32::from(i == 16), 20 * MS));
        }
        world.play(5 * MINUTE);
        world.expect_share(16, 0.5, 0.03);
        world.drain();
    });
}

#[test]
fn swarm_of_ten_thousand_flows_leaves_calls_alone() {
    with_seeds(|seed| {
        let mut world = World::new(
            Config {
                bandwidth: 10 * MBIT,
                ..Config::default()
            },
            seed,
        );
        world.ledger.expect_collisions();
        world.add(Swarm::new(1, 10_000, 500_000));
        let call = world.add(Steady::voice(2, VOICE));
        world.add(Tcp::new(Response::Cubic, 3, 40 * MS));
        world.play(5 * MINUTE);
        world.expect_delay(call, 2 * 1514 * SECOND / (10 * MBIT));
        world.drain();
    });
}

#[test]
fn flood_takes_its_share_and_no_more() {
    with_seeds(|seed| {
        let config = Config {
            bandwidth: 10 * MBIT,
            preset: Preset::Besteffort,
            ..Config::default()
        };
        let mut world = World::new(config, seed);
        world.add(Steady::flood(1, 30 * MBIT));
        world.add(Tcp::new(Response::Reno, 2, 10 * MS));
        let game = world.add(Steady::game(3, TinIndex::FIRST));
        world.play(5 * MINUTE);
        world.expect_share(0, 0.5, 0.05);
        world.expect_share(1, 0.5, 0.06);
        world.expect_delay(game, 2 * 1514 * SECOND / config.bandwidth);
        assert!(world.ledger.packets_dropped > 100_000);
        world.drain();
    });
}

#[test]
fn evening_of_three_hours() {
    with_seeds(|seed| {
        let mut world = World::new(vdsl(), seed);
        for host in 1..=3 {
            world.add(Steady::game(host, VOICE));
        }
        world.add(Steady::voice(4, VOICE));
        world.add(Tcp::new(Response::Reno, 5, 30 * MS));
        world.add(Tcp::new(Response::Cubic, 5, 60 * MS));
        for host in 6..10 {
            world.add(OnOff::new(host, 2 * SECOND));
        }
        world.play(180 * MINUTE);
        for game in 0..4 {
            world.expect_delay(game, 20 * MS);
        }
        world.drain();
    });
}

#[test]
fn unlimited_instance_keeps_a_slow_device_busy() {
    with_seeds(|seed| {
        let mut world = World::new(Config::default(), seed).behind(10 * MBIT);
        world.add(Tcp::new(Response::Cubic, 1, 10 * MS));
        world.add(Tcp::new(Response::Reno, 2, 10 * MS));
        let game = world.add(Steady::game(3, TinIndex::FIRST));
        world.play(5 * MINUTE);
        world.expect_delay(game, 2 * 1514 * SECOND / (10 * MBIT));
        let bytes: u64 = world.outcomes.iter().map(|outcome| outcome.bytes).sum();
        assert!(bytes > 290 * 10 * MBIT, "{bytes} bytes in 300 s");
        world.drain();
    });
}

/// Any configuration that lets traffic through.
fn any_config(random: &mut ChaCha8Rng) -> Config {
    const PRESETS: [Preset; 5] = [
        Preset::Besteffort,
        Preset::Precedence,
        Preset::Diffserv3,
        Preset::Diffserv4,
        Preset::Diffserv8,
    ];
    const MODES: [FlowMode; 8] = [
        FlowMode::Flowblind,
        FlowMode::SrcHost,
        FlowMode::DstHost,
        FlowMode::Hosts,
        FlowMode::Flows,
        FlowMode::DualSrcHost,
        FlowMode::DualDstHost,
        FlowMode::Triple,
    ];
    let mut config = Config {
        bandwidth: *[0, MBIT, 10 * MBIT, 100 * MBIT]
            .choose(random)
            .unwrap_or(&0),
        preset: *PRESETS.choose(random).unwrap_or(&Preset::Besteffort),
        flow_mode: *MODES.choose(random).unwrap_or(&FlowMode::Triple),
        rtt_us: random.random_range(1..200_000),
        memory: *[0, 100_000].choose(random).unwrap_or(&0),
        ack_filter: AckFilter::Aggressive,
        ..Config::default()
    };
    config.framing.cells = *[Cells::None, Cells::Atm, Cells::Ptm]
        .choose(random)
        .unwrap_or(&Cells::None);
    config.tin_mut(VOICE).burst = Some(random.random_range(0..10_000));
    config
}

/// The same, behind the bottleneck or before it.
fn any_config_on_either_side(random: &mut ChaCha8Rng) -> Config {
    Config {
        ingress: random.random(),
        ..any_config(random)
    }
}

#[test]
fn owner_changes_everything_all_the_time() {
    with_seeds(|seed| owner_changes(any_config, seed));
}

#[test]
fn owner_changes_ingress_too() {
    with_seeds(|seed| owner_changes(any_config_on_either_side, seed));
}

fn owner_changes(config: Draw, seed: u64) {
    let mut world = World::new(Config::default(), seed);
    world.change_at_random(config, 200 * MS);
    world.add(Swarm::new(1, 3_000, 2 * MS));
    world.add(Steady::flood(2, 12 * MBIT));
    world.add(Steady::game(3, VOICE));
    world.add(Steady::voice(4, TinIndex::new(7)));
    for i in 0..6 {
        let mut tcp = Tcp::new(Response::Cubic, i, 20 * MS);
        tcp.tin = TinIndex::new(i);
        tcp.ecn = i % 2 == 0;
        world.add(tcp);
    }
    world.play(10 * MINUTE);
    assert!(world.ledger.packets_sent > 100_000);
    world.drain();
}
