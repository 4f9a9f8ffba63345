// SPDX-License-Identifier: GPL-2.0

//! `src/qdisc`, as far as it reads and writes attributes.

#[path = "../../../src/qdisc/attributes.rs"]
pub(crate) mod attributes;
#[path = "../../../src/qdisc/dump.rs"]
pub(crate) mod dump;
#[path = "../../../src/qdisc/tins.rs"]
pub(crate) mod tins;

use crate::{cake::Config, net::netlink::*, prelude::*};

/// `config` as `options` change it.
pub(crate) fn apply(
    config: Config,
    options: Attribute<'_>,
    extack: &mut ExtAck<'_>,
) -> Result<Config> {
    attributes::apply(config, false, options, extack)
}

/// `config` as it is dumped.
pub(crate) fn dump(config: &Config) -> Result<Vec<u8>> {
    let mut message = Message::default();
    dump::config(&mut message, config)?;
    Ok(message.0)
}
