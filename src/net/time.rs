// SPDX-License-Identifier: GPL-2.0

//! The clock that queueing disciplines use.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h)

use super::bindings;

/// Nanoseconds since boot, suspend excluded: `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn ktime_get_ns() -> u64 {
    // SAFETY: `ktime_get` may be called from any context.
    let now = unsafe { bindings::ktime_get() };
    // CAST: The monotonic clock does not run below zero.
    now as u64
}
