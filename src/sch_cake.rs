// SPDX-License-Identifier: GPL-2.0

//! Common Applications Kept Enhanced (CAKE): a queueing discipline for home links.
//!
//! A packet's way leads from [`qdisc::cake`] through [`qdisc::classify`] into [`cake::Scheduler`]
//! and back.

// Cargo builds the same files into a library, which exports them.
#[expect(unreachable_pub)]
mod cake;
mod net;
mod qdisc;

use kernel::prelude::*;
use net::qdisc::Registration;
use qdisc::cake::Cake;

module! {
    type: CakeModule,
    name: "sch_cake",
    authors: ["The authors of the CAKE module in Rust"],
    description: "The CAKE shaper",
    license: "GPL",
    alias: ["net-sch-cake"],
}

/// What the module holds while it is loaded.
#[pin_data]
struct CakeModule {
    #[pin]
    cake: Registration<Cake>,
}

impl kernel::InPlaceModule for CakeModule {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            cake <- Registration::new(module),
        })
    }
}
