// SPDX-License-Identifier: GPL-2.0

//! The words of `tc qdisc … cake`: from a command line to what is asked for.

use crate::{
    names::{FLOW_MODES, PRESETS},
    tc,
    tins::{self, TinWords},
    uapi::*,
};
use std::str::FromStr;

/// Why a command line is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Because of a word that tc has as well.
    Word(String),
    /// Because of what is said of a tin.
    Tin(String),
    /// Help is wanted.
    Help,
}

/// What is asked for. What was not named is [`None`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub bandwidth: Option<u64>,
    pub diffserv: Option<u32>,
    pub cells: Option<u32>,
    pub flow_mode: Option<u32>,
    pub overhead: Option<i32>,
    pub raw: bool,
    pub mpu: Option<u32>,
    pub rtt: Option<u32>,
    pub target: Option<u32>,
    pub autorate: Option<u32>,
    pub memlimit: Option<u32>,
    pub fwmark: Option<u32>,
    pub nat: Option<u32>,
    pub wash: Option<u32>,
    pub split_gso: Option<u32>,
    pub ingress: Option<u32>,
    pub ack_filter: Option<u32>,
    /// By the names of the tins, each once.
    pub tins: Vec<(String, TinWords)>,
}

/// Link layers: name, cell framing, bytes added to the overhead, MPU.
const LINK_LAYERS: &[(&str, Option<u32>, i32, Option<u32>)] = &[
    ("ipoa-vcmux", Some(CAKE_ATM_ATM), 8, None),
    ("ipoa-llcsnap", Some(CAKE_ATM_ATM), 16, None),
    ("bridged-vcmux", Some(CAKE_ATM_ATM), 24, None),
    ("bridged-llcsnap", Some(CAKE_ATM_ATM), 32, None),
    ("pppoa-vcmux", Some(CAKE_ATM_ATM), 10, None),
    ("pppoa-llc", Some(CAKE_ATM_ATM), 14, None),
    ("pppoe-vcmux", Some(CAKE_ATM_ATM), 32, None),
    ("pppoe-llcsnap", Some(CAKE_ATM_ATM), 40, None),
    ("pppoe-ptm", Some(CAKE_ATM_PTM), 30, None),
    ("bridged-ptm", Some(CAKE_ATM_PTM), 22, None),
    ("ethernet", None, 38, Some(84)),
    ("ether-vlan", None, 4, None),
    ("docsis", Some(CAKE_ATM_NONE), 18, Some(64)),
];

/// Round-trip times: name, target and interval in microseconds.
const RTTS: &[(&str, u32, u32)] = &[
    ("datacentre", 5, 100),
    ("lan", 50, 1_000),
    ("metro", 500, 10_000),
    ("regional", 1_500, 30_000),
    ("internet", 5_000, 100_000),
    ("oceanic", 15_000, 300_000),
    ("satellite", 50_000, 1_000_000),
    ("interplanetary", 50_000_000, 1_000_000_000),
];

/// The other words, for suggestions.
const OTHERS: &[&str] = &[
    "bandwidth",
    "unlimited",
    "autorate-ingress",
    "rtt",
    "diffserv",
    "nat",
    "nonat",
    "wash",
    "nowash",
    "split-gso",
    "no-split-gso",
    "ack-filter",
    "ack-filter-aggressive",
    "no-ack-filter",
    "memlimit",
    "fwmark",
    "ptm",
    "atm",
    "noatm",
    "overhead",
    "conservative",
    "raw",
    "via-ethernet",
    "mpu",
    "ingress",
    "egress",
    "tin",
    "help",
];

/// What `help` shows.
pub const USAGE: &str = "\
Usage: ... cake [ bandwidth RATE | unlimited* | autorate-ingress ]
                [ rtt TIME | datacentre | lan | metro | regional |
                  internet* | oceanic | satellite | interplanetary ]
                [ besteffort | diffserv8 | diffserv4 | diffserv3* ]
                [ flowblind | srchost | dsthost | hosts | flows |
                  dual-srchost | dual-dsthost | triple-isolate* ]
                [ nat | nonat* ]
                [ wash | nowash* ]
                [ split-gso* | no-split-gso ]
                [ ack-filter | ack-filter-aggressive | no-ack-filter* ]
                [ memlimit LIMIT ]
                [ fwmark MASK ]
                [ ptm | atm | noatm* ] [ overhead N | conservative | raw* ]
                [ mpu N ] [ ingress | egress* ]
                [ tin NAME [ default ] [ thresh RATE | N% | default ]
                  [ target TIME | default ] [ interval TIME | default ]
                  [ burst SIZE ] [ dscp LIST | none ] ] ...
                (* marks defaults)
";

/// The words of a command line, one after the other.
pub struct Words<'a>(std::iter::Peekable<std::slice::Iter<'a, String>>);

impl<'a> Words<'a> {
    pub fn new(words: &'a [String]) -> Self {
        Self(words.iter().peekable())
    }

    pub fn peek(&mut self) -> Option<&'a str> {
        self.0.peek().map(|word| word.as_str())
    }

    pub fn next(&mut self) -> Option<&'a str> {
        self.0.next().map(String::as_str)
    }

    /// The value that follows `word`, as `parse` reads it.
    fn value<T>(
        &mut self,
        word: &str,
        parse: impl FnOnce(&str) -> Option<T>,
        form: &str,
    ) -> Result<T, Refusal> {
        let refuse = |reason| Err(Refusal::Word(format!("\"{word}\" {reason}")));
        let Some(text) = self.next() else {
            return refuse(format!("must be followed by {form}"));
        };
        match parse(text) {
            Some(value) => Ok(value),
            None => refuse(format!("takes {form}, not \"{text}\"")),
        }
    }
}

/// A whole number within `range`.
fn within<T: FromStr + PartialOrd>(
    range: std::ops::RangeInclusive<T>,
) -> impl FnOnce(&str) -> Option<T> {
    move |text| text.parse().ok().filter(|value| range.contains(value))
}

/// A number as C writes it: decimal, octal with 0 or hexadecimal with 0x in front.
pub fn c_number(text: &str) -> Option<u32> {
    match (
        text.strip_prefix("0x").or(text.strip_prefix("0X")),
        text.strip_prefix('0'),
    ) {
        (Some(digits), _) => u32::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// Reads a command line. The last word on a matter wins; link layers add up.
pub fn parse(line: &[String]) -> Result<Wanted, Refusal> {
    let mut wanted = Wanted::default();
    let mut words = Words::new(line);
    while let Some(word) = words.next() {
        if word == "tin" {
            tins::parse(&mut words, &mut wanted.tins).map_err(Refusal::Tin)?;
        } else if !wanted.take_name(word) && !wanted.take_flag(word) {
            wanted.take_valued(word, &mut words)?;
        }
    }
    Ok(wanted)
}

impl Wanted {
    /// Takes a word out of one of the tables.
    fn take_name(&mut self, word: &str) -> bool {
        if let Some((_, target, interval)) = RTTS.iter().find(|row| row.0 == word) {
            (self.target, self.rtt) = (Some(*target), Some(*interval));
        } else if let Some((_, number, _)) = PRESETS.iter().find(|row| row.0 == word) {
            self.diffserv = Some(*number);
        } else if let Some((_, number)) = FLOW_MODES.iter().find(|row| row.0 == word) {
            self.flow_mode = Some(*number);
        } else if let Some((_, cells, bytes, mpu)) = LINK_LAYERS.iter().find(|row| row.0 == word) {
            self.cells = cells.or(self.cells);
            self.mpu = mpu.or(self.mpu);
            self.overhead = Some(self.overhead.unwrap_or(0).saturating_add(*bytes));
        } else {
            return false;
        }
        true
    }

    /// Takes a word that stands for itself.
    fn take_flag(&mut self, word: &str) -> bool {
        match word {
            "unlimited" => (self.bandwidth, self.autorate) = (Some(0), Some(0)),
            "autorate-ingress" => self.autorate = Some(1),
            "diffserv" => self.diffserv = Some(CAKE_DIFFSERV_DIFFSERV4),
            "nat" => self.nat = Some(1),
            "nonat" => self.nat = Some(0),
            "wash" => self.wash = Some(1),
            "nowash" => self.wash = Some(0),
            "split-gso" => self.split_gso = Some(1),
            "no-split-gso" => self.split_gso = Some(0),
            "ingress" => self.ingress = Some(1),
            "egress" => self.ingress = Some(0),
            "ack-filter" => self.ack_filter = Some(CAKE_ACK_FILTER),
            "ack-filter-aggressive" => self.ack_filter = Some(CAKE_ACK_AGGRESSIVE),
            "no-ack-filter" => self.ack_filter = Some(CAKE_ACK_NONE),
            "ptm" => self.cells = Some(CAKE_ATM_PTM),
            "atm" => self.cells = Some(CAKE_ATM_ATM),
            "noatm" => self.cells = Some(CAKE_ATM_NONE),
            "raw" => {
                (self.cells, self.overhead) = (Some(CAKE_ATM_NONE), Some(0));
                self.raw = true;
            }
            // One cell and its framing: safe where the overhead is not known.
            "conservative" => (self.cells, self.overhead) = (Some(CAKE_ATM_ATM), Some(48)),
            // The kernel sees the device's own header; the word does nothing any more.
            "via-ethernet" => {}
            _ => return false,
        }
        true
    }

    /// Takes a word that a value follows.
    fn take_valued(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        match word {
            // As tc prints it.
            "bandwidth" if words.peek() == Some("unlimited") => {}
            "bandwidth" => {
                let rate = words.value(word, tc::parse_rate, "a rate")?;
                // tc leaves the bandwidth alone then.
                self.bandwidth = Some(rate).filter(|rate| *rate != 0);
                self.autorate = Some(0);
            }
            "rtt" => {
                let us = words.value(word, tc::parse_time, "a time")?;
                // CoDel's target is 5 % of its interval.
                (self.rtt, self.target) = (Some(us), Some((us / 20).max(1)));
            }
            "overhead" => {
                let form = "bytes from -64 to 256";
                self.overhead = Some(words.value(word, within(-64..=256), form)?);
            }
            "mpu" => self.mpu = Some(words.value(word, within(0..=256), "bytes from 0 to 256")?),
            "memlimit" => self.memlimit = Some(words.value(word, tc::parse_size, "a size")?),
            "fwmark" => self.fwmark = Some(words.value(word, c_number, "a mask")?),
            "help" => return Err(Refusal::Help),
            _ => {
                return Err(Refusal::Word(format!(
                    "What is \"{word}\"?{}",
                    suggestion(word)
                )))
            }
        }
        Ok(())
    }
}

/// " Did you mean …?" if a word is near.
fn suggestion(word: &str) -> String {
    let all = (OTHERS.iter().copied())
        .chain(PRESETS.iter().map(|row| row.0))
        .chain(FLOW_MODES.iter().map(|row| row.0))
        .chain(LINK_LAYERS.iter().map(|row| row.0))
        .chain(RTTS.iter().map(|row| row.0))
        .chain(tins::WORDS.iter().copied());
    did_you_mean(word, all)
}

/// " Did you mean …?" if one of `all` is near to `word`.
pub fn did_you_mean<'a>(word: &str, all: impl Iterator<Item = &'a str>) -> String {
    let near = all
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4);
    match near {
        Some((_, known)) => format!(" Did you mean \"{known}\"?"),
        None => " Try \"help\".".to_owned(),
    }
}
