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

    /// The packet that a link points to, if it is not the end of the list.
    ///
    /// # Safety
    ///
    /// `link` must be valid for `'a` and null or point to a packet that the queue owns.
    #[inline]
    unsafe fn linked<'a>(link: *const *mut bindings::sk_buff) -> Option<&'a Skb> {
        // SAFETY: By the safety requirements. A packet that is not null is an `Skb`, which is a
        // pointer and nothing else.
        unsafe { (!(*link).is_null()).then(|| &*link.cast::<Skb>()) }
    }

    /// The packets from the oldest to the newest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Skb> {
        let mut link = &raw const self.head;
        core::iter::from_fn(move || {
            // SAFETY: The links are those of the queue's own packets, which it keeps while it is
            // borrowed.
            unsafe {
                let packet = Self::linked(link)?;
                link = next(packet.as_ptr());
                Some(packet)
            }
        })
    }

    /// The newest packet.
    pub(crate) fn last(&self) -> Option<&Skb> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: If the queue is not empty, `tail` is one of its packets.
        unsafe { Self::linked(&self.tail) }
    }

    /// Removes the packet at `position`, counted from the oldest.
    pub(crate) fn remove(&mut self, position: usize) -> Option<Skb> {
        let Some(before) = position.checked_sub(1) else {
            return self.pop();
        };
        let before = self.iter().nth(before)?.as_ptr();
        // SAFETY: Both packets are the queue's own.
        // INVARIANT: The list goes on with what comes after the one that is taken out; if that was
        // the last one, the one before it is now.
        unsafe {
            let link = next(before);
            let skb = NonNull::new(*link)?;
            *link = core::mem::replace(&mut *next(skb.as_ptr()), null_mut());
            if self.tail == skb.as_ptr() {
                self.tail = before;
            }
            Some(Skb::from_raw(skb))
        }
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
