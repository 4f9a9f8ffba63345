// SPDX-License-Identifier: GPL-2.0

//! Autorate: the shaper follows the rate at which packets arrive.
//!
//! On ingress the bottleneck is on the other side of the link. What arrives in bursts of steady
//! traffic shows the bottleneck's rate, and a shaper a little below it takes over the queue. Gaps
//! in the traffic say nothing, so that only windows that end in one are counted.

use super::{
    stats::ewma,
    units::{Nanos, NSEC_PER_SEC},
};

/// The shortest time between two changes, in nanoseconds.
const PATIENCE: u64 = 250_000_000;

/// The estimate of one instance. All rates are in bytes per second.
#[derive(Clone, Copy, Debug)]
pub struct Autorate {
    /// The highest rate that was seen lately.
    estimate: u64,
    /// The average gap between packets in nanoseconds.
    gap: u64,
    last_packet: Nanos,
    window_begin: Nanos,
    window_bytes: u64,
    last_change: Nanos,
}

impl Autorate {
    /// A new estimate that starts from the configured rate.
    pub const fn new(bandwidth: u64) -> Self {
        Self {
            estimate: bandwidth,
            gap: 0,
            last_packet: Nanos(0),
            window_begin: Nanos(0),
            window_bytes: 0,
            last_change: Nanos(0),
        }
    }

    /// The highest rate that was seen lately.
    pub fn estimate(&self) -> u64 {
        self.estimate
    }

    /// Notes a packet of which `bytes` were queued. Returns a rate to shape to, 15/16 of the
    /// estimate, when it is time for a change.
    pub fn arrived(&mut self, now: Nanos, bytes: u32) -> Option<u64> {
        self.window_bytes = self.window_bytes.saturating_add(u64::from(bytes));
        let gap = now.since(self.last_packet).min(NSEC_PER_SEC);
        // Short bursts, from aggregation on a wireless link for one, are to be smoothed.
        let shift = if gap > self.gap { 2 } else { 8 };
        self.gap = ewma(self.gap, gap, shift);
        self.last_packet = now;
        if gap <= self.gap {
            return None;
        }
        let rate = self
            .window_bytes
            .saturating_mul(NSEC_PER_SEC)
            .checked_div(now.since(self.window_begin))?;
        let shift = if rate > self.estimate { 2 } else { 8 };
        self.estimate = ewma(self.estimate, rate, shift);
        self.window_bytes = 0;
        self.window_begin = now;
        if now.since(self.last_change) <= PATIENCE {
            return None;
        }
        self.last_change = now;
        Some(self.estimate.saturating_mul(15) >> 4)
    }

    /// Starts a new window, because nobody has followed the rate until now.
    pub fn restart(&mut self, now: Nanos) {
        self.window_bytes = 0;
        self.window_begin = now;
        self.last_packet = now;
    }
}
