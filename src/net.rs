// SPDX-License-Identifier: GPL-2.0

//! Safe Rust over the part of the kernel's C network API that a queueing discipline needs.
//!
//! All `unsafe` of the module is here. The types say in which context something may be called: a
//! [`qdisc::Queue`] exists only where the root lock is held, a [`qdisc::Handle`] only where RTNL
//! is, an [`skb::Skb`] is a packet that its holder owns.

mod bindings;
pub(crate) mod conntrack;
pub(crate) mod flow_dissector;
pub(crate) mod gen_stats;
pub(crate) mod gso;
pub(crate) mod netlink;
pub(crate) mod pkt_sched;
pub(crate) mod qdisc;
pub(crate) mod random;
pub(crate) mod skb;
pub(crate) mod skb_queue;
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) mod tests;
pub(crate) mod time;
