// SPDX-License-Identifier: GPL-2.0

//! The words of single tins: `tin NAME thresh … target … interval … burst … dscp …`.

use crate::{
    attributes::{Attributes, Builder},
    tc,
    uapi::*,
    words::{c_number, did_you_mean, Words},
};
use cake::cake::{
    config::{Threshold, TinConfig},
    diffserv::{self, Preset},
};

/// What is said of one tin. What was not named is [`None`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TinWords {
    pub reset: bool,
    pub threshold: Option<Threshold>,
    /// Microseconds; 0 is the default.
    pub target: Option<u32>,
    /// Likewise.
    pub interval: Option<u32>,
    /// Bytes.
    pub burst: Option<u32>,
    /// Bit n is code point n.
    pub dscp: Option<u64>,
}

/// The words that follow a tin's name.
pub const WORDS: &[&str] = &["default", "thresh", "target", "interval", "burst", "dscp"];

/// Other names of code points.
const ALIASES: &[(&str, u8)] = &[("cs0", 0), ("voice-admit", 44)];

/// Takes a tin's name and its words, and adds them to what was said of the tin before.
pub fn parse(words: &mut Words<'_>, tins: &mut Vec<(String, TinWords)>) -> Result<(), String> {
    let Some(name) = words.next() else {
        return Err("\"tin\" must be followed by the name of a tin".to_owned());
    };
    let at = match tins.iter().position(|(known, _)| known == name) {
        Some(at) => at,
        None => {
            tins.push((name.to_owned(), TinWords::default()));
            tins.len() - 1
        }
    };
    let set = &mut tins[at].1;
    let mut is_empty = true;
    while let Some(word) = words.peek().filter(|word| WORDS.contains(word)) {
        words.next();
        is_empty = false;
        set.take(word, words)
            .map_err(|reason| format!("tin {name}: {reason}"))?;
    }
    if is_empty {
        let nearest = words.peek().map_or(String::new(), |word| {
            format!(
                ", not \"{word}\".{}",
                did_you_mean(word, WORDS.iter().copied())
            )
        });
        let list = WORDS.join(", ");
        return Err(format!(
            "tin {name} must be followed by one of {list}{nearest}"
        ));
    }
    if let (Some(target), Some(interval)) = (set.target, set.interval) {
        if interval != 0 && interval <= target {
            return Err(format!("tin {name}: the interval must be above the target"));
        }
    }
    Ok(())
}

impl TinWords {
    fn take(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), String> {
        if word == "default" {
            *self = Self {
                reset: true,
                ..Self::default()
            };
            return Ok(());
        }
        let Some(text) = words.next() else {
            return Err(format!("\"{word}\" must be followed by a value"));
        };
        match word {
            "thresh" => self.threshold = Some(threshold(text)?),
            "target" => self.target = Some(time(word, text)?),
            "interval" => self.interval = Some(time(word, text)?),
            "burst" => {
                let bytes = tc::parse_size(text)
                    .ok_or_else(|| format!("\"burst\" takes a size, not \"{text}\""))?;
                if bytes > TinConfig::MAX_BURST {
                    return Err(format!("burst {text} is more than a burst may be, 1 MiB"));
                }
                self.burst = Some(bytes);
            }
            _ => self.dscp = Some(code_points(text)?),
        }
        Ok(())
    }

    /// The attributes that say it to the kernel.
    pub fn attributes(&self) -> Builder {
        let mut builder = Builder::default();
        if self.reset {
            builder.put(TCA_CAKE_TIN_RESET, &[]);
        }
        match self.threshold {
            None => {}
            Some(Threshold::Preset) => builder.put_u32(TCA_CAKE_TIN_THRESH_SHARE, Some(0)),
            Some(Threshold::Rate(rate)) => builder.put_u64(TCA_CAKE_TIN_THRESH_RATE64, Some(rate)),
            Some(Threshold::Share(share)) => {
                builder.put_u32(TCA_CAKE_TIN_THRESH_SHARE, Some(share));
            }
        }
        builder.put_u32(TCA_CAKE_TIN_TARGET, self.target);
        builder.put_u32(TCA_CAKE_TIN_INTERVAL, self.interval);
        builder.put_u32(TCA_CAKE_TIN_BURST, self.burst);
        builder.put_u64(TCA_CAKE_TIN_DSCP, self.dscp);
        builder
    }

    /// What the kernel says of a tin.
    pub fn of(attributes: &Attributes<'_>) -> Self {
        let rate = attributes
            .u64(TCA_CAKE_TIN_THRESH_RATE64)
            .map(Threshold::Rate);
        let share = attributes
            .u32(TCA_CAKE_TIN_THRESH_SHARE)
            .map(Threshold::Share);
        Self {
            reset: false,
            threshold: rate.or(share),
            target: attributes.u32(TCA_CAKE_TIN_TARGET),
            interval: attributes.u32(TCA_CAKE_TIN_INTERVAL),
            burst: attributes.u32(TCA_CAKE_TIN_BURST),
            dscp: attributes.u64(TCA_CAKE_TIN_DSCP),
        }
    }

    /// The words that say it to tc.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut add = |word: &str, value: Option<String>| {
            if let Some(value) = value {
                text.push_str(&format!("{word} {value} "));
            }
        };
        add("thresh", self.threshold.map(threshold_text));
        add("target", self.target.map(tc::exact_time));
        add("interval", self.interval.map(tc::exact_time));
        add("burst", self.burst.map(tc::exact_size));
        add("dscp", self.dscp.map(|points| names(points).join(",")));
        text
    }
}

fn threshold(text: &str) -> Result<Threshold, String> {
    if text == "default" {
        return Ok(Threshold::Preset);
    }
    if let Some(percent) = text.strip_suffix('%') {
        let percent: f64 = percent
            .parse()
            .map_err(|_| format!("\"thresh\" takes a rate or a percentage, not \"{text}\""))?;
        let share = percent * f64::from(Threshold::WHOLE) / 100.0;
        if !(1.0..=f64::from(Threshold::WHOLE)).contains(&share) {
            return Err(format!("thresh {text} is not within 0.0001% to 100%"));
        }
        // CAST: Within the range above.
        return Ok(Threshold::Share(share.round() as u32));
    }
    match tc::parse_rate(text) {
        Some(rate) if rate >= Threshold::MIN_RATE => Ok(Threshold::Rate(rate)),
        Some(_) => Err(format!(
            "thresh {text} is less than a threshold may be, {} bytes a second",
            Threshold::MIN_RATE
        )),
        None => Err(format!(
            "\"thresh\" takes a rate or a percentage, not \"{text}\""
        )),
    }
}

fn threshold_text(threshold: Threshold) -> String {
    match threshold {
        Threshold::Preset => "default".to_owned(),
        Threshold::Rate(rate) => tc::exact_rate(rate),
        Threshold::Share(share) => format!("{}%", f64::from(share) / 10_000.0),
    }
}

fn time(word: &str, text: &str) -> Result<u32, String> {
    match (text, tc::parse_time(text)) {
        ("default", _) => Ok(0),
        (_, Some(0)) => Err(format!("{word} {text} is less than a {word} may be, 1us")),
        (_, Some(us)) => Ok(us),
        (_, None) => Err(format!("\"{word}\" takes a time, not \"{text}\"")),
    }
}

/// A list of code points as bits.
fn code_points(list: &str) -> Result<u64, String> {
    if list == "none" {
        return Ok(0);
    }
    let known = || diffserv::NAMES.iter().chain(ALIASES);
    list.split(',').try_fold(0, |points, text| {
        let named = known().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let point = match named {
            Some((_, point)) => u32::from(*point),
            None => c_number(text)
                .filter(|number| *number < 64)
                .ok_or_else(|| {
                    let nearest = did_you_mean(text, known().map(|(name, _)| *name));
                    format!(
                        "\"{text}\" is no code point: a name or a number from 0 to 63.{nearest}"
                    )
                })?,
        };
        Ok(points | (1 << point))
    })
}

/// The names of code points, or their numbers.
pub fn names(points: u64) -> Vec<String> {
    (0..64u8)
        .filter(|point| (points >> point) & 1 != 0)
        .map(|point| diffserv::name_of(point).map_or(point.to_string(), str::to_owned))
        .collect()
}

/// Puts what is said of tins, by the numbers that they have in `preset`.
pub fn put(
    builder: &mut Builder,
    tins: &[(String, TinWords)],
    mode: &str,
    preset: Preset,
) -> Result<(), String> {
    let known = preset.tin_names();
    let mut nest = Builder::default();
    let mut taken: Vec<(&str, u64)> = Vec::new();
    for (name, words) in tins {
        let Some(display) = known.iter().position(|known| known == name) else {
            let list = known.join(", ");
            return Err(format!("there is no tin \"{name}\": {mode} has {list}"));
        };
        let points = words.dscp.unwrap_or(0);
        if let Some((other, shared)) = (taken.iter())
            .map(|(other, theirs)| (other, theirs & points))
            .find(|(_, shared)| *shared != 0)
        {
            let list = names(shared).join(",");
            return Err(format!(
                "dscp {list} goes to tin {other} or to tin {name}, not to both"
            ));
        }
        taken.push((name, points));
        nest.put(display as u32 + 1, words.attributes().bytes());
    }
    if !tins.is_empty() {
        builder.put(TCA_CAKE_TINS, nest.bytes());
    }
    Ok(())
}
