// SPDX-License-Identifier: GPL-2.0

//! The CAKE algorithm: shaper, tins, flow and host isolation, COBALT.
//!
//! This module knows no kernel. It is compiled twice from the same files: by Kbuild into the
//! qdisc and by cargo into a library. It allocates nothing, reads no clock, arms no timer and
//! draws no entropy: the time comes in as [`Nanos`], randomness as a seed, packets through the
//! traits in [`packet`], and decisions go out as values ([`Decision`]).
//!
//! A packet's way through it: [`dissect`] reads the headers, [`hash`] turns them into
//! [`FlowHashes`], [`diffserv`] picks the tin, and [`Scheduler::enqueue`] queues it in a
//! [`flow`]. [`Scheduler::dequeue`] asks the [`shaper`] when, the [`tin`] which flow, and
//! [`cobalt`] whether the packet may go.
//!
//! References: the CAKE paper (Høiland-Jørgensen, Täht, Morton, "Piece of CAKE", LANMAN 2018),
//! RFC 8289 (CoDel), RFC 8290 (FQ-CoDel), RFC 8622 (LE) and RFC 4594 (DiffServ classes).

#![forbid(unsafe_code)]

pub mod ack_filter;
pub mod autorate;
pub mod cobalt;
pub mod config;
pub mod diffserv;
pub mod dissect;
pub mod flow;
pub mod hash;
pub mod host;
pub mod index;
pub mod overflow;
pub mod overhead;
pub mod packet;
pub mod random;
pub mod scheduler;
pub mod shaper;
pub mod siphash;
pub mod stats;
pub mod tags;
pub mod tin;
pub mod units;

pub use config::Config;
pub use hash::FlowHashes;
pub use packet::{Packet, PacketQueue};
pub use scheduler::{Decision, Enqueued, Scheduler};
pub use units::Nanos;
