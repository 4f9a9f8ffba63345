// SPDX-License-Identifier: GPL-2.0

//! Queueing disciplines.
//!
//! A discipline implements [`Qdisc`] and is made known to the kernel by a [`Registration`].
//!
//! The kernel calls a discipline in one of two contexts, and two types stand for them. Packets
//! come and go under the root lock: a [`Queue`] is the proof of it. Configuration and statistics
//! are asked for under RTNL, without that lock: a [`Handle`] is what can take it.
//!
//! The state of an instance comes into being when [`Qdisc::init`] succeeds and is dropped when the
//! instance is destroyed. No callback sees it before or after.
//!
//! C header: [`include/net/sch_generic.h`](srctree/include/net/sch_generic.h)
//!
//! # Examples
//!
//! A queue without limit, configuration or statistics of its own:
//!
//! ```ignore
//! struct Fifo(SkbQueue);
//!
//! #[vtable]
//! impl Qdisc for Fifo {
//!     const ID: &'static CStr = c"fifo_rust";
//!
//!     fn init(
//!         _device: Device<'_>,
//!         _options: Option<Attribute<'_>>,
//!         _extack: &mut ExtAck<'_>,
//!     ) -> impl PinInit<Self, Error> {
//!         Ok(Self(SkbQueue::new()))
//!     }
//!
//!     fn enqueue(
//!         self: Pin<&mut Self>,
//!         packet: Skb,
//!         queue: &mut Queue<'_>,
//!         _dropped: &mut Dropped<'_>,
//!     ) -> Verdict {
//!         queue.count_in(1, packet.pkt_len());
//!         self.get_mut().0.push(packet);
//!         Verdict::Queued
//!     }
//!
//!     fn dequeue(self: Pin<&mut Self>, queue: &mut Queue<'_>) -> Option<Skb> {
//!         let packet = self.get_mut().0.pop()?;
//!         queue.count_out(1, packet.pkt_len());
//!         queue.count_sent(&packet);
//!         Some(packet)
//!     }
//!
//!     fn reset(mut self: Pin<&mut Self>) {
//!         while let Some(packet) = self.0.pop() {
//!             packet.drop_for(DropReason::QueuePurge);
//!         }
//!     }
//!
//!     fn change(_: Handle<'_, Self>, _: Attribute<'_>, _: &mut ExtAck<'_>) -> Result {
//!         Ok(())
//!     }
//!
//!     fn dump(_: Handle<'_, Self>, _: &mut Message<'_>) -> Result {
//!         Ok(())
//!     }
//!
//!     fn dump_stats(_: Handle<'_, Self>, _: &mut StatsDump<'_>) -> Result {
//!         Ok(())
//!     }
//! }
//! ```

mod adapter;
mod multi_queue;
mod queue;

pub(crate) use multi_queue::{Children, MultiQueue, MultiQueueRegistration};
pub(crate) use queue::{Dropped, Queue};

use super::{
    bindings,
    gen_stats::StatsDump,
    netlink::{Attribute, ExtAck, Message},
    skb::{DropReason, Skb}, //
};
use adapter::{Adapter, Private};
use core::{
    marker::PhantomData,
    ptr::{addr_of, addr_of_mut, NonNull}, //
};
use kernel::{
    error::{to_result, VTABLE_DEFAULT_ERROR},
    prelude::*,
    types::Opaque,
    ThisModule, //
};

/// What became of a packet that was to be queued, `NET_XMIT_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Verdict {
    /// It is in the queue.
    Queued,
    /// It is in the queue, but its flow lost another one. Parents count that as if the packet had
    /// been refused.
    Congested,
    /// It was dropped.
    Dropped,
    /// A filter took it away.
    Stolen,
    /// A filter had it dropped.
    Shot,
}

/// A queueing discipline.
///
/// What is passed as `self` is the state of one instance.
#[vtable]
pub(crate) trait Qdisc: Send + Sized {
    /// The name by which `tc` knows the discipline, at most 15 bytes.
    const ID: &'static CStr;

    /// Makes the state of a new instance on `device`. Called under RTNL; may sleep.
    fn init(
        device: Device<'_>,
        options: Option<Attribute<'_>>,
        extack: &mut ExtAck<'_>,
    ) -> impl PinInit<Self, Error>;

    /// Queues `packet`. Called under the root lock.
    fn enqueue(
        self: Pin<&mut Self>,
        packet: Skb,
        queue: &mut Queue<'_>,
        dropped: &mut Dropped<'_>,
    ) -> Verdict;

    /// Takes the next packet to send, if one is due. Called under the root lock.
    ///
    /// A discipline that has packets and returns none must have called [`Queue::wake_at`].
    fn dequeue(self: Pin<&mut Self>, queue: &mut Queue<'_>) -> Option<Skb>;

    /// Frees all packets. Called under the root lock, or before the instance is destroyed; the
    /// kernel sets the counters of the queue to zero itself.
    fn reset(self: Pin<&mut Self>);

    /// Changes the configuration, whole or not at all. Called under RTNL; may sleep.
    fn change(this: Handle<'_, Self>, options: Attribute<'_>, extack: &mut ExtAck<'_>) -> Result;

    /// Writes the configuration. Called under RTNL.
    fn dump(this: Handle<'_, Self>, message: &mut Message<'_>) -> Result;

    /// Writes the discipline's own statistics. Called under RTNL.
    fn dump_stats(this: Handle<'_, Self>, stats: &mut StatsDump<'_>) -> Result;

    /// Visits the classes in use. Called under RTNL.
    fn walk(_this: Handle<'_, Self>, _walker: &mut Walker<'_>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Writes the statistics of the class with minor number `class`. Called under RTNL.
    fn dump_class_stats(
        _this: Handle<'_, Self>,
        _class: u16,
        _stats: &mut StatsDump<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// A discipline that the kernel knows. Dropping it makes the kernel forget it.
///
/// # Invariants
///
/// `ops` is registered.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<T: Qdisc> {
    #[pin]
    ops: Opaque<bindings::Qdisc_ops>,
    discipline: PhantomData<T>,
}

// SAFETY: A discipline may be unregistered on any thread.
unsafe impl<T: Qdisc> Send for Registration<T> {}
// SAFETY: There is nothing that a shared reference could do.
unsafe impl<T: Qdisc> Sync for Registration<T> {}

impl<T: Qdisc> Registration<T> {
    /// Registers `T` on behalf of `module`.
    ///
    /// # Errors
    ///
    /// [`EEXIST`] if there is a discipline of that name.
    pub(crate) fn new(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        // INVARIANT: The initialiser fails unless `ops` was registered.
        try_pin_init!(Self {
            ops <- Opaque::try_ffi_init(move |ops: *mut bindings::Qdisc_ops| {
                // SAFETY: `ops` is valid for writes and stays where it is until it is unregistered.
                unsafe {
                    ops.write(Adapter::<T>::ops(module));
                    to_result(bindings::register_qdisc(ops))
                }
            }),
            discipline: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: Qdisc> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `ops` is registered by the type's invariants.
        unsafe { bindings::unregister_qdisc(self.ops.get()) };
    }
}

/// The device that an instance is attached to.
#[derive(Clone, Copy)]
pub(crate) struct Device<'a>(&'a bindings::net_device);

impl Device<'_> {
    /// The largest packet in bytes, link-layer header included.
    #[inline]
    pub(crate) fn psched_mtu(&self) -> u32 {
        // SAFETY: Both fields are valid for reads; the MTU may change meanwhile.
        let mtu = unsafe { addr_of!(self.0.mtu).read_volatile() };
        mtu.wrapping_add(u32::from(self.0.hard_header_len))
    }
}

/// An instance under RTNL, its root lock not held.
///
/// # Invariants
///
/// `sch` is an instance of `T` whose state is initialised, and RTNL is held for `'a`.
pub(crate) struct Handle<'a, T: Qdisc> {
    sch: NonNull<bindings::Qdisc>,
    rtnl: PhantomData<&'a T>,
}

impl<T: Qdisc> Handle<'_, T> {
    /// The device that the instance is attached to.
    pub(crate) fn device(&self) -> Device<'_> {
        // SAFETY: By the type's invariants; an instance keeps a reference to its device.
        Device(unsafe { &*(*(*self.sch.as_ptr()).dev_queue).dev })
    }

    /// Calls `f` with the state and the queue, under the root lock.
    pub(crate) fn lock<R>(&self, f: impl FnOnce(Pin<&mut T>, &mut Queue<'_>) -> R) -> R {
        // SAFETY: By the type's invariants.
        unsafe { bindings::sch_tree_lock(self.sch.as_ptr()) };
        // SAFETY: By the type's invariants, and the lock is held until the borrows end.
        let (state, mut queue) = unsafe { Private::<T>::borrow(self.sch) };
        let result = f(state, &mut queue);
        // SAFETY: It was taken above.
        unsafe { bindings::sch_tree_unlock(self.sch.as_ptr()) };
        result
    }
}

/// A walk over the classes of an instance, `struct qdisc_walker`.
pub(crate) struct Walker<'a> {
    sch: NonNull<bindings::Qdisc>,
    walker: &'a mut bindings::qdisc_walker,
}

impl Walker<'_> {
    /// Passes `count` classes that are not in use.
    pub(crate) fn pass(&mut self, count: u32) {
        self.walker.count = self.walker.count.wrapping_add(count as c_int);
    }

    /// Visits the class with minor number `class`; false means that the walk is over.
    #[must_use]
    pub(crate) fn visit(&mut self, class: u16) -> bool {
        if self.walker.stop != 0 {
            return false;
        }
        // SAFETY: The walker belongs to a walk over this instance.
        unsafe { bindings::tc_qdisc_stats_dump(self.sch.as_ptr(), class.into(), self.walker) }
    }
}
