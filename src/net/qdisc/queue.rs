// SPDX-License-Identifier: GPL-2.0

//! An instance under its root lock.

use super::{adapter::Head, Device, DropReason, Skb, Verdict};
use crate::net::bindings;
use core::{
    marker::PhantomData,
    ptr::{addr_of, addr_of_mut, NonNull}, //
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

/// An instance under its root lock: what the kernel counts of it, its parents and its timer.
///
/// # Invariants
///
/// `sch` is valid and its root lock is held for `'a`, or nobody else uses it. Its head is ready.
pub(crate) struct Queue<'a> {
    pub(super) sch: NonNull<bindings::Qdisc>,
    pub(super) lock: PhantomData<&'a mut ()>,
}

impl Queue<'_> {
    #[inline]
    fn as_ptr(&self) -> *mut bindings::Qdisc {
        self.sch.as_ptr()
    }

    #[inline]
    fn head(&self) -> *mut Head {
        // SAFETY: By the type's invariants.
        unsafe { Head::of(self.sch) }
    }

    /// The number by which classes of this instance are named, `TC_H_MAJ`.
    #[inline]
    pub(crate) fn handle(&self) -> u32 {
        // SAFETY: By the type's invariants.
        unsafe { (*self.as_ptr()).handle }
    }

    /// The device's largest packet in bytes, link-layer header included.
    #[inline]
    pub(crate) fn psched_mtu(&self) -> u32 {
        // SAFETY: By the type's invariants; an instance keeps a reference to its device.
        Device(unsafe { &*(*(*self.as_ptr()).dev_queue).dev }).psched_mtu()
    }

    /// Changes the count of packets and bytes in the queue.
    ///
    /// The counters are read without the lock, and a packet that a parent peeked at is in them, so
    /// that they are changed and never set.
    #[inline]
    fn count(&mut self, change: impl Fn(u32, u32) -> u32, packets: u32, bytes: u32) {
        // SAFETY: By the type's invariants; nobody else writes to the counters.
        unsafe {
            let qlen = addr_of_mut!((*self.as_ptr()).q.qlen);
            qlen.write_volatile(change(*qlen, packets));
            let backlog = addr_of_mut!((*self.as_ptr()).qstats.backlog);
            backlog.write_volatile(change(*backlog, bytes));
        }
    }

    /// Counts packets and bytes that came into the queue.
    #[inline]
    pub(crate) fn count_in(&mut self, packets: u32, bytes: u32) {
        self.count(u32::wrapping_add, packets, bytes);
    }

    /// Counts packets and bytes that left the queue.
    #[inline]
    pub(crate) fn count_out(&mut self, packets: u32, bytes: u32) {
        self.count(u32::wrapping_sub, packets, bytes);
    }

    /// Counts a dropped packet.
    #[inline]
    fn count_drop(&mut self) {
        // SAFETY: By the type's invariants.
        unsafe {
            let drops = addr_of_mut!((*self.as_ptr()).qstats.drops);
            drops.write_volatile((*drops).wrapping_add(1));
        }
    }

    /// Counts a packet that had to wait for the shaper.
    #[inline]
    pub(crate) fn count_overlimit(&mut self) {
        // SAFETY: By the type's invariants.
        unsafe {
            let overlimits = addr_of_mut!((*self.as_ptr()).qstats.overlimits);
            overlimits.write_volatile((*overlimits).wrapping_add(1));
        }
    }

    /// Counts a packet that is about to be sent.
    #[inline]
    pub(crate) fn count_sent(&mut self, packet: &Skb) {
        // On 64-bit machines both are plain words with one writer. Elsewhere readers have to be
        // kept off meanwhile, which is for C to do.
        #[cfg(target_pointer_width = "64")]
        // SAFETY: By the type's invariants; `u64_stats_t` is a `u64`.
        unsafe {
            let stats = addr_of_mut!((*self.as_ptr()).bstats);
            let bytes = addr_of_mut!((*stats).bytes).cast::<u64>();
            bytes.write_volatile((*bytes).wrapping_add(u64::from(packet.pkt_len())));
            let packets = addr_of_mut!((*stats).packets).cast::<u64>();
            packets.write_volatile((*packets).wrapping_add(u64::from(packet.pkt_segs())));
        }
        #[cfg(not(target_pointer_width = "64"))]
        // SAFETY: By the type's invariants.
        unsafe {
            bindings::qdisc_bstats_update(self.as_ptr(), packet.as_ptr())
        };
    }

    /// Tells the parents that packets left the queue otherwise than by being sent; negative numbers
    /// mean that they came.
    ///
    /// While packets are queued or sent the parents look after their own counters: call this for
    /// the difference alone.
    pub(crate) fn tell_parents(&mut self, packets: i32, bytes: i32) {
        // SAFETY: By the type's invariants.
        unsafe { bindings::qdisc_tree_reduce_backlog(self.as_ptr(), packets, bytes) };
    }

    /// Drops a packet while the next one is looked for; it is freed after the lock is released.
    ///
    /// The packet must have been counted out, and the parents are told.
    pub(crate) fn drop_dequeued(&mut self, packet: Skb, reason: DropReason) {
        self.count_drop();
        // CAST: Lengths of packets fit.
        self.tell_parents(1, packet.pkt_len() as i32);
        // SAFETY: By the type's invariants; the packet is given away.
        unsafe {
            bindings::qdisc_dequeue_drop(self.as_ptr(), packet.into_raw().as_ptr(), reason as u32)
        };
    }

    /// Asks the filters that the user attached to the instance about `packet`. Returns it with the
    /// class that they name, if they name one, or what became of it.
    #[inline]
    pub(crate) fn classify(
        &mut self,
        packet: Skb,
        dropped: &mut Dropped<'_>,
    ) -> Result<(Skb, Option<u32>), Verdict> {
        // SAFETY: The head is valid by the type's invariants; the list changes under RCU.
        if unsafe { addr_of!((*self.head()).filters).read_volatile() }.is_null() {
            return Ok((packet, None));
        }
        self.ask_filters(packet, dropped)
    }

    #[cold]
    fn ask_filters(
        &mut self,
        packet: Skb,
        dropped: &mut Dropped<'_>,
    ) -> Result<(Skb, Option<u32>), Verdict> {
        let mut class = 0;
        // SAFETY: The packet and the list are valid, and the root lock is held.
        let outcome = unsafe {
            let filters = addr_of_mut!((*self.head()).filters);
            bindings::tcf_classify_outcome(packet.as_ptr(), filters, &mut class)
        };
        match outcome {
            bindings::tcf_outcome_TCF_OUTCOME_NONE => Ok((packet, None)),
            bindings::tcf_outcome_TCF_OUTCOME_CLASS => Ok((packet, Some(class))),
            bindings::tcf_outcome_TCF_OUTCOME_CONSUMED => {
                // The packet is the action's now.
                let _ = packet.into_raw();
                Err(Verdict::Stolen)
            }
            bindings::tcf_outcome_TCF_OUTCOME_STOLEN => {
                dropped.push_as_it_is(packet);
                Err(Verdict::Stolen)
            }
            _ => {
                self.count_drop();
                dropped.push_as_it_is(packet);
                Err(Verdict::Shot)
            }
        }
    }

    /// Has the queue run again at `ns` of the monotonic clock, unless something else comes first.
    #[inline]
    pub(crate) fn wake_at(&mut self, ns: u64) {
        // SAFETY: The watchdog is initialised by the type's invariants.
        unsafe { bindings::qdisc_watchdog_schedule_range_ns(Head::watchdog(self.head()), ns, 0) };
    }

    /// Tells siblings that the instance sent a packet at `ns` of the monotonic clock.
    #[inline]
    pub(crate) fn note_active(&mut self, ns: u64) {
        // SAFETY: The head is valid by the type's invariants.
        unsafe { (*self.head()).last_active.store(ns, Relaxed) };
    }

    /// How many instances on the queues of the same device are active, this one included: those
    /// that have packets or have sent one after `ns` of the monotonic clock.
    pub(crate) fn active_siblings(&self, ns: u64) -> u32 {
        let mut active = 1u32;
        // SAFETY: By the type's invariants. What hangs on a device's queues is valid while packets
        // pass, which is an RCU read side, and of the same discipline if it has the same table.
        unsafe {
            let ops = (*self.as_ptr()).ops;
            let dev = (*(*self.as_ptr()).dev_queue).dev;
            for i in 0..(*dev).num_tx_queues {
                let other = addr_of!((*(*dev)._tx.add(i as usize)).qdisc_sleeping).read_volatile();
                let Some(other) = NonNull::new(other).filter(|other| *other != self.sch) else {
                    continue;
                };
                let sch = other.as_ptr();
                if (*sch).ops == ops
                    && (addr_of!((*sch).q.qlen).read_volatile() != 0
                        || (*Head::of(other)).last_active.load(Relaxed) > ns)
                {
                    active = active.wrapping_add(1);
                }
            }
        }
        active
    }
}

/// Packets that are dropped while another one is queued; they are freed after the root lock is
/// released.
///
/// # Invariants
///
/// `list` is the head of a list of dropped packets.
pub(crate) struct Dropped<'a> {
    pub(super) list: &'a mut *mut bindings::sk_buff,
}

impl Dropped<'_> {
    /// Drops `packet`, and counts it in `queue`.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut Queue<'_>, packet: Skb, reason: DropReason) {
        queue.count_drop();
        // SAFETY: By the type's invariants.
        unsafe { packet.chain(self.list, Some(reason)) };
    }

    /// Drops `packet` for the reason that a filter gave.
    fn push_as_it_is(&mut self, packet: Skb) {
        // SAFETY: By the type's invariants.
        unsafe { packet.chain(self.list, None) };
    }
}
