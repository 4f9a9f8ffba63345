// SPDX-License-Identifier: GPL-2.0

//! Time, the one unit that every part of the algorithm shares.

/// Nanoseconds per second.
pub const NSEC_PER_SEC: u64 = 1_000_000_000;
/// Nanoseconds per microsecond.
pub const NSEC_PER_USEC: u64 = 1_000;

/// A point in time in nanoseconds of the caller's monotonic clock.
///
/// Arithmetic saturates: a clock at its end stops time rather than the router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// This point plus `duration` nanoseconds.
    #[inline]
    pub const fn after(self, duration: u64) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// This point minus `duration` nanoseconds, not before the clock's start.
    #[inline]
    pub const fn before(self, duration: u64) -> Self {
        Self(self.0.saturating_sub(duration))
    }

    /// Nanoseconds since `earlier`; 0 if `earlier` lies ahead.
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
