// SPDX-License-Identifier: GPL-2.0

//! What `tc qdisc show` says of a configuration: words that can be typed back, or JSON.

use crate::{
    attributes::{each, Attributes},
    names::{self, FLOW_MODES},
    tc,
    tins::{self, TinWords},
    uapi::*,
};
use cake::cake::config::Threshold;
use std::ffi::CStr;

/// Writes the options that `TCA_OPTIONS` carries.
pub fn options(payload: &[u8]) {
    let found = Attributes::of(payload);
    let flag = |kind| found.u32(kind).unwrap_or(0) != 0;

    if let Some(rate) = found.u64(TCA_CAKE_BASE_RATE64) {
        bandwidth(rate);
    }
    match found.u32(TCA_CAKE_AUTORATE) {
        None | Some(0) => {}
        Some(1) => word(c"autorate", "autorate-ingress"),
        Some(_) => both(c"autorate", "unknown", "(?autorate?) "),
    }
    let preset = found.u32(TCA_CAKE_DIFFSERV_MODE);
    if let Some(number) = preset {
        named(c"diffserv", names::preset(number).map(|(name, _)| name));
    }
    if let Some(number) = found.u32(TCA_CAKE_FLOW_MODE) {
        let row = FLOW_MODES.iter().find(|(_, n)| *n == number);
        named(c"flowmode", row.map(|(name, _)| *name));
    }
    switch(c"nat", flag(TCA_CAKE_NAT), "nat ", "nonat ");
    switch(c"wash", flag(TCA_CAKE_WASH), "wash ", "nowash ");
    switch(c"ingress", flag(TCA_CAKE_INGRESS), "ingress ", "");
    match found.u32(TCA_CAKE_ACK_FILTER) {
        Some(CAKE_ACK_AGGRESSIVE) => both(c"ack-filter", "aggressive", "ack-filter-aggressive "),
        Some(CAKE_ACK_FILTER) => both(c"ack-filter", "enabled", "ack-filter "),
        _ => both(c"ack-filter", "disabled", "no-ack-filter "),
    }
    switch(
        c"split_gso",
        flag(TCA_CAKE_SPLIT_GSO),
        "split-gso ",
        "no-split-gso ",
    );
    let rtt = found.u32(TCA_CAKE_RTT).unwrap_or(0);
    if rtt != 0 {
        tc::text(&format!("rtt {} ", tc::exact_time(rtt)));
    }
    tc::json_u64(c"rtt", rtt.into());
    let raw = found.bytes(TCA_CAKE_RAW).is_some();
    switch(c"raw", raw, "raw ", "");
    match found.u32(TCA_CAKE_ATM) {
        Some(CAKE_ATM_ATM) => word(c"atm", "atm"),
        Some(CAKE_ATM_PTM) => word(c"atm", "ptm"),
        _ if !raw => word(c"atm", "noatm"),
        _ => {}
    }
    let overhead = found.i32(TCA_CAKE_OVERHEAD).unwrap_or(0);
    tc::text(&format!("overhead {overhead} "));
    tc::json_int(c"overhead", overhead);
    if let Some(mpu) = found.u32(TCA_CAKE_MPU).filter(|mpu| *mpu != 0) {
        tc::text(&format!("mpu {mpu} "));
        tc::json_u64(c"mpu", mpu.into());
    }
    if let Some(memory) = found.u32(TCA_CAKE_MEMORY).filter(|memory| *memory != 0) {
        tc::text(&format!("memlimit {} ", tc::exact_size(memory)));
        tc::json_u64(c"memlimit", memory.into());
    }
    let fwmark = found.u32(TCA_CAKE_FWMARK).unwrap_or(0);
    if fwmark != 0 {
        tc::text(&format!("fwmark {fwmark:#x} "));
    }
    tc::json_hex(c"fwmark", fwmark);
    if let Some(tins) = found.bytes(TCA_CAKE_TINS) {
        self::tins(
            tins,
            preset
                .and_then(names::preset)
                .map_or(&[], |(_, preset)| preset.tin_names()),
        );
    }
}

fn bandwidth(rate: u64) {
    if rate == 0 {
        return both(c"bandwidth", "unlimited", "bandwidth unlimited ");
    }
    tc::text("bandwidth ");
    if tc::rate_is_exact(rate) {
        tc::text_rate(rate, 0);
    } else {
        tc::text(&tc::exact_rate(rate));
    }
    tc::text(" ");
    tc::json_u64(c"bandwidth", rate);
}

/// The settings of single tins.
fn tins(payload: &[u8], names: &[&str]) {
    let tins: Vec<_> = each(payload)
        .map(|(number, bytes)| {
            let display = (number as usize).wrapping_sub(1);
            let name = names.get(display).copied().unwrap_or("?");
            (name, TinWords::of(&Attributes::of(bytes)))
        })
        .collect();
    for (name, words) in &tins {
        tc::text(&format!("tin {name} {}", words.text()));
    }
    tc::json_array(c"tins", || {
        for (name, words) in &tins {
            tc::json_object(|| json_tin(name, words));
        }
    });
}

fn json_tin(name: &str, words: &TinWords) {
    tc::json_string(Some(c"tin"), name);
    match words.threshold {
        Some(Threshold::Rate(rate)) => tc::json_u64(c"thresh_rate", rate),
        Some(Threshold::Share(share)) => tc::json_u64(c"thresh_share_ppm", share.into()),
        Some(Threshold::Preset) | None => {}
    }
    for (key, value) in [
        (c"target_us", words.target),
        (c"interval_us", words.interval),
        (c"burst", words.burst),
    ] {
        if let Some(value) = value {
            tc::json_u64(key, value.into());
        }
    }
    if let Some(points) = words.dscp {
        tc::json_array(c"dscp", || {
            for name in tins::names(points) {
                tc::json_string(None, &name);
            }
        });
    }
}

/// A word that stands for itself in text and in JSON.
fn word(key: &CStr, value: &str) {
    both(key, value, &format!("{value} "));
}

/// One value for JSON and one for text.
fn both(key: &CStr, json: &str, text: &str) {
    tc::json_string(Some(key), json);
    tc::text(text);
}

/// The name of a number, if it has one.
fn named(key: &CStr, name: Option<&str>) {
    match name {
        Some(name) => word(key, name),
        None => both(key, "unknown", &format!("(?{}?)", key.to_string_lossy())),
    }
}

fn switch(key: &CStr, is_on: bool, on: &str, off: &str) {
    tc::text(if is_on { on } else { off });
    tc::json_bool(key, is_on);
}
