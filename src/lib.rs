// SPDX-License-Identifier: GPL-2.0
#![doc = "The CAKE algorithm as a library for tests, simulators, fuzzers and benchmarks."]
#![no_std]
extern crate pinned_init as pin_init;
pub mod cake;
