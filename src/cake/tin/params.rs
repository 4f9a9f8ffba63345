// SPDX-License-Identifier: GPL-2.0

//! What follows from the configuration for one tin.

use crate::cake::{
    cobalt::CobaltParams, config::Config, index::TinIndex, shaper::Pace, units::NSEC_PER_USEC,
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
    /// A full-size packet must fit into the target one and a half times, else slow links would
    /// signal congestion without any; the interval grows along.
    pub fn derive(config: &Config, tin: TinIndex, mtu: u32) -> Self {
        let spec = config.preset.spec(tin, config.bandwidth);
        let pace = Pace::of_rate(spec.threshold);
        let mtu_time = pace.duration(mtu);
        let wanted = u64::from(config.target_us).wrapping_mul(NSEC_PER_USEC);
        let rtt = u64::from(config.rtt_us).wrapping_mul(NSEC_PER_USEC);
        let target = (mtu_time.wrapping_mul(3) / 2).max(wanted);
        let stretched = rtt.wrapping_add(target).wrapping_sub(wanted);
        Self {
            threshold: spec.threshold,
            pace,
            // A tin that others give way to may send one packet at once, however small its share:
            // else packets that arrive together wait behind those of lower tins.
            burst: if spec.above_best_effort { mtu_time } else { 0 },
            quantum: spec.quantum,
            flow_quantum: match spec.threshold {
                0 => MAX_QUANTUM as u16,
                rate => (rate >> 12).clamp(MIN_QUANTUM, MAX_QUANTUM) as u16,
            },
            cobalt: CobaltParams {
                target,
                interval: stretched.max(target.wrapping_mul(2)),
                mtu_time,
            },
        }
    }
}
