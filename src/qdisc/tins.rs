// SPDX-License-Identifier: GPL-2.0

//! Settings of single tins, `TCA_CAKE_TINS`: from and to netlink attributes.

use crate::{
    cake::{
        config::{Threshold, TinConfig},
        diffserv::{self, CodePoints},
        index::{TinIndex, MAX_TINS},
        Config, //
    },
    net::{
        netlink::{Attribute, ExtAck, Message},
        pkt_sched::*, //
    },
};
use kernel::{
    fmt,
    prelude::*, //
};

/// One more than the largest type of a setting.
const KINDS: usize = TCA_CAKE_TIN_PAD as usize + 1;

/// What the types are called.
static KIND_NAMES: [&str; KINDS] = {
    let mut names = [""; KINDS];
    names[TCA_CAKE_TIN_THRESH_RATE64 as usize] = "TCA_CAKE_TIN_THRESH_RATE64";
    names[TCA_CAKE_TIN_THRESH_SHARE as usize] = "TCA_CAKE_TIN_THRESH_SHARE";
    names[TCA_CAKE_TIN_TARGET as usize] = "TCA_CAKE_TIN_TARGET";
    names[TCA_CAKE_TIN_INTERVAL as usize] = "TCA_CAKE_TIN_INTERVAL";
    names[TCA_CAKE_TIN_BURST as usize] = "TCA_CAKE_TIN_BURST";
    names[TCA_CAKE_TIN_DSCP as usize] = "TCA_CAKE_TIN_DSCP";
    names[TCA_CAKE_TIN_RESET as usize] = "TCA_CAKE_TIN_RESET";
    names
};

/// What a request says of one tin.
struct TinRequest<'a> {
    tin: TinIndex,
    name: &'static str,
    settings: [Option<Attribute<'a>>; KINDS],
}

impl<'a> TinRequest<'a> {
    /// Collects the settings that `attribute` nests, none of them twice.
    fn parse(
        tin: TinIndex,
        name: &'static str,
        attribute: Attribute<'a>,
        extack: &mut ExtAck<'_>,
    ) -> Result<Self> {
        let mut settings = [None; KINDS];
        for child in attribute.children() {
            let Some(child) = child else {
                return Err(extack.refuse_for(
                    attribute,
                    fmt!("TCA_CAKE_TINS: tin {name}: an attribute is cut off"),
                    EINVAL,
                ));
            };
            let kind = child.kind();
            match settings.get_mut(kind as usize) {
                _ if kind == TCA_CAKE_TIN_PAD => {}
                Some(setting) if kind != TCA_CAKE_TIN_UNSPEC && setting.is_none() => {
                    *setting = Some(child);
                }
                Some(Some(_)) => {
                    return Err(extack.refuse_for(
                        child,
                        fmt!("tin {name}: {} is there twice", kind_name(kind)),
                        EINVAL,
                    ));
                }
                _ => {
                    return Err(extack.refuse_for(
                        child,
                        fmt!("TCA_CAKE_TINS: tin {name}: no attribute has type {kind}"),
                        EINVAL,
                    ));
                }
            }
        }
        Ok(Self {
            tin,
            name,
            settings,
        })
    }

    fn get(&self, kind: u32) -> Option<Attribute<'a>> {
        self.settings.get(kind as usize).copied().flatten()
    }

    fn refuse(
        &self,
        attribute: Attribute<'_>,
        reason: fmt::Arguments<'_>,
        error: Error,
        extack: &mut ExtAck<'_>,
    ) -> Error {
        let kind = kind_name(attribute.kind());
        extack.refuse_for(
            attribute,
            fmt!("tin {}: {kind}: {reason}", self.name),
            error,
        )
    }

    /// The bytes of the setting of type `kind`, if it is there; fails if these are not `N`.
    fn bytes<const N: usize>(
        &self,
        kind: u32,
        extack: &mut ExtAck<'_>,
    ) -> Result<Option<(Attribute<'a>, [u8; N])>> {
        let Some(attribute) = self.get(kind) else {
            return Ok(None);
        };
        match <[u8; N]>::try_from(attribute.bytes()) {
            Ok(bytes) => Ok(Some((attribute, bytes))),
            Err(_) => Err(self.refuse(attribute, fmt!("not {N} bytes long"), EINVAL, extack)),
        }
    }

    /// The number of type `kind`, if it is there.
    fn u32(&self, kind: u32, extack: &mut ExtAck<'_>) -> Result<Option<(Attribute<'a>, u32)>> {
        let found = self.bytes(kind, extack)?;
        Ok(found.map(|(attribute, bytes)| (attribute, u32::from_ne_bytes(bytes))))
    }

    /// Likewise.
    fn u64(&self, kind: u32, extack: &mut ExtAck<'_>) -> Result<Option<(Attribute<'a>, u64)>> {
        let found = self.bytes(kind, extack)?;
        Ok(found.map(|(attribute, bytes)| (attribute, u64::from_ne_bytes(bytes))))
    }

    /// Changes `set` as requested.
    fn apply(&self, set: &mut TinConfig, extack: &mut ExtAck<'_>) -> Result {
        if self.bytes::<0>(TCA_CAKE_TIN_RESET, extack)?.is_some() {
            *set = TinConfig::default();
        }
        self.apply_threshold(set, extack)?;
        if let Some((_, us)) = self.u32(TCA_CAKE_TIN_TARGET, extack)? {
            set.target_us = us;
        }
        if let Some((_, us)) = self.u32(TCA_CAKE_TIN_INTERVAL, extack)? {
            set.interval_us = us;
        }
        if set.interval_us != 0 && set.interval_us <= set.target_us {
            let changed = self
                .get(TCA_CAKE_TIN_INTERVAL)
                .or(self.get(TCA_CAKE_TIN_TARGET));
            if let Some(changed) = changed {
                return Err(self.refuse(
                    changed,
                    fmt!("interval not above target"),
                    EINVAL,
                    extack,
                ));
            }
        }
        if let Some((attribute, bytes)) = self.u32(TCA_CAKE_TIN_BURST, extack)? {
            if bytes > TinConfig::MAX_BURST {
                return Err(self.refuse(
                    attribute,
                    fmt!("more than {} bytes", TinConfig::MAX_BURST),
                    ERANGE,
                    extack,
                ));
            }
            set.burst = Some(bytes);
        }
        if let Some((_, points)) = self.u64(TCA_CAKE_TIN_DSCP, extack)? {
            set.code_points = CodePoints(points);
        }
        Ok(())
    }

    fn apply_threshold(&self, set: &mut TinConfig, extack: &mut ExtAck<'_>) -> Result {
        let rate = self.u64(TCA_CAKE_TIN_THRESH_RATE64, extack)?;
        let share = self.u32(TCA_CAKE_TIN_THRESH_SHARE, extack)?;
        if let (Some(_), Some((attribute, _))) = (rate, share) {
            return Err(self.refuse(attribute, fmt!("not beside a rate"), EINVAL, extack));
        }
        match (rate, share) {
            (Some((_, 0)), _) | (_, Some((_, 0))) => set.threshold = Threshold::Preset,
            (Some((attribute, rate)), _) => {
                if rate < Threshold::MIN_RATE {
                    return Err(self.refuse(
                        attribute,
                        fmt!("below {} bytes a second", Threshold::MIN_RATE),
                        ERANGE,
                        extack,
                    ));
                }
                set.threshold = Threshold::Rate(rate);
            }
            (_, Some((attribute, share))) => {
                if share > Threshold::WHOLE {
                    return Err(self.refuse(
                        attribute,
                        fmt!("more than {}", Threshold::WHOLE),
                        ERANGE,
                        extack,
                    ));
                }
                set.threshold = Threshold::Share(share);
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// Fails if a code point that this request gives the tin belongs to another one.
    fn check_code_points(&self, config: &Config, extack: &mut ExtAck<'_>) -> Result {
        let Some(attribute) = self.get(TCA_CAKE_TIN_DSCP) else {
            return Ok(());
        };
        let ours = config.tin(self.tin).code_points;
        for (other, name) in named_tins(config) {
            let shared = ours.both(config.tin(other).code_points);
            if let (true, Some(dscp)) = (other != self.tin, shared.first()) {
                return Err(match diffserv::name_of(dscp) {
                    Some(point) => {
                        self.refuse(attribute, fmt!("{point} is tin {name}'s"), EINVAL, extack)
                    }
                    None => self.refuse(attribute, fmt!("{dscp} is tin {name}'s"), EINVAL, extack),
                });
            }
        }
        Ok(())
    }
}

fn kind_name(kind: u32) -> &'static str {
    KIND_NAMES.get(kind as usize).copied().unwrap_or_default()
}

/// The tins in use and their names, in display order.
fn named_tins(config: &Config) -> impl Iterator<Item = (TinIndex, &'static str)> {
    let preset = config.preset;
    let names = preset.tin_names().iter().copied();
    (0..MAX_TINS as u32)
        .map_while(move |display| preset.tin_at(display))
        .zip(names)
}

/// Changes the settings of tins in `config` as the attributes in `options` say.
///
/// # Errors
///
/// Fails, with an explanation, if any of them is not valid. What `config` is then is not said.
pub(super) fn apply(
    config: &mut Config,
    options: Attribute<'_>,
    extack: &mut ExtAck<'_>,
) -> Result {
    let mut requests: [Option<TinRequest<'_>>; MAX_TINS] = [const { None }; MAX_TINS];
    let mut is_seen = false;
    // As for the other options, what follows the last whole one is ignored.
    for option in options.children().map_while(|option| option) {
        if option.kind() != TCA_CAKE_TINS {
            continue;
        }
        if is_seen {
            return Err(extack.refuse(option, c"TCA_CAKE_TINS is there twice", EINVAL));
        }
        is_seen = true;
        parse_all(config, option, &mut requests, extack)?;
    }
    for request in requests.iter().flatten() {
        request.apply(config.tin_mut(request.tin), extack)?;
    }
    for request in requests.iter().flatten() {
        request.check_code_points(config, extack)?;
    }
    Ok(())
}

/// Collects what `tins` says of each tin into `requests`.
fn parse_all<'a>(
    config: &Config,
    tins: Attribute<'a>,
    requests: &mut [Option<TinRequest<'a>>; MAX_TINS],
    extack: &mut ExtAck<'_>,
) -> Result {
    for child in tins.children() {
        let Some(child) = child else {
            return Err(extack.refuse(tins, c"TCA_CAKE_TINS: an attribute is cut off", EINVAL));
        };
        let number = child.kind();
        let found = number
            .checked_sub(1)
            .and_then(|display| named_tins(config).nth(display as usize));
        let Some((tin, name)) = found else {
            let count = config.preset.tin_count();
            return Err(extack.refuse_for(
                child,
                fmt!("TCA_CAKE_TINS: no tin {number} in this mode, which has {count}"),
                EINVAL,
            ));
        };
        if requests[tin.at()].is_some() {
            return Err(extack.refuse_for(
                child,
                fmt!("TCA_CAKE_TINS: tin {name} is there twice"),
                EINVAL,
            ));
        }
        requests[tin.at()] = Some(TinRequest::parse(tin, name, child, extack)?);
    }
    Ok(())
}

/// Writes the settings of tins, if there are any.
pub(super) fn dump(m: &mut Message<'_>, config: &Config) -> Result {
    let is_set = |tin| *config.tin(tin) != TinConfig::default();
    if !named_tins(config).any(|(tin, _)| is_set(tin)) {
        return Ok(());
    }
    m.nest(TCA_CAKE_TINS, |m| {
        for ((tin, _), number) in named_tins(config).zip(1..=MAX_TINS as u32) {
            if is_set(tin) {
                m.nest(number, |m| dump_tin(m, config.tin(tin)))?;
            }
        }
        Ok(())
    })
}

fn dump_tin(m: &mut Message<'_>, set: &TinConfig) -> Result {
    match set.threshold {
        Threshold::Preset => {}
        Threshold::Rate(rate) => m.put_u64(TCA_CAKE_TIN_THRESH_RATE64, rate, TCA_CAKE_TIN_PAD)?,
        Threshold::Share(share) => m.put_u32(TCA_CAKE_TIN_THRESH_SHARE, share)?,
    }
    if set.target_us != 0 {
        m.put_u32(TCA_CAKE_TIN_TARGET, set.target_us)?;
    }
    if set.interval_us != 0 {
        m.put_u32(TCA_CAKE_TIN_INTERVAL, set.interval_us)?;
    }
    if let Some(bytes) = set.burst {
        m.put_u32(TCA_CAKE_TIN_BURST, bytes)?;
    }
    if !set.code_points.is_empty() {
        m.put_u64(TCA_CAKE_TIN_DSCP, set.code_points.0, TCA_CAKE_TIN_PAD)?;
    }
    Ok(())
}
