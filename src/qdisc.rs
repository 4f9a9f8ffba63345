// SPDX-License-Identifier: GPL-2.0

//! The disciplines: the algorithm of [`crate::cake`] on the kernel of [`crate::net`].

mod attributes;
pub(crate) mod cake;
pub(crate) mod cake_mq;
mod classify;
mod dump;
mod packet;
#[cfg(CONFIG_KUNIT = "y")]
mod tests;
mod tins;
