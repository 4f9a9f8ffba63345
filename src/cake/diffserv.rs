// SPDX-License-Identifier: GPL-2.0

//! DiffServ: which code points go to which tin, and what each tin may take.
//!
//! The classes are those of RFC 4594 as updated by RFC 8622 (LE) and RFC 5865 (VOICE-ADMIT). A
//! threshold is no limit: a tin above it keeps its bandwidth as long as nobody else wants it, but
//! loses its priority.

use super::{
    config::Config,
    index::{TinIndex, MAX_TINS}, //
};

/// Declares the code points that have names, and a table of these.
macro_rules! code_points {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $word:literal;)*) => {
        mod dscp {
            $($(#[$doc])* pub(super) const $name: u8 = $value;)*
        }

        /// Code points and the names that RFC 4594, RFC 5865 and RFC 8622 give them.
        pub const NAMES: &[(&str, u8)] = &[$(($word, $value)),*];
    };
}

code_points! {
    DF = 0, "df";
    LE = 1, "le";
    /// RFC 1349's "maximize throughput".
    TOS_THROUGHPUT = 2, "tos2";
    /// RFC 1349's "minimize delay".
    TOS_DELAY = 4, "tos4";
    CS1 = 8, "cs1";
    AF11 = 10, "af11";
    AF12 = 12, "af12";
    AF13 = 14, "af13";
    CS2 = 16, "cs2";
    AF21 = 18, "af21";
    AF22 = 20, "af22";
    AF23 = 22, "af23";
    CS3 = 24, "cs3";
    AF31 = 26, "af31";
    AF32 = 28, "af32";
    AF33 = 30, "af33";
    CS4 = 32, "cs4";
    AF41 = 34, "af41";
    AF42 = 36, "af42";
    AF43 = 38, "af43";
    CS5 = 40, "cs5";
    VA = 44, "va";
    EF = 46, "ef";
    CS6 = 48, "cs6";
    CS7 = 56, "cs7";
}
use dscp::*;

/// The name of a six-bit code point, if it has one.
pub fn name_of(dscp: u8) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|(_, point)| *point == dscp)
        .map(|(name, _)| *name)
}

/// A set of code points, bit n for code point n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct CodePoints(pub u64);

impl CodePoints {
    /// Whether the set holds none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set holds a six-bit code point.
    pub const fn contains(self, dscp: u8) -> bool {
        (self.0 >> (dscp & (CODE_POINTS as u8 - 1))) & 1 != 0
    }

    /// The code points that are in both sets.
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The first code point.
    pub const fn first(self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        Some(self.0.trailing_zeros() as u8)
    }
}

/// Code points in a DiffServ field.
const CODE_POINTS: usize = 64;
/// The code point of traffic that keeps the network itself alive, ARP for one.
pub const NETWORK_CONTROL: u8 = CS7;

/// A tin for each code point.
type Map = [u8; CODE_POINTS];

/// The tins of all code points under a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Classes(Map);

impl Classes {
    /// The preset's map, and over it what the tins' settings name.
    pub fn of(config: &Config) -> Self {
        let mut map = *config.preset.map();
        for tin in config.preset.tins() {
            let named = config.tin(tin).code_points;
            for (entry, dscp) in map.iter_mut().zip(0..CODE_POINTS as u8) {
                if named.contains(dscp) {
                    *entry = tin.at() as u8;
                }
            }
        }
        Self(map)
    }

    /// The tin for a six-bit code point.
    #[inline]
    pub fn tin(&self, dscp: u8) -> TinIndex {
        TinIndex::new(u32::from(self.0[usize::from(dscp) & (CODE_POINTS - 1)]))
    }
}

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

    fn map(self) -> &'static Map {
        match self {
            Self::Besteffort => &BESTEFFORT,
            Self::Precedence => &PRECEDENCE,
            Self::Diffserv3 => &DIFFSERV3,
            Self::Diffserv4 => &DIFFSERV4,
            Self::Diffserv8 => &DIFFSERV8,
        }
    }

    /// The names of the tins in display order, for people.
    pub const fn tin_names(self) -> &'static [&'static str] {
        match self {
            Self::Besteffort => &["tin0"],
            Self::Diffserv3 => &["bulk", "besteffort", "voice"],
            Self::Diffserv4 => &["bulk", "besteffort", "video", "voice"],
            Self::Precedence | Self::Diffserv8 => &[
                "tin0", "tin1", "tin2", "tin3", "tin4", "tin5", "tin6", "tin7",
            ],
        }
    }

    /// What `tin` gets of `bandwidth` bytes per second.
    pub fn spec(self, tin: TinIndex, bandwidth: u64) -> TinSpec {
        let best_effort = self.map()[usize::from(DF)];
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
            above_best_effort: tin.at() > usize::from(best_effort) && !bulk,
        }
    }
}
