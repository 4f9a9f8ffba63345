// SPDX-License-Identifier: GPL-2.0

//! What the owner set: one value for each option of `tc qdisc … cake`.
//!
//! Only what was set is kept here. What follows from it (paces, quanta, targets of tins) is
//! derived once for each change by [`crate::cake::diffserv`] and [`crate::cake::tin`].

use super::{
    diffserv::{CodePoints, Preset},
    hash::FlowMode,
    index::{TinIndex, MAX_TINS},
    overhead::Framing,
};

/// Default assumed round-trip time in microseconds, CoDel's interval (RFC 8289, section 4.2).
pub const DEFAULT_RTT_US: u32 = 100_000;
/// Default target in microseconds: 5 % of the interval (RFC 8289, section 4.3).
pub const DEFAULT_TARGET_US: u32 = 5_000;
/// How many full-size packets the default memory limit covers at most.
pub const PACKET_LIMIT: u32 = 10_240;

/// How eagerly redundant TCP acknowledgements are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckFilter {
    /// Not at all.
    #[default]
    Off,
    /// Two newer acknowledgements must remain.
    Conservative,
    /// One newer acknowledgement must remain.
    Aggressive,
}

/// Up to where a tin keeps its priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threshold {
    /// As the preset says.
    #[default]
    Preset,
    /// A rate in bytes per second, at least [`Threshold::MIN_RATE`].
    Rate(u64),
    /// Parts per million of the bandwidth, 1 to [`Threshold::WHOLE`].
    Share(u32),
}

impl Threshold {
    /// The least rate in bytes per second.
    pub const MIN_RATE: u64 = 64;
    /// The share that is the whole bandwidth.
    pub const WHOLE: u32 = 1_000_000;
}

/// What the owner set for one tin. The default is to leave it to the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TinConfig {
    /// The threshold.
    pub threshold: Threshold,
    /// COBALT's target in microseconds; 0 is derived from the threshold.
    pub target_us: u32,
    /// COBALT's interval in microseconds, above the target; 0 is derived from both.
    pub interval_us: u32,
    /// How far in bytes the tin may run ahead of its threshold after idling, at most
    /// [`TinConfig::MAX_BURST`].
    pub burst: Option<u32>,
    /// Code points that go to this tin, whatever the preset says. No other tin names them.
    pub code_points: CodePoints,
}

impl TinConfig {
    /// The largest burst in bytes.
    pub const MAX_BURST: u32 = 1 << 20;
}

/// The configuration of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes per second; 0 is unlimited.
    pub bandwidth: u64,
    /// Which tins there are.
    pub preset: Preset,
    /// What is isolated from what.
    pub flow_mode: FlowMode,
    /// Look addresses up in conntrack before hashing.
    pub nat: bool,
    /// Assumed round-trip time in microseconds, at least 1.
    pub rtt_us: u32,
    /// CoDel target in microseconds, at least 1.
    pub target_us: u32,
    /// Memory limit in bytes; 0 picks one by bandwidth and round-trip time.
    pub memory: u32,
    /// Follow the rate at which packets arrive.
    pub autorate_ingress: bool,
    /// Charge dropped packets to the shaper: they have crossed the bottleneck already.
    pub ingress: bool,
    /// Removal of redundant acknowledgements.
    pub ack_filter: AckFilter,
    /// Clear the DSCP of packets once they have been classified.
    pub wash: bool,
    /// The link layer's overhead.
    pub framing: Framing,
    /// Split GSO packets into their segments.
    pub split_gso: bool,
    /// Bits of the firewall mark that name a tin; 0 is none.
    pub fwmark: u32,
    /// Settings of single tins.
    pub tins: [TinConfig; MAX_TINS],
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bandwidth: 0,
            preset: Preset::Diffserv3,
            flow_mode: FlowMode::Triple,
            nat: false,
            rtt_us: DEFAULT_RTT_US,
            target_us: DEFAULT_TARGET_US,
            memory: 0,
            autorate_ingress: false,
            ingress: false,
            ack_filter: AckFilter::Off,
            wash: false,
            framing: Framing::default(),
            split_gso: true,
            fwmark: 0,
            tins: [TinConfig::default(); MAX_TINS],
        }
    }
}

impl Config {
    /// The settings of `tin`.
    #[inline]
    pub fn tin(&self, tin: TinIndex) -> &TinConfig {
        &self.tins[tin.at()]
    }

    /// The settings of `tin`, to be changed.
    pub fn tin_mut(&mut self, tin: TinIndex) -> &mut TinConfig {
        &mut self.tins[tin.at()]
    }

    /// Changes the preset. The tins of another one are others, so that their settings go.
    pub fn set_preset(&mut self, preset: Preset) {
        if preset != self.preset {
            self.preset = preset;
            self.tins = [TinConfig::default(); MAX_TINS];
        }
    }

    /// The part of the configuration that one of `sharers` instances takes: rates are divided.
    pub fn shared_by(&self, sharers: u32) -> Self {
        let divide = |rate: u64| rate / u64::from(sharers.max(1));
        let mut part = *self;
        if self.bandwidth != 0 {
            part.bandwidth = divide(self.bandwidth).max(1);
        }
        for tin in &mut part.tins {
            if let Threshold::Rate(rate) = &mut tin.threshold {
                *rate = divide(*rate).max(Threshold::MIN_RATE);
            }
        }
        part
    }

    /// The memory limit in bytes for a device whose largest packet has `mtu` bytes.
    ///
    /// Without a setting it is four times the bandwidth-delay product, at least 4 MiB, and never
    /// more than [`PACKET_LIMIT`] full-size packets.
    pub fn memory_limit(&self, mtu: u32) -> u32 {
        const FLOOR: u32 = 4 << 20;
        let wanted = match (self.memory, self.bandwidth) {
            (0, 0) => u32::MAX,
            (0, bandwidth) => {
                let product = bandwidth.wrapping_mul(u64::from(self.rtt_us)) / 250_000;
                (product as u32).max(FLOOR)
            }
            (memory, _) => memory,
        };
        wanted.min(PACKET_LIMIT.wrapping_mul(mtu).max(self.memory))
    }

    /// The tin, counted from 0 in display order, that a firewall `mark` names.
    #[inline]
    pub fn marked_tin(&self, mark: u32) -> Option<u32> {
        if self.fwmark == 0 {
            return None;
        }
        ((mark & self.fwmark) >> self.fwmark.trailing_zeros()).checked_sub(1)
    }
}
