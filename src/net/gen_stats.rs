// SPDX-License-Identifier: GPL-2.0

//! Generic statistics, the part that disciplines write themselves.
//!
//! C header: [`include/net/gen_stats.h`](srctree/include/net/gen_stats.h)

use super::{bindings, netlink::Message};
use core::{
    marker::PhantomData,
    ptr::{null, NonNull}, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The statistics of a queue, `struct gnet_stats_queue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueStats {
    /// Packets.
    pub(crate) qlen: u32,
    /// Bytes.
    pub(crate) backlog: u32,
    /// Packets.
    pub(crate) drops: u32,
}

/// A dump of statistics under construction.
///
/// # Invariants
///
/// The pointer is to a valid `struct gnet_dump` that nobody else uses.
pub(crate) struct StatsDump<'a>(NonNull<bindings::gnet_dump>, PhantomData<&'a mut ()>);

impl StatsDump<'_> {
    /// # Safety
    ///
    /// As the type's invariants say.
    pub(super) unsafe fn from_raw(dump: *mut bindings::gnet_dump) -> Self {
        // INVARIANT: By the safety requirements.
        // SAFETY: By the safety requirements.
        Self(unsafe { NonNull::new_unchecked(dump) }, PhantomData)
    }

    /// Puts the statistics of a queue.
    pub(crate) fn put_queue(&mut self, stats: &QueueStats) -> Result {
        let queue = bindings::gnet_stats_queue {
            qlen: stats.qlen,
            backlog: stats.backlog,
            drops: stats.drops,
            requeues: 0,
            overlimits: 0,
        };
        // SAFETY: The dump is valid by the type's invariants; there are no statistics per CPU.
        to_result(unsafe {
            bindings::gnet_stats_copy_queue(self.0.as_ptr(), null(), &queue, queue.qlen)
        })
    }

    /// Puts a discipline's own statistics, as `fill` writes them.
    pub(crate) fn put_app(&mut self, fill: impl FnOnce(&mut Message<'_>) -> Result) -> Result {
        // SAFETY: The dump is valid by the type's invariants, and so is its message.
        let mut message = unsafe { Message::from_raw((*self.0.as_ptr()).skb) };
        message.nest(bindings::TCA_STATS_APP, fill)
    }
}
