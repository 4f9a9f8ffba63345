// SPDX-License-Identifier: GPL-2.0

//! What follows from the configuration for one tin.

use crate::cake::{
    cobalt::CobaltParams,
    config::{Config, Threshold, TinConfig},
    index::TinIndex,
    shaper::Pace,
    units::NSEC_PER_USEC,
};

/// Bytes that a flow sends in a round when nothing limits the rate: a full Ethernet frame.
const MAX_QUANTUM: u64 = 1514;
/// Below 300 bytes a round would be mostly overhead.
const MIN_QUANTUM: u64 = 300;

/// What follows from the configuration for one tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TinParams {
    /// Bytes per second within which the tin keeps its priority; 0 is unlimited.
    pub threshold: u64,
    /// The threshold as a pace.
    pub pace: Pace,
    /// How far in nanoseconds the tin may run ahead of its threshold after idling.
    pub burst: u64,
    /// How far in nanoseconds a tin that others keep waiting may lag behind its threshold and catch
    /// up later: its burst, and the time that a full-size packet in front of it takes on the link.
    /// Without a burst there is no bound, as in the C module.
    pub credit: u64,
    /// The tin's weight in unlimited mode, in bytes a round.
    pub quantum: u16,
    /// Bytes that each flow of the tin sends in a round.
    pub flow_quantum: u16,
    /// AQM parameters.
    pub cobalt: CobaltParams,
}

impl TinParams {
    /// The parameters of `tin` under `config` on a device whose largest packet has `mtu` bytes.
    ///
    /// What the owner set for the tin is honoured as given. Else a full-size packet must fit into
    /// the target one and a half times, or slow links would signal congestion without any, and the
    /// interval grows along.
    pub fn derive(config: &Config, tin: TinIndex, mtu: u32) -> Self {
        let spec = config.preset.spec(tin, config.bandwidth);
        let set = config.tin(tin);
        let threshold = match set.threshold {
            // Without a shaper nothing is measured against a threshold.
            _ if config.bandwidth == 0 => 0,
            Threshold::Preset => spec.threshold,
            Threshold::Rate(rate) => rate,
            Threshold::Share(share) => part(config.bandwidth, share).max(1),
        };
        let quantum = match set.threshold {
            Threshold::Share(share) => {
                let whole = config.preset.spec(TinIndex::FIRST, 0).quantum;
                part(u64::from(whole), share).max(1) as u16
            }
            _ => spec.quantum,
        };
        let pace = Pace::of_rate(threshold);
        let mtu_time = pace.duration(mtu);
        // A tin that others give way to may send one packet at once, however small its share:
        // else packets that arrive together wait behind those of lower tins.
        let burst = match set.burst {
            Some(bytes) => pace.duration(bytes),
            None if spec.above_best_effort => mtu_time,
            None => 0,
        };
        Self {
            threshold,
            pace,
            burst,
            credit: match burst {
                0 => u64::MAX,
                burst => burst.saturating_add(Pace::of_rate(config.bandwidth).duration(mtu)),
            },
            quantum,
            flow_quantum: match threshold {
                0 => MAX_QUANTUM as u16,
                rate => (rate >> 12).clamp(MIN_QUANTUM, MAX_QUANTUM) as u16,
            },
            cobalt: cobalt(config, set, mtu_time),
        }
    }
}

/// `share` parts per million of `whole`.
fn part(whole: u64, share: u32) -> u64 {
    let million = u64::from(Threshold::WHOLE);
    let share = u64::from(share);
    (whole / million)
        .saturating_mul(share)
        .saturating_add((whole % million).wrapping_mul(share) / million)
}

/// The AQM's parameters in a tin where a full-size packet takes `mtu_time` nanoseconds.
fn cobalt(config: &Config, set: &TinConfig, mtu_time: u64) -> CobaltParams {
    let ns = |us: u32| u64::from(us).wrapping_mul(NSEC_PER_USEC);
    let wanted = ns(config.target_us);
    let fitting = (mtu_time.wrapping_mul(3) / 2).max(wanted);
    let target = match (set.target_us, set.interval_us) {
        (0, 0) => fitting,
        (0, interval) => fitting.min(ns(interval) / 2),
        (target, _) => ns(target),
    };
    let stretched = ns(config.rtt_us).wrapping_add(target.saturating_sub(wanted));
    CobaltParams {
        target,
        interval: match set.interval_us {
            0 => stretched.max(target.wrapping_mul(2)),
            interval => ns(interval),
        },
        mtu_time,
    }
}
