// SPDX-License-Identifier: GPL-2.0

//! What the numbers of options are called.

use crate::uapi::*;
use cake::cake::diffserv::Preset;

/// `TCA_CAKE_DIFFSERV_MODE`.
pub const PRESETS: [(&str, u32, Preset); 5] = [
    ("diffserv3", CAKE_DIFFSERV_DIFFSERV3, Preset::Diffserv3),
    ("diffserv4", CAKE_DIFFSERV_DIFFSERV4, Preset::Diffserv4),
    ("diffserv8", CAKE_DIFFSERV_DIFFSERV8, Preset::Diffserv8),
    ("besteffort", CAKE_DIFFSERV_BESTEFFORT, Preset::Besteffort),
    ("precedence", CAKE_DIFFSERV_PRECEDENCE, Preset::Precedence),
];

/// The preset with a number, and its name.
pub fn preset(number: u32) -> Option<(&'static str, Preset)> {
    let found = PRESETS.iter().find(|(_, n, _)| *n == number);
    found.map(|(name, _, preset)| (*name, *preset))
}

/// `TCA_CAKE_FLOW_MODE`.
pub const FLOW_MODES: [(&str, u32); 8] = [
    ("flowblind", CAKE_FLOW_NONE),
    ("srchost", CAKE_FLOW_SRC_IP),
    ("dsthost", CAKE_FLOW_DST_IP),
    ("hosts", CAKE_FLOW_HOSTS),
    ("flows", CAKE_FLOW_FLOWS),
    ("dual-srchost", CAKE_FLOW_DUAL_SRC),
    ("dual-dsthost", CAKE_FLOW_DUAL_DST),
    ("triple-isolate", CAKE_FLOW_TRIPLE),
];
