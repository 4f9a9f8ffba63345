// SPDX-License-Identifier: GPL-2.0

//! Dumps: configuration and statistics to netlink attributes.

use super::{
    attributes::{number_of, ACK_FILTERS, CELLS, FLOW_MODES, PRESETS},
    tins, //
};
use crate::{
    cake::{
        index::MAX_TINS,
        stats::{FlowStats, QdiscStats, TinStats},
        Config, //
    },
    net::{
        gen_stats::{QueueStats, StatsDump},
        netlink::Message,
        pkt_sched::*, //
    },
};
use kernel::prelude::*;

/// Writes the configuration, `TCA_OPTIONS`.
pub(super) fn config(message: &mut Message<'_>, config: &Config) -> Result {
    let framing = &config.framing;
    message.nest(TCA_OPTIONS, |m| {
        m.put_u64(TCA_CAKE_BASE_RATE64, config.bandwidth, TCA_CAKE_PAD)?;
        m.put_u32(TCA_CAKE_FLOW_MODE, number_of(&FLOW_MODES, config.flow_mode))?;
        m.put_u32(TCA_CAKE_RTT, config.rtt_us)?;
        m.put_u32(TCA_CAKE_TARGET, config.target_us)?;
        m.put_u32(TCA_CAKE_MEMORY, config.memory)?;
        m.put_u32(TCA_CAKE_AUTORATE, config.autorate_ingress.into())?;
        m.put_u32(TCA_CAKE_INGRESS, config.ingress.into())?;
        m.put_u32(
            TCA_CAKE_ACK_FILTER,
            number_of(&ACK_FILTERS, config.ack_filter),
        )?;
        m.put_u32(TCA_CAKE_NAT, config.nat.into())?;
        m.put_u32(TCA_CAKE_DIFFSERV_MODE, number_of(&PRESETS, config.preset))?;
        m.put_u32(TCA_CAKE_WASH, config.wash.into())?;
        m.put_s32(TCA_CAKE_OVERHEAD, framing.overhead.into())?;
        if framing.raw {
            m.put_u32(TCA_CAKE_RAW, 0)?;
        }
        m.put_u32(TCA_CAKE_ATM, number_of(&CELLS, framing.cells))?;
        m.put_u32(TCA_CAKE_MPU, framing.mpu.into())?;
        m.put_u32(TCA_CAKE_SPLIT_GSO, config.split_gso.into())?;
        m.put_u32(TCA_CAKE_FWMARK, config.fwmark)?;
        tins::dump(m, config)
    })
}

/// Writes the statistics of an instance and of its tins, these in display order.
pub(super) fn stats<'a>(
    m: &mut Message<'_>,
    total: &QdiscStats,
    tins: impl Iterator<Item = &'a TinStats>,
) -> Result {
    m.put_u64(
        TCA_CAKE_STATS_CAPACITY_ESTIMATE64,
        total.capacity_estimate,
        TCA_CAKE_STATS_PAD,
    )?;
    m.put_u32(TCA_CAKE_STATS_MEMORY_LIMIT, total.memory_limit)?;
    m.put_u32(TCA_CAKE_STATS_MEMORY_USED, total.memory_used)?;
    m.put_u32(TCA_CAKE_STATS_AVG_NETOFF, total.avg_netoff)?;
    m.put_u32(TCA_CAKE_STATS_MAX_NETLEN, total.max_netlen)?;
    m.put_u32(TCA_CAKE_STATS_MAX_ADJLEN, total.max_adjlen)?;
    m.put_u32(TCA_CAKE_STATS_MIN_NETLEN, total.min_netlen)?;
    m.put_u32(TCA_CAKE_STATS_MIN_ADJLEN, total.min_adjlen)?;
    m.put_u32(TCA_CAKE_STATS_ACTIVE_QUEUES, total.active_queues)?;
    m.nest(TCA_CAKE_STATS_TIN_STATS, |m| {
        for (tin, number) in tins.zip(1..=MAX_TINS as u32) {
            m.nest(number, |m| self::tin(m, tin))?;
        }
        Ok(())
    })
}

fn tin(m: &mut Message<'_>, tin: &TinStats) -> Result {
    let mut put_u64 = |kind, value| m.put_u64(kind, value, TCA_CAKE_TIN_STATS_PAD);
    put_u64(TCA_CAKE_TIN_STATS_THRESHOLD_RATE64, tin.threshold_rate)?;
    put_u64(TCA_CAKE_TIN_STATS_SENT_BYTES64, tin.sent_bytes)?;
    for (kind, value) in [
        (TCA_CAKE_TIN_STATS_BACKLOG_BYTES, tin.backlog_bytes),
        (TCA_CAKE_TIN_STATS_TARGET_US, tin.target_us),
        (TCA_CAKE_TIN_STATS_INTERVAL_US, tin.interval_us),
        (TCA_CAKE_TIN_STATS_SENT_PACKETS, tin.sent_packets),
        (TCA_CAKE_TIN_STATS_DROPPED_PACKETS, tin.dropped_packets),
        (
            TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS,
            tin.ecn_marked_packets,
        ),
        (
            TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS,
            tin.acks_dropped_packets,
        ),
        (TCA_CAKE_TIN_STATS_PEAK_DELAY_US, tin.peak_delay_us),
        (TCA_CAKE_TIN_STATS_AVG_DELAY_US, tin.avg_delay_us),
        (TCA_CAKE_TIN_STATS_BASE_DELAY_US, tin.base_delay_us),
        (TCA_CAKE_TIN_STATS_WAY_INDIRECT_HITS, tin.way_indirect_hits),
        (TCA_CAKE_TIN_STATS_WAY_MISSES, tin.way_misses),
        (TCA_CAKE_TIN_STATS_WAY_COLLISIONS, tin.way_collisions),
        (TCA_CAKE_TIN_STATS_SPARSE_FLOWS, tin.sparse_flows),
        (TCA_CAKE_TIN_STATS_BULK_FLOWS, tin.bulk_flows),
        (
            TCA_CAKE_TIN_STATS_UNRESPONSIVE_FLOWS,
            tin.unresponsive_flows,
        ),
        (TCA_CAKE_TIN_STATS_MAX_SKBLEN, tin.max_skblen),
        (TCA_CAKE_TIN_STATS_FLOW_QUANTUM, tin.flow_quantum),
    ] {
        m.put_u32(kind, value)?;
    }
    Ok(())
}

/// Writes the statistics of a flow; of none if it is not active any more.
pub(super) fn flow(dump: &mut StatsDump<'_>, flow: Option<&FlowStats>) -> Result {
    let Some(flow) = flow else {
        return dump.put_queue(&QueueStats::default());
    };
    dump.put_queue(&QueueStats {
        qlen: flow.qlen,
        backlog: flow.backlog,
        drops: flow.drops,
    })?;
    dump.put_app(|m| {
        m.put_s32(TCA_CAKE_STATS_DEFICIT, flow.deficit)?;
        m.put_u32(TCA_CAKE_STATS_DROPPING, flow.dropping.into())?;
        m.put_u32(TCA_CAKE_STATS_COBALT_COUNT, flow.cobalt_count)?;
        m.put_u32(TCA_CAKE_STATS_P_DROP, flow.p_drop)?;
        if let Some(us) = flow.blue_timer_us {
            m.put_s32(TCA_CAKE_STATS_BLUE_TIMER_US, us)?;
        }
        if let Some(us) = flow.drop_next_us {
            m.put_s32(TCA_CAKE_STATS_DROP_NEXT_US, us)?;
        }
        Ok(())
    })
}
