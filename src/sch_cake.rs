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
use net::qdisc::MultiQueueRegistration;
use qdisc::cake_mq::CakeMq;

module! {
    type: CakeModule,
    name: "sch_cake",
    authors: ["The authors of the CAKE module in Rust"],
    description: "The CAKE shaper",
    license: "GPL",
    alias: ["net-sch-cake", "net-sch-cake_mq"],
    imports_ns: ["NET_SCHED_INTERNAL"],
}

/// What the module holds while it is loaded.
#[pin_data]
struct CakeModule {
    /// `cake`, and `cake_mq` above it.
    #[pin]
    disciplines: MultiQueueRegistration<CakeMq>,
}

impl kernel::InPlaceModule for CakeModule {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            disciplines <- MultiQueueRegistration::new(module),
        })
    }
}
