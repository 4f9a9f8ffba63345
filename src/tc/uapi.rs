// SPDX-License-Identifier: GPL-2.0

//! The numbers that go over netlink, from the kernel's headers and from ours.

#![allow(dead_code, missing_docs, non_camel_case_types, non_upper_case_globals)]

include!(concat!(env!("OUT_DIR"), "/uapi.rs"));

/// Headers before Linux 7.0 do not name it.
pub const STATS_ACTIVE_QUEUES: u32 = TCA_CAKE_STATS_BLUE_TIMER_US + 1;
