// SPDX-License-Identifier: GPL-2.0

//! DiffServ: which code points go to which tin, and what each tin may take.
//!
//! The classes are those of RFC 4594 as updated by RFC 8622 (LE) and RFC 5865 (VOICE-ADMIT). A
//! threshold is no limit: a tin above it keeps its bandwidth as long as nobody else wants it, but
//! loses its priority.

use super::index::{TinIndex, MAX_TINS};

/// The code points that the presets know by name.
mod dscp {
    pub(super) const DF: u8 = 0;
    pub(super) const LE: u8 = 1;
    /// RFC 1349's "maximize throughput".
    pub(super) const TOS_THROUGHPUT: u8 = 2;
    /// RFC 1349's "minimize delay".
    pub(super) const TOS_DELAY: u8 = 4;
    pub(super) const CS1: u8 = 8;
    pub(super) const AF11: u8 = 10;
    pub(super) const AF12: u8 = 12;
    pub(super) const AF13: u8 = 14;
    pub(super) const CS2: u8 = 16;
    pub(super) const AF21: u8 = 18;
    pub(super) const AF22: u8 = 20;
    pub(super) const AF23: u8 = 22;
    pub(super) const CS3: u8 = 24;
    pub(super) const AF31: u8 = 26;
    pub(super) const AF32: u8 = 28;
    pub(super) const AF33: u8 = 30;
    pub(super) const CS4: u8 = 32;
    pub(super) const AF41: u8 = 34;
    pub(super) const AF42: u8 = 36;
    pub(super) const AF43: u8 = 38;
    pub(super) const CS5: u8 = 40;
    pub(super) const VA: u8 = 44;
    pub(super) const EF: u8 = 46;
    pub(super) const CS6: u8 = 48;
    pub(super) const CS7: u8 = 56;
}
use dscp::*;

/// Code points in a DiffServ field.
const CODE_POINTS: usize = 64;
/// The code point of traffic that keeps the network itself alive, ARP for one.
pub const NETWORK_CONTROL: u8 = CS7;

/// A tin for each code point.
type Map = [u8; CODE_POINTS];

/// A map that sends each `(tin, code points)` where it says and all others to `default`.
const fn map(default: u8, rules: &[(u8, &[u8])]) -> Map {
    let mut map = [default; CODE_POINTS];
    let mut rule = 0;
    while rule < rules.len() {
        let (tin, points) = rules[rule];
        let mut point = 0;
        while point < points.len() {
            map[points[point] as usize] = tin;
            point += 1;
        }
        rule += 1;
    }
    map
}

static BESTEFFORT: Map = map(0, &[]);

static PRECEDENCE: Map = {
    let mut map = [0; CODE_POINTS];
    let mut point = 0;
    while point < CODE_POINTS {
        map[point] = (point >> 3) as u8;
        point += 1;
    }
    map
};

static DIFFSERV3: Map = map(0, &[(1, &[LE, CS1]), (2, &[TOS_DELAY, VA, EF, CS6, CS7])]);

static DIFFSERV4: Map = map(
    0,
    &[
        (1, &[LE, CS1]),
        (2, &[TOS_DELAY, CS2, AF21, AF22, AF23]),
        (2, &[CS3, AF31, AF32, AF33, AF41, AF42, AF43]),
        (3, &[CS4, CS5, VA, EF, CS6, CS7]),
    ],
);

static DIFFSERV8: Map = map(
    2,
    &[
        (0, &[LE]),
        (1, &[TOS_THROUGHPUT, CS1, AF11, AF12, AF13]),
        (3, &[CS3, AF31, AF32, AF33, AF41, AF42, AF43]),
        (4, &[TOS_DELAY, AF21, AF22, AF23]),
        (5, &[CS2]),
        (6, &[CS4, CS5, VA, EF]),
        (7, &[CS6, CS7]),
    ],
);

/// A set of tins and the code points that go to each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Bulk, Best Effort and Voice.
    #[default]
    Diffserv3,
    /// Bulk, Best Effort, Video and Voice.
    Diffserv4,
    /// Eight classes after RFC 4594.
    Diffserv8,
    /// One tin for everything.
    Besteffort,
    /// RFC 791's eight precedences. For networks that still use them.
    Precedence,
}

/// What a preset gives a tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TinSpec {
    /// Bytes per second within which the tin keeps its priority; 0 with unlimited bandwidth.
    pub threshold: u64,
    /// The tin's weight where no shaper tells who may send.
    pub quantum: u16,
    /// Whether the tin ranks above the one that unmarked traffic uses.
    pub above_best_effort: bool,
}

impl Preset {
    /// How many tins there are: 1 to 8.
    pub const fn tin_count(self) -> usize {
        match self {
            Self::Besteffort => 1,
            Self::Diffserv3 => 3,
            Self::Diffserv4 => 4,
            Self::Precedence | Self::Diffserv8 => MAX_TINS,
        }
    }

    /// The tins in use.
    pub fn tins(self) -> impl DoubleEndedIterator<Item = TinIndex> {
        (0..self.tin_count() as u32).map(TinIndex::new)
    }

    /// The tin shown at position `display`, counted from 0. It is the number by which marks,
    /// priorities and statistics name a tin.
    #[inline]
    pub fn tin_at(self, display: u32) -> Option<TinIndex> {
        if display >= self.tin_count() as u32 {
            return None;
        }
        // People expect the lowest priority first, but Best Effort is the tin with index 0.
        Some(TinIndex::new(match (self, display) {
            (Self::Diffserv3 | Self::Diffserv4, 0) => 1,
            (Self::Diffserv3 | Self::Diffserv4, 1) => 0,
            _ => display,
        }))
    }

    /// The tin for a six-bit code point.
    #[inline]
    pub fn classify(self, dscp: u8) -> TinIndex {
        let map = match self {
            Self::Besteffort => &BESTEFFORT,
            Self::Precedence => &PRECEDENCE,
            Self::Diffserv3 => &DIFFSERV3,
            Self::Diffserv4 => &DIFFSERV4,
            Self::Diffserv8 => &DIFFSERV8,
        };
        TinIndex::new(u32::from(map[usize::from(dscp) & (CODE_POINTS - 1)]))
    }

    /// What `tin` gets of `bandwidth` bytes per second.
    pub fn spec(self, tin: TinIndex, bandwidth: u64) -> TinSpec {
        let best_effort = self.classify(DF);
        let (threshold, quantum) = match self {
            Self::Besteffort => (bandwidth, u16::MAX),
            Self::Precedence | Self::Diffserv8 => {
                // Each tin gets 7/8 of the one below it in priority.
                (0..tin.at()).fold((bandwidth, 256u16), |(rate, quantum), _| {
                    (rate.wrapping_mul(7) >> 3, quantum.wrapping_mul(7) >> 3)
                })
            }
            Self::Diffserv3 | Self::Diffserv4 => {
                let shift = match (self, tin.at()) {
                    (_, 0) => 0,
                    (_, 1) => 4,
                    (Self::Diffserv4, 2) => 1,
                    _ => 2,
                };
                (bandwidth >> shift, 1024u16 >> shift)
            }
        };
        let bulk = matches!(self, Self::Diffserv3 | Self::Diffserv4) && tin.at() == 1;
        TinSpec {
            threshold,
            quantum,
            above_best_effort: tin.at() > best_effort.at() && !bulk,
        }
    }
}
