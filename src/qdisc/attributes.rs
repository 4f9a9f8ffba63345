// SPDX-License-Identifier: GPL-2.0

//! Options: from netlink attributes to the configuration.

use super::tins;
use crate::{
    cake::{
        config::AckFilter,
        diffserv::Preset,
        hash::FlowMode,
        overhead::Cells,
        Config, //
    },
    net::{
        conntrack,
        netlink::{Attribute, Attributes, ExtAck, Policy},
        pkt_sched::*, //
    },
};
use kernel::prelude::*;

/// The largest type of an option.
const MAX: usize = TCA_CAKE_FWMARK as usize;

/// The types that are named, with their names.
macro_rules! named {
    ($($kind:ident),* $(,)?) => {
        &[$(($kind, stringify!($kind))),*]
    };
}

static POLICY: Policy<{ MAX + 1 }> = Policy::numbers(
    named![TCA_CAKE_BASE_RATE64],
    named![
        TCA_CAKE_DIFFSERV_MODE,
        TCA_CAKE_ATM,
        TCA_CAKE_FLOW_MODE,
        TCA_CAKE_OVERHEAD,
        TCA_CAKE_RTT,
        TCA_CAKE_TARGET,
        TCA_CAKE_AUTORATE,
        TCA_CAKE_MEMORY,
        TCA_CAKE_NAT,
        TCA_CAKE_RAW,
        TCA_CAKE_WASH,
        TCA_CAKE_MPU,
        TCA_CAKE_INGRESS,
        TCA_CAKE_ACK_FILTER,
        TCA_CAKE_SPLIT_GSO,
        TCA_CAKE_FWMARK,
    ],
);

/// What the numbers of an option stand for.
type Names<T, const N: usize> = [(u32, T); N];

/// `TCA_CAKE_FLOW_MODE`.
pub(super) const FLOW_MODES: Names<FlowMode, 8> = [
    (CAKE_FLOW_NONE, FlowMode::Flowblind),
    (CAKE_FLOW_SRC_IP, FlowMode::SrcHost),
    (CAKE_FLOW_DST_IP, FlowMode::DstHost),
    (CAKE_FLOW_HOSTS, FlowMode::Hosts),
    (CAKE_FLOW_FLOWS, FlowMode::Flows),
    (CAKE_FLOW_DUAL_SRC, FlowMode::DualSrcHost),
    (CAKE_FLOW_DUAL_DST, FlowMode::DualDstHost),
    (CAKE_FLOW_TRIPLE, FlowMode::Triple),
];

/// `TCA_CAKE_DIFFSERV_MODE`.
pub(super) const PRESETS: Names<Preset, 5> = [
    (CAKE_DIFFSERV_DIFFSERV3, Preset::Diffserv3),
    (CAKE_DIFFSERV_DIFFSERV4, Preset::Diffserv4),
    (CAKE_DIFFSERV_DIFFSERV8, Preset::Diffserv8),
    (CAKE_DIFFSERV_BESTEFFORT, Preset::Besteffort),
    (CAKE_DIFFSERV_PRECEDENCE, Preset::Precedence),
];

/// `TCA_CAKE_ATM`.
pub(super) const CELLS: Names<Cells, 3> = [
    (CAKE_ATM_NONE, Cells::None),
    (CAKE_ATM_ATM, Cells::Atm),
    (CAKE_ATM_PTM, Cells::Ptm),
];

/// `TCA_CAKE_ACK_FILTER`.
pub(super) const ACK_FILTERS: Names<AckFilter, 3> = [
    (CAKE_ACK_NONE, AckFilter::Off),
    (CAKE_ACK_FILTER, AckFilter::Conservative),
    (CAKE_ACK_AGGRESSIVE, AckFilter::Aggressive),
];

/// The number of `value`.
pub(super) fn number_of<T: PartialEq, const N: usize>(names: &Names<T, N>, value: T) -> u32 {
    names
        .iter()
        .find(|(_, named)| *named == value)
        .map_or(0, |(number, _)| *number)
}

/// A request under way.
struct Request<'a, 'e, 'x> {
    attributes: Attributes<'a, { MAX + 1 }>,
    extack: &'e mut ExtAck<'x>,
}

impl Request<'_, '_, '_> {
    /// Sets `field` to what `kind` says, if it is there.
    fn u32(&self, kind: u32, field: &mut u32) {
        if let Some(value) = self.attributes.get(kind).and_then(|found| found.u32()) {
            *field = value;
        }
    }

    /// Sets `field` to whether `kind` is other than zero, if it is there.
    fn flag(&self, kind: u32, field: &mut bool) {
        let mut value = u32::from(*field);
        self.u32(kind, &mut value);
        *field = value != 0;
    }

    /// Sets `field` to what `convert` makes of `kind`, if it is there; fails for `reason` if that
    /// is nothing.
    fn convert<T>(
        &mut self,
        kind: u32,
        field: &mut T,
        convert: impl FnOnce(u32) -> Option<T>,
        reason: &'static CStr,
        error: Error,
    ) -> Result {
        if let Some(attribute) = self.attributes.get(kind) {
            let value = attribute.u32().and_then(convert);
            *field = value.ok_or_else(|| self.extack.refuse(attribute, reason, error))?;
        }
        Ok(())
    }

    /// Sets `field` to what the number in `kind` stands for, if it is there.
    fn named<T: Copy, const N: usize>(
        &mut self,
        kind: u32,
        field: &mut T,
        names: &Names<T, N>,
        reason: &'static CStr,
    ) -> Result {
        let named = |number| {
            names
                .iter()
                .find(|(n, _)| *n == number)
                .map(|(_, value)| *value)
        };
        self.convert(kind, field, named, reason, EINVAL)
    }
}

/// `config` as changed by the attributes in `options`.
///
/// # Errors
///
/// Fails, with an explanation, if any of them is not valid or not for instances that share their
/// bandwidth while `is_shared`. Nothing has changed then.
pub(super) fn apply(
    mut config: Config,
    is_shared: bool,
    options: Attribute<'_>,
    extack: &mut ExtAck<'_>,
) -> Result<Config> {
    let attributes = options.nested(&POLICY, extack)?;
    let mut request = Request {
        attributes,
        extack: &mut *extack,
    };

    let bandwidth = request.attributes.get(TCA_CAKE_BASE_RATE64);
    if let Some(rate) = bandwidth.and_then(|found| found.u64()) {
        config.bandwidth = rate;
    }
    request.convert(
        TCA_CAKE_NAT,
        &mut config.nat,
        |value| (value == 0 || conntrack::IS_AVAILABLE).then_some(value != 0),
        c"TCA_CAKE_NAT: this kernel has no connection tracking",
        EOPNOTSUPP,
    )?;
    request.convert(
        TCA_CAKE_AUTORATE,
        &mut config.autorate_ingress,
        |value| (value == 0 || !is_shared).then_some(value != 0),
        c"TCA_CAKE_AUTORATE: not with cake_mq",
        EOPNOTSUPP,
    )?;
    request.flag(TCA_CAKE_WASH, &mut config.wash);
    request.flag(TCA_CAKE_INGRESS, &mut config.ingress);
    request.flag(TCA_CAKE_SPLIT_GSO, &mut config.split_gso);
    request.u32(TCA_CAKE_RTT, &mut config.rtt_us);
    request.u32(TCA_CAKE_TARGET, &mut config.target_us);
    request.u32(TCA_CAKE_MEMORY, &mut config.memory);
    request.u32(TCA_CAKE_FWMARK, &mut config.fwmark);
    config.rtt_us = config.rtt_us.max(1);
    config.target_us = config.target_us.max(1);
    let mut preset = config.preset;
    request.named(
        TCA_CAKE_DIFFSERV_MODE,
        &mut preset,
        &PRESETS,
        c"TCA_CAKE_DIFFSERV_MODE: no such mode",
    )?;
    config.set_preset(preset);
    request.named(
        TCA_CAKE_ACK_FILTER,
        &mut config.ack_filter,
        &ACK_FILTERS,
        c"TCA_CAKE_ACK_FILTER: no such filter",
    )?;
    request.named(
        TCA_CAKE_FLOW_MODE,
        &mut config.flow_mode,
        &FLOW_MODES,
        c"TCA_CAKE_FLOW_MODE: no such mode",
    )?;
    request.named(
        TCA_CAKE_ATM,
        &mut config.framing.cells,
        &CELLS,
        c"TCA_CAKE_ATM: no such framing",
    )?;
    request.convert(
        TCA_CAKE_MPU,
        &mut config.framing.mpu,
        |bytes| u16::try_from(bytes).ok(),
        c"TCA_CAKE_MPU: more than 65535 bytes",
        ERANGE,
    )?;
    request.convert(
        TCA_CAKE_OVERHEAD,
        &mut config.framing.overhead,
        // CAST: The attribute is signed.
        |bytes| i16::try_from(bytes as i32).ok(),
        c"TCA_CAKE_OVERHEAD: not within -32768 to 32767 bytes",
        ERANGE,
    )?;
    if request.attributes.get(TCA_CAKE_OVERHEAD).is_some() {
        config.framing.raw = false;
    }
    if request.attributes.get(TCA_CAKE_RAW).is_some() {
        config.framing.raw = true;
    }
    tins::apply(&mut config, options, extack)?;
    Ok(config)
}
