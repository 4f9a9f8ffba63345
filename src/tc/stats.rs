// SPDX-License-Identifier: GPL-2.0

//! What `tc -s` says of an instance, its tins and its flows.

use crate::{
    attributes::{each, Attributes},
    tc,
    uapi::*,
};
use std::ffi::CStr;

/// Writes the statistics that `TCA_XSTATS` carries, of a discipline or of a class.
pub fn print(payload: &[u8]) {
    let found = Attributes::of(payload);
    instance(&found);
    flow(&found);
    if let Some(tins) = found.bytes(TCA_CAKE_STATS_TIN_STATS) {
        let tins: Vec<_> = each(tins).map(|(_, bytes)| Attributes::of(bytes)).collect();
        if tc::is_json() {
            json_tins(&tins);
        } else {
            table(&tins);
        }
    }
}

fn instance(found: &Attributes<'_>) {
    let pair = |a, b| found.u32(a).zip(found.u32(b));
    if let Some((used, limit)) = pair(TCA_CAKE_STATS_MEMORY_USED, TCA_CAKE_STATS_MEMORY_LIMIT) {
        let (used_text, limit_text) = (tc::size(used), tc::size(limit));
        tc::text(&format!(" memory used: {used_text} of {limit_text}\n"));
        tc::json_u64(c"memory_used", used.into());
        tc::json_u64(c"memory_limit", limit.into());
    }
    if let Some(rate) = found.u64(TCA_CAKE_STATS_CAPACITY_ESTIMATE64) {
        tc::text(" capacity estimate: ");
        tc::text_rate(rate, 0);
        tc::text("\n");
        tc::json_u64(c"capacity_estimate", rate);
    }
    if let Some((least, most)) = pair(TCA_CAKE_STATS_MIN_NETLEN, TCA_CAKE_STATS_MAX_NETLEN) {
        tc::text(&format!(
            " min/max network layer size: {least:12} /{most:8}\n"
        ));
        tc::json_u64(c"min_network_size", least.into());
        tc::json_u64(c"max_network_size", most.into());
    }
    if let Some((least, most)) = pair(TCA_CAKE_STATS_MIN_ADJLEN, TCA_CAKE_STATS_MAX_ADJLEN) {
        tc::text(&format!(
            " min/max overhead-adjusted size: {least:8} /{most:8}\n"
        ));
        tc::json_u64(c"min_adj_size", least.into());
        tc::json_u64(c"max_adj_size", most.into());
    }
    if let Some(queues) = found.u32(STATS_ACTIVE_QUEUES) {
        tc::text(&format!(" active queues: {queues:25}\n"));
        tc::json_u64(c"active_queues", queues.into());
    }
    if let Some(offset) = found.u32(TCA_CAKE_STATS_AVG_NETOFF) {
        tc::text(&format!(" average network hdr offset: {offset:12}\n\n"));
        tc::json_u64(c"avg_hdr_offset", offset.into());
    }
}

/// What a class, which is a flow, has on top.
fn flow(found: &Attributes<'_>) {
    if let Some(deficit) = found.i32(TCA_CAKE_STATS_DEFICIT) {
        tc::text(&format!("  deficit {deficit}"));
        tc::json_int(c"deficit", deficit);
    }
    if let Some(count) = found.u32(TCA_CAKE_STATS_COBALT_COUNT) {
        tc::text(&format!(" count {count}"));
        tc::json_u64(c"count", count.into());
    }
    if found
        .u32(TCA_CAKE_STATS_DROPPING)
        .is_some_and(|value| value != 0)
    {
        tc::text(" dropping");
        tc::json_bool(c"dropping", true);
        if let Some(us) = found.i32(TCA_CAKE_STATS_DROP_NEXT_US) {
            timer(c"drop_next", us);
        }
    }
    if let Some(probability) = found.u32(TCA_CAKE_STATS_P_DROP) {
        tc::text(&format!(" blue_prob {probability}"));
        tc::json_u64(c"blue_prob", probability.into());
        if let Some(us) = found.i32(TCA_CAKE_STATS_BLUE_TIMER_US) {
            timer(c"blue_timer", us);
        }
    }
}

/// Microseconds until something, or since.
fn timer(key: &CStr, us: i32) {
    let sign = if us < 0 { "-" } else { "" };
    let time = tc::time(us.unsigned_abs());
    tc::text(&format!(" {} {sign}{time}", key.to_string_lossy()));
    if us >= 0 {
        tc::json_int(key, us);
    }
}

/// How a statistic is written in the table.
#[derive(Clone, Copy)]
enum Form {
    Rate,
    Time,
    Size,
    Count,
    Count64,
}

/// The rows of the table of tins: label, attribute, form.
const ROWS: &[(&str, u32, Form)] = &[
    ("thresh", TCA_CAKE_TIN_STATS_THRESHOLD_RATE64, Form::Rate),
    ("target", TCA_CAKE_TIN_STATS_TARGET_US, Form::Time),
    ("interval", TCA_CAKE_TIN_STATS_INTERVAL_US, Form::Time),
    ("pk_delay", TCA_CAKE_TIN_STATS_PEAK_DELAY_US, Form::Time),
    ("av_delay", TCA_CAKE_TIN_STATS_AVG_DELAY_US, Form::Time),
    ("sp_delay", TCA_CAKE_TIN_STATS_BASE_DELAY_US, Form::Time),
    ("backlog", TCA_CAKE_TIN_STATS_BACKLOG_BYTES, Form::Size),
    ("pkts", TCA_CAKE_TIN_STATS_SENT_PACKETS, Form::Count),
    ("bytes", TCA_CAKE_TIN_STATS_SENT_BYTES64, Form::Count64),
    (
        "way_inds",
        TCA_CAKE_TIN_STATS_WAY_INDIRECT_HITS,
        Form::Count,
    ),
    ("way_miss", TCA_CAKE_TIN_STATS_WAY_MISSES, Form::Count),
    ("way_cols", TCA_CAKE_TIN_STATS_WAY_COLLISIONS, Form::Count),
    ("drops", TCA_CAKE_TIN_STATS_DROPPED_PACKETS, Form::Count),
    ("marks", TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS, Form::Count),
    (
        "ack_drop",
        TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS,
        Form::Count,
    ),
    ("sp_flows", TCA_CAKE_TIN_STATS_SPARSE_FLOWS, Form::Count),
    ("bk_flows", TCA_CAKE_TIN_STATS_BULK_FLOWS, Form::Count),
    (
        "un_flows",
        TCA_CAKE_TIN_STATS_UNRESPONSIVE_FLOWS,
        Form::Count,
    ),
    ("max_len", TCA_CAKE_TIN_STATS_MAX_SKBLEN, Form::Count),
    ("quantum", TCA_CAKE_TIN_STATS_FLOW_QUANTUM, Form::Count),
];

/// The columns of the table are 12 wide, with a blank between them.
const COLUMN: usize = 13;

fn table(tins: &[Attributes<'_>]) {
    let Some(first) = tins.first() else { return };
    let end = tc::line_end();
    // With three and four tins they have names, and tc ends the line itself.
    match tins.len() {
        3 => tc::text("                   Bulk  Best Effort        Voice\n"),
        4 => tc::text("                   Bulk  Best Effort        Video        Voice\n"),
        count => {
            let names: Vec<_> = (0..count).map(|i| format!("        Tin {i}")).collect();
            let names = names.concat();
            tc::text(&format!("          {names}{end}"));
        }
    }
    for (label, kind, form) in ROWS {
        if first.bytes(*kind).is_none() {
            continue;
        }
        tc::text(&format!("  {label:8}"));
        for tin in tins {
            let small = tin.u32(*kind).unwrap_or(0);
            let large = tin.u64(*kind).unwrap_or(0);
            let cell = match form {
                Form::Rate => {
                    tc::text(" ");
                    tc::text_rate(large, COLUMN - 1);
                    continue;
                }
                Form::Time => tc::time(small),
                Form::Size => tc::size(small),
                Form::Count => small.to_string(),
                Form::Count64 => large.to_string(),
            };
            tc::text(&format!("{cell:>COLUMN$}"));
        }
        tc::text(&end);
    }
}

/// The fields of a tin in JSON, in tc's order.
const FIELDS: &[(&CStr, u32)] = &[
    (c"threshold_rate", TCA_CAKE_TIN_STATS_THRESHOLD_RATE64),
    (c"sent_bytes", TCA_CAKE_TIN_STATS_SENT_BYTES64),
    (c"backlog_bytes", TCA_CAKE_TIN_STATS_BACKLOG_BYTES),
    (c"target_us", TCA_CAKE_TIN_STATS_TARGET_US),
    (c"interval_us", TCA_CAKE_TIN_STATS_INTERVAL_US),
    (c"peak_delay_us", TCA_CAKE_TIN_STATS_PEAK_DELAY_US),
    (c"avg_delay_us", TCA_CAKE_TIN_STATS_AVG_DELAY_US),
    (c"base_delay_us", TCA_CAKE_TIN_STATS_BASE_DELAY_US),
    (c"sent_packets", TCA_CAKE_TIN_STATS_SENT_PACKETS),
    (c"way_indirect_hits", TCA_CAKE_TIN_STATS_WAY_INDIRECT_HITS),
    (c"way_misses", TCA_CAKE_TIN_STATS_WAY_MISSES),
    (c"way_collisions", TCA_CAKE_TIN_STATS_WAY_COLLISIONS),
    (c"drops", TCA_CAKE_TIN_STATS_DROPPED_PACKETS),
    (c"ecn_mark", TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS),
    (c"ack_drops", TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS),
    (c"sparse_flows", TCA_CAKE_TIN_STATS_SPARSE_FLOWS),
    (c"bulk_flows", TCA_CAKE_TIN_STATS_BULK_FLOWS),
    (c"unresponsive_flows", TCA_CAKE_TIN_STATS_UNRESPONSIVE_FLOWS),
    (c"max_pkt_len", TCA_CAKE_TIN_STATS_MAX_SKBLEN),
    (c"flow_quantum", TCA_CAKE_TIN_STATS_FLOW_QUANTUM),
];

fn json_tins(tins: &[Attributes<'_>]) {
    if tins.is_empty() {
        return;
    }
    tc::json_array(c"tins", || {
        for tin in tins {
            tc::json_object(|| {
                for (key, kind) in FIELDS {
                    if let Some(value) = tin.u64(*kind).or(tin.u32(*kind).map(u64::from)) {
                        tc::json_u64(key, value);
                    }
                }
            });
        }
    });
}
