// SPDX-License-Identifier: GPL-2.0

//! From a command line to the options of a request.

use crate::{
    attributes::Builder,
    mode::{self, Request},
    names, tins,
    uapi::*,
    words::{self, Refusal, Wanted},
};

/// The payload of `TCA_OPTIONS` for a command line.
pub fn options(line: &[String], request: &Request<'_>) -> Result<Builder, Refusal> {
    let wanted = words::parse(line)?;
    let mut builder = plain(&wanted);
    if !wanted.tins.is_empty() {
        let number = match wanted.diffserv {
            Some(number) => number,
            None => mode::in_force(request).map_err(Refusal::Tin)?,
        };
        let Some((name, preset)) = names::preset(number) else {
            return Err(Refusal::Tin(format!(
                "the kernel's mode {number} is unknown"
            )));
        };
        tins::put(&mut builder, &wanted.tins, name, preset).map_err(Refusal::Tin)?;
    }
    Ok(builder)
}

/// The options that tc knows, in the order in which it puts them.
fn plain(wanted: &Wanted) -> Builder {
    // tc cannot say 0 for these.
    let set = |value: Option<u32>| value.filter(|value| *value != 0);
    let mut builder = Builder::default();
    builder.put_u64(TCA_CAKE_BASE_RATE64, wanted.bandwidth);
    builder.put_u32(TCA_CAKE_DIFFSERV_MODE, wanted.diffserv);
    builder.put_u32(TCA_CAKE_ATM, wanted.cells);
    builder.put_u32(TCA_CAKE_FLOW_MODE, wanted.flow_mode);
    // CAST: The attribute is signed.
    builder.put_u32(TCA_CAKE_OVERHEAD, wanted.overhead.map(|bytes| bytes as u32));
    builder.put_u32(TCA_CAKE_RAW, wanted.raw.then_some(0));
    builder.put_u32(TCA_CAKE_MPU, set(wanted.mpu));
    builder.put_u32(TCA_CAKE_RTT, set(wanted.rtt));
    builder.put_u32(TCA_CAKE_TARGET, set(wanted.target));
    builder.put_u32(TCA_CAKE_AUTORATE, wanted.autorate);
    builder.put_u32(TCA_CAKE_MEMORY, set(wanted.memlimit));
    builder.put_u32(TCA_CAKE_FWMARK, set(wanted.fwmark));
    builder.put_u32(TCA_CAKE_NAT, wanted.nat);
    builder.put_u32(TCA_CAKE_WASH, wanted.wash);
    builder.put_u32(TCA_CAKE_SPLIT_GSO, wanted.split_gso);
    builder.put_u32(TCA_CAKE_INGRESS, wanted.ingress);
    builder.put_u32(TCA_CAKE_ACK_FILTER, wanted.ack_filter);
    builder
}
