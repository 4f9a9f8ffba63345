// SPDX-License-Identifier: GPL-2.0

//! `q_cake.so`: what `tc` loads for `cake`, so that a stock tc can set single tins.
//!
//! It takes the place of tc's own code for `cake` and `cake_mq`: the same words ([`words`]) make the
//! same netlink attributes ([`request`]), and what the kernel shows reads the same ([`show`],
//! [`stats`]). On top come the words of single tins ([`tins`]).
//!
//! tc's own functions read and print rates, times and sizes; [`tc`] is the wall to them, and the
//! only place with unsafe code.

#![deny(unsafe_code)]

mod attributes;
mod mode;
mod names;
mod request;
mod show;
mod stats;
#[allow(unsafe_code)]
mod tc;
mod tins;
mod uapi;
mod words;
