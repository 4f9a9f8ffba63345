// SPDX-License-Identifier: GPL-2.0

//! The shaper: virtual clocks that say when the link will be free.
//!
//! A rate is kept as a pace, the time that a byte takes. Sending a packet moves the clock ahead by
//! the packet's time on the link, and the next packet may go when real time has caught up. There
//! is no bucket that could fill: an idle link starts afresh ("deficit mode", CAKE paper, section
//! III-A).
//!
//! Each tin has a clock of its own, moving at the tin's threshold rate. It never holds a packet
//! back; it tells whether the tin keeps its priority.

use super::{
    config::Threshold,
    units::{Nanos, NSEC_PER_SEC}, //
};

/// Rates below this, in bytes per second, are taken as this, so that the link unwedges in
/// reasonable time.
const MIN_RATE: u64 = Threshold::MIN_RATE;
/// A pace has at most this many bits, so that its product with any packet length fits in 64.
const PACE_BITS: u32 = 34;

/// The time that a byte takes: nanoseconds in fixed point with `shift` fractional bits.
///
/// The default is no time at all: unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    per_byte: u64,
    shift: u8,
}

impl Pace {
    /// The pace of `rate` bytes per second; 0 is unlimited.
    pub const fn of_rate(rate: u64) -> Self {
        if rate == 0 {
            return Self {
                per_byte: 0,
                shift: 0,
            };
        }
        let rate = if rate < MIN_RATE { MIN_RATE } else { rate };
        let exact = match (NSEC_PER_SEC << PACE_BITS).checked_div(rate) {
            Some(exact) => exact,
            None => 0,
        };
        let excess = (u64::BITS - exact.leading_zeros()).saturating_sub(PACE_BITS);
        Self {
            per_byte: exact >> excess,
            shift: PACE_BITS.saturating_sub(excess) as u8,
        }
    }

    /// Whether nothing is ever held back.
    #[inline]
    pub const fn is_unlimited(self) -> bool {
        self.per_byte == 0
    }

    /// Nanoseconds that `len` bytes take.
    #[inline]
    pub const fn duration(self, len: u32) -> u64 {
        (len as u64).wrapping_mul(self.per_byte) >> (self.shift & 63)
    }
}

/// The clock of the whole link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkClock {
    /// When the link is free, packets that were dropped but charged included.
    next: Nanos,
    /// When the link is free at two thirds of the rate, those excluded. In `ingress` mode a flood
    /// of drops must not stop all sending.
    failsafe: Nanos,
}

impl LinkClock {
    /// Starts afresh if the link has been idle. To be called when a packet meets empty queues.
    #[inline]
    pub fn wake(&mut self, now: Nanos) {
        if self.next < now {
            self.next = now;
            self.failsafe = now;
        }
        self.failsafe = self.failsafe.max(now);
    }

    /// Has the link wait no longer than until `limit`: what was charged at another rate says little
    /// of this one.
    pub fn wait_at_most(&mut self, limit: Nanos) {
        self.next = self.next.min(limit);
        self.failsafe = self.failsafe.min(limit);
    }

    /// When the next packet may go, or [`None`] if it may go now.
    #[inline]
    pub fn wait(&self, now: Nanos) -> Option<Nanos> {
        let next = self.next.min(self.failsafe);
        (next > now).then_some(next)
    }

    /// Charges a packet that was sent and took `duration` nanoseconds.
    #[inline]
    pub fn sent(&mut self, duration: u64) {
        self.next = self.next.after(duration);
        self.failsafe = self.failsafe.after(duration.saturating_add(duration >> 1));
    }

    /// Charges a packet that was dropped after it had crossed the bottleneck.
    #[inline]
    pub fn dropped(&mut self, duration: u64) {
        self.next = self.next.after(duration);
    }
}

/// The clock of a tin, which runs at the tin's threshold rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct TinClock {
    next: Nanos,
}

impl TinClock {
    /// Starts afresh if the tin has been idle, with `burst` nanoseconds of credit. To be called
    /// when a packet meets an empty tin.
    #[inline]
    pub fn wake(&mut self, now: Nanos, burst: u64) {
        self.next = self.next.max(now.before(burst));
    }

    /// When the tin will be within its threshold. From then on it has its priority.
    #[inline]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Charges a packet that took `duration` nanoseconds.
    ///
    /// A tin that sends on bandwidth which others leave idle runs up no debt beyond one packet. One
    /// that higher tins kept waiting catches up on no more than `credit` nanoseconds.
    #[inline]
    pub fn charge(&mut self, now: Nanos, credit: u64, duration: u64) {
        if self.next < now {
            self.next = self.next.max(now.before(credit)).after(duration);
        } else {
            self.next = self.next.max(now.after(duration));
        }
    }
}
