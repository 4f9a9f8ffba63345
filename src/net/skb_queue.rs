// SPDX-License-Identifier: GPL-2.0

//! A queue of packets, linked through the packets themselves.

use super::{
    bindings,
    skb::{next, Skb}, //
};
use core::ptr::{null_mut, NonNull};

/// A first-in-first-out queue that owns its packets: two words, no lock, no length.
///
/// # Invariants
///
/// `head` starts a list of packets that the queue owns, linked by `next` and ended by null. If it
/// is not empty, `tail` is the last of them.
pub(crate) struct SkbQueue {
    head: *mut bindings::sk_buff,
    tail: *mut bindings::sk_buff,
}

// SAFETY: The queue owns its packets, and these may be sent.
unsafe impl Send for SkbQueue {}

impl SkbQueue {
    /// An empty queue.
    #[inline]
    pub(crate) const fn new() -> Self {
        // INVARIANT: Null ends the list.
        Self {
            head: null_mut(),
            tail: null_mut(),
        }
    }

    /// Whether there is no packet.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Appends `packet`.
    #[inline]
    pub(crate) fn push(&mut self, packet: Skb) {
        let skb = packet.into_raw().as_ptr();
        // SAFETY: `skb` was ours alone, `tail` is the queue's own if there is one.
        // INVARIANT: `skb` becomes the last of the list.
        unsafe {
            *next(skb) = null_mut();
            if self.head.is_null() {
                self.head = skb;
            } else {
                *next(self.tail) = skb;
            }
        }
        self.tail = skb;
    }

    /// Removes the oldest packet.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Skb> {
        let skb = NonNull::new(self.head)?;
        // SAFETY: `skb` is the queue's own. Its link is cleared, as those of packets on no list.
        // INVARIANT: The list goes on with the next one.
        unsafe {
            let link = next(skb.as_ptr());
            self.head = *link;
            *link = null_mut();
            Some(Skb::from_raw(skb))
        }
    }

    /// How many packets there are, by walking the list.
    pub(crate) fn count(&self) -> u32 {
        let mut count = 0u32;
        let mut skb = self.head;
        while !skb.is_null() {
            count = count.saturating_add(1);
            // SAFETY: `skb` is the queue's own.
            skb = unsafe { *next(skb) };
        }
        count
    }
}

impl Iterator for SkbQueue {
    type Item = Skb;

    #[inline]
    fn next(&mut self) -> Option<Skb> {
        self.pop()
    }
}

impl Drop for SkbQueue {
    fn drop(&mut self) {
        while let Some(packet) = self.pop() {
            drop(packet);
        }
    }
}
