// SPDX-License-Identifier: GPL-2.0

//! KUnit tests.

use super::{attributes, classify::Classifier};
use crate::{
    cake::{
        config::Threshold,
        diffserv::{Classes, Preset},
        hash::FlowMode,
        index::TinIndex,
        siphash::SipKey,
        Config,
        FlowHashes, //
    },
    net::{
        netlink::Attribute,
        pkt_sched::*,
        tests::{frame, no_extack, packet}, //
    },
};
use kernel::prelude::*;

const KEY: SipKey = SipKey::new([1, 2]);

/// Default configuration as changed by options of 32 bits.
fn changed<const N: usize>(options: [(u32, u32); N]) -> Result<Config> {
    let mut bytes = [0u8; 128];
    let len = 4 + 8 * N as u16;
    let mut words = bytes.chunks_exact_mut(4);
    let mut put = |word: u32| {
        if let Some(to) = words.next() {
            to.copy_from_slice(&word.to_ne_bytes());
        }
    };
    put(len.into());
    for (kind, value) in options {
        put(8 | (kind << 16));
        put(value);
    }
    let (options, _) = Attribute::first(&bytes).ok_or(EINVAL)?;
    attributes::apply(Config::default(), false, options, &mut no_extack())
}

/// Where a UDP packet with a DiffServ field goes under `config`, and the field afterwards.
fn classified(
    config: &Config,
    field: u8,
    class: Option<u32>,
) -> Option<(TinIndex, FlowHashes, u8)> {
    let header = [
        0x45, field, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1, 1, 1, 2, 2,
    ];
    let mut packet = packet(&frame::<60>(0x0800, &header))?;
    let classifier = Classifier {
        config,
        classes: &Classes::of(config),
        key: &KEY,
        handle: 0x10000,
        class,
    };
    let (tin, hashes) = classifier.classify(&mut packet);
    match *packet.network_header(&mut [0; 2]) {
        [_, field] => Some((tin, hashes, field)),
        _ => None,
    }
}

#[kunit_tests(cake_qdisc)]
mod suite {
    use super::*;

    #[test]
    fn options_are_set_and_others_stay() {
        let config = changed([
            (TCA_CAKE_DIFFSERV_MODE, CAKE_DIFFSERV_DIFFSERV8),
            (TCA_CAKE_OVERHEAD, 34),
            (TCA_CAKE_RTT, 0),
            (TCA_CAKE_WASH, 1),
        ]);
        assert!(config.is_ok_and(|config| {
            config.preset == Preset::Diffserv8
                && config.framing.overhead == 34
                && !config.framing.raw
                && config.rtt_us == 1
                && config.wash
                && config.flow_mode == FlowMode::Triple
        }));
    }

    #[test]
    fn values_that_stand_for_nothing_are_refused() {
        for (kind, value, error) in [
            (TCA_CAKE_DIFFSERV_MODE, 5, EINVAL),
            (TCA_CAKE_FLOW_MODE, 8, EINVAL),
            (TCA_CAKE_ATM, 3, EINVAL),
            (TCA_CAKE_ACK_FILTER, 3, EINVAL),
            (TCA_CAKE_MPU, 65536, ERANGE),
            (TCA_CAKE_OVERHEAD, 32768, ERANGE),
        ] {
            assert_eq!(changed([(kind, value)]).err(), Some(error));
        }
        assert!(changed([(TCA_CAKE_OVERHEAD, (-64i32) as u32)]).is_ok());
        assert!(changed([(99, 1)]).is_ok());
    }

    #[test]
    fn settings_of_tins_are_untouched_without_the_option() {
        let config = changed([(TCA_CAKE_MEMORY, 5_000_000)]);
        assert!(config.is_ok_and(|config| {
            config
                .tins
                .iter()
                .all(|tin| tin.threshold == Threshold::Preset)
        }));
    }

    #[test]
    fn packets_go_where_their_code_points_say() {
        let mut config = Config::default();
        let tin = |config: &Config, field| classified(config, field, None).map(|found| found.0);
        assert_eq!(tin(&config, 0xb8), Some(TinIndex::new(2)));
        assert_eq!(tin(&config, 0x20), Some(TinIndex::new(1)));
        assert_eq!(tin(&config, 0), Some(TinIndex::FIRST));
        config.set_preset(Preset::Besteffort);
        assert_eq!(tin(&config, 0xb8), Some(TinIndex::FIRST));
    }

    #[test]
    fn washing_leaves_ecn() {
        let mut config = Config::default();
        config.wash = true;
        let found = classified(&config, 0xb9, None);
        assert_eq!(
            found.map(|found| (found.0, found.2)),
            Some((TinIndex::new(2), 0x01))
        );
    }

    #[test]
    fn hashes_are_those_that_the_mode_needs() {
        let mut config = Config::default();
        let hashes = |config: &Config, class| classified(config, 0, class).map(|found| found.1);
        let full = hashes(&config, None).unwrap_or_default();
        assert!(full.flow != 0 && full.src_host != 0 && full.dst_host != 0);
        // A filter names the flow, and the host in the upper half.
        let named = hashes(&config, Some(0x0003_0007)).unwrap_or_default();
        assert_eq!((named.flow, named.src_host, named.dst_host), (6, 2, 2));
        config.flow_mode = FlowMode::Flows;
        let flows = hashes(&config, None).unwrap_or_default();
        assert_eq!(
            (flows.flow, flows.src_host, flows.dst_host),
            (full.flow, 0, 0)
        );
        config.flow_mode = FlowMode::Flowblind;
        assert_eq!(hashes(&config, None), Some(FlowHashes::default()));
    }
}
