// SPDX-License-Identifier: GPL-2.0

//! Framing: how many bytes a packet occupies on the link.
//!
//! The link behind a router's port often adds more to a packet than the port shows: PPPoE, ATM
//! cells, PTM's 64b/65b coding. A shaper that does not count them sends too much.

/// How the link layer pads packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// Not at all.
    #[default]
    None,
    /// ATM: whole cells of 53 bytes carry 48 bytes each (ADSL).
    Atm,
    /// PTM: a byte in 65 is coding (VDSL2, IEEE 802.3 clause 61).
    Ptm,
}

/// The link layer's overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to each packet; negative takes away what the device counts and the link lacks.
    pub overhead: i16,
    /// Bytes that a packet occupies at least, overhead included.
    pub mpu: u16,
    /// Padding.
    pub cells: Cells,
    /// Count from the device's own header rather than from the network header.
    pub raw: bool,
}

impl Default for Framing {
    fn default() -> Self {
        Self {
            overhead: 0,
            mpu: 0,
            cells: Cells::None,
            raw: true,
        }
    }
}

impl Framing {
    /// The part of a packet of `len` bytes that the framing counts. `network_offset` is where its
    /// network header starts.
    #[inline]
    pub fn counted(&self, len: u32, network_offset: u32) -> u32 {
        if self.raw {
            len
        } else {
            len.saturating_sub(network_offset)
        }
    }

    /// Bytes on the link for `counted` bytes.
    #[inline]
    pub fn adjusted(&self, counted: u32) -> u32 {
        let len = i64::from(counted)
            .wrapping_add(i64::from(self.overhead))
            .clamp(i64::from(self.mpu), i64::from(u32::MAX)) as u32;
        match self.cells {
            Cells::None => len,
            Cells::Atm => len.div_ceil(48).saturating_mul(53),
            // Conservative: a byte for each 64 or part thereof.
            Cells::Ptm => len.saturating_add(len.div_ceil(64)),
        }
    }
}
