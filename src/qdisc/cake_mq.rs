// SPDX-License-Identifier: GPL-2.0

//! The discipline `cake_mq`: a `cake` on each queue of a device, with one configuration for all.
//!
//! Each child holds a copy of the configuration, which changes under its own lock. The children
//! divide the bandwidth among those that are active.

use super::{
    attributes,
    cake::Cake,
    dump, //
};
use crate::{
    cake::Config,
    net::{
        netlink::{Attribute, ExtAck, Message},
        qdisc::{Children, MultiQueue}, //
    },
};
use kernel::prelude::*;

/// An instance.
pub(crate) struct CakeMq {
    config: Config,
}

/// Gives all children `config`, or none of them.
fn configure(children: &Children<'_, Cake>, config: &Config) -> Result {
    for child in children.iter() {
        if let Err(error) = Cake::prepare(&child, config) {
            children.iter().for_each(|child| Cake::abandon(&child));
            return Err(error);
        }
    }
    for child in children.iter() {
        let mtu = child.device().psched_mtu();
        let _spare = child.lock(|cake, _| {
            let cake = cake.get_mut();
            cake.share();
            cake.commit(*config, mtu)
        });
    }
    Ok(())
}

impl MultiQueue for CakeMq {
    const ID: &'static CStr = c"cake_mq";
    const NO_GRAFT: &'static CStr = c"the queues of cake_mq have no other disciplines";

    type Child = Cake;

    fn init(options: Option<Attribute<'_>>, extack: &mut ExtAck<'_>) -> impl PinInit<Self, Error> {
        let config = match options {
            Some(options) => attributes::apply(Config::default(), true, options, extack),
            None => Ok(Config::default()),
        };
        config.map(|config| Self { config })
    }

    fn adopt(&mut self, children: &Children<'_, Cake>) -> Result {
        configure(children, &self.config)
    }

    fn change(
        &mut self,
        children: &Children<'_, Cake>,
        options: Attribute<'_>,
        extack: &mut ExtAck<'_>,
    ) -> Result {
        let config = attributes::apply(self.config, true, options, extack)?;
        configure(children, &config)?;
        self.config = config;
        Ok(())
    }

    fn dump(&self, message: &mut Message<'_>) -> Result {
        dump::config(message, &self.config)
    }
}
