// SPDX-License-Identifier: GPL-2.0

//! Statistics as they leave the algorithm: plain copies in the units of the kernel's uapi.

use super::{
    overhead::Framing,
    packet::{Packet, Segments},
};

/// A moving average: `shift` is the weight of a sample as a power of two.
#[inline]
pub const fn ewma(average: u64, sample: u64, shift: u32) -> u64 {
    average
        .wrapping_sub(average >> shift)
        .wrapping_add(sample >> shift)
}

/// Moving averages of a tin's sojourn times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    /// The plain average.
    pub average: u64,
    /// Rises quickly and falls slowly.
    pub peak: u64,
    /// Falls quickly and rises slowly.
    pub base: u64,
}

impl Delays {
    const SLOW: u32 = 8;
    const QUICK: u32 = 2;

    /// Adds a packet that waited for `sojourn` nanoseconds.
    #[inline]
    pub fn add(&mut self, sojourn: u64) {
        self.average = ewma(self.average, sojourn, Self::SLOW);
        self.peak = if sojourn > self.peak {
            ewma(self.peak, sojourn, Self::QUICK)
        } else {
            ewma(self.peak, sojourn, Self::SLOW)
        };
        self.base = if sojourn < self.base {
            ewma(self.base, sojourn, Self::QUICK)
        } else {
            ewma(self.base, sojourn, Self::SLOW)
        };
    }
}

/// The packet lengths that an instance has seen.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// The average offset of the network header, in Q16.16.
    pub average_offset: u32,
    /// The range of lengths before the overhead.
    pub counted: Range,
    /// The range of lengths on the link.
    pub adjusted: Range,
}

/// The least and the greatest of some lengths.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    least: u32,
    greatest: u32,
}

impl Range {
    /// The range of nothing yet.
    const NONE: Self = Self {
        least: u32::MAX,
        greatest: 0,
    };

    #[inline]
    fn add(&mut self, len: u32) {
        if len < self.least {
            self.least = len;
        }
        if len > self.greatest {
            self.greatest = len;
        }
    }

    /// The least and the greatest length as far as statistics go, which have 16 bits for them.
    pub fn bounds(&self) -> (u32, u32) {
        let most = u32::from(u16::MAX);
        (self.least.min(most), self.greatest.min(most))
    }
}

impl Lengths {
    /// Nothing seen yet.
    pub const fn new() -> Self {
        Self {
            average_offset: 0,
            counted: Range::NONE,
            adjusted: Range::NONE,
        }
    }

    /// Forgets the ranges, because lengths are counted differently from now on.
    pub fn forget_ranges(&mut self) {
        self.counted = Range::NONE;
        self.adjusted = Range::NONE;
    }

    /// Bytes that a packet occupies on the link under `framing`. Its lengths are noted.
    #[inline(always)]
    pub fn measure(&mut self, framing: &Framing, packet: &impl Packet) -> u32 {
        let offset = packet.network_offset();
        self.add_offset(offset);
        match packet.segments() {
            None => self.adjust(framing, packet.len(), offset),
            Some(segments) => self.adjust_all(framing, segments, offset),
        }
    }

    /// Bytes on the link for a packet of `len` bytes.
    #[inline]
    fn adjust(&mut self, framing: &Framing, len: u32, offset: u32) -> u32 {
        let counted = framing.counted(len, offset);
        let adjusted = framing.adjusted(counted);
        self.counted.add(counted);
        self.adjusted.add(adjusted);
        adjusted
    }

    /// Bytes on the link for all segments: as many as fit a deficit.
    #[inline(never)]
    fn adjust_all(&mut self, framing: &Framing, segments: Segments, offset: u32) -> u32 {
        self.adjust(framing, segments.len, offset)
            .saturating_mul(segments.count.saturating_sub(1))
            .saturating_add(self.adjust(framing, segments.last_len, offset))
            .min(i32::MAX as u32)
    }

    /// Adds a packet's network header offset.
    #[inline]
    fn add_offset(&mut self, offset: u32) {
        let sample = u64::from(offset) << 16;
        self.average_offset = ewma(u64::from(self.average_offset), sample, 8) as u32;
    }
}

impl Default for Lengths {
    fn default() -> Self {
        Self::new()
    }
}

/// The statistics of an instance, `TCA_CAKE_STATS_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct QdiscStats {
    /// Bytes per second.
    pub capacity_estimate: u64,
    /// Bytes.
    pub memory_limit: u32,
    /// The most bytes that were in use.
    pub memory_used: u32,
    pub avg_netoff: u32,
    pub max_netlen: u32,
    pub max_adjlen: u32,
    pub min_netlen: u32,
    pub min_adjlen: u32,
    /// Queues of a multi-queue device that share the bandwidth.
    pub active_queues: u32,
}

/// The statistics of a tin, `TCA_CAKE_TIN_STATS_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TinStats {
    /// Bytes per second.
    pub threshold_rate: u64,
    pub sent_bytes: u64,
    pub backlog_bytes: u32,
    pub target_us: u32,
    pub interval_us: u32,
    pub sent_packets: u32,
    pub dropped_packets: u32,
    pub ecn_marked_packets: u32,
    pub acks_dropped_packets: u32,
    pub peak_delay_us: u32,
    pub avg_delay_us: u32,
    pub base_delay_us: u32,
    pub way_indirect_hits: u32,
    pub way_misses: u32,
    pub way_collisions: u32,
    /// Decaying flows included.
    pub sparse_flows: u32,
    pub bulk_flows: u32,
    pub unresponsive_flows: u32,
    pub max_skblen: u32,
    /// Bytes.
    pub flow_quantum: u32,
}

/// The statistics of an active flow, `TCA_CAKE_STATS_*` of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FlowStats {
    /// Packets.
    pub qlen: u32,
    /// Bytes.
    pub backlog: u32,
    pub drops: u32,
    /// Bytes.
    pub deficit: i32,
    pub dropping: bool,
    pub cobalt_count: u32,
    /// Q0.32.
    pub p_drop: u32,
    /// Where BLUE drops.
    pub blue_timer_us: Option<i32>,
    /// Where CoDel drops.
    pub drop_next_us: Option<i32>,
}
