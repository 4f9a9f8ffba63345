// SPDX-License-Identifier: GPL-2.0

//! What the kernel calls: `struct Qdisc_ops` for a [`Qdisc`].

use super::*;
use core::mem::MaybeUninit;
use kernel::{
    error::from_result,
    sync::atomic::Atomic, //
};

/// What every discipline keeps for an instance beside `struct Qdisc`.
///
/// # Invariants
///
/// `watchdog` is initialised while `is_ready`.
pub(super) struct Head {
    is_ready: bool,
    watchdog: MaybeUninit<bindings::qdisc_watchdog>,
    /// Where filters are attached.
    block: *mut bindings::tcf_block,
    /// The first filter; it changes under RCU.
    pub(super) filters: *mut bindings::tcf_proto,
    /// When the instance sent a packet last, for its siblings to read.
    pub(super) last_active: Atomic<u64>,
}

impl Head {
    /// The head of an instance.
    ///
    /// # Safety
    ///
    /// `sch` must be an instance of a discipline that is registered by a [`Registration`].
    #[inline]
    pub(super) unsafe fn of(sch: NonNull<bindings::Qdisc>) -> *mut Self {
        // SAFETY: The head is at the start of the private data.
        unsafe { addr_of_mut!((*sch.as_ptr()).privdata) }.cast()
    }

    /// Whether the instance is initialised.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The timer.
    ///
    /// # Safety
    ///
    /// `this` must be valid.
    pub(super) unsafe fn watchdog(this: *mut Self) -> *mut bindings::qdisc_watchdog {
        // SAFETY: By the safety requirements.
        unsafe { addr_of_mut!((*this).watchdog) }.cast()
    }
}

/// What the kernel keeps for an instance beside `struct Qdisc`.
///
/// The kernel hands it out filled with zeros, which says that it is not initialised.
///
/// # Invariants
///
/// `state` is initialised while the head is ready.
#[repr(C)]
pub(super) struct Private<T> {
    head: Head,
    state: MaybeUninit<T>,
}

impl<T: Qdisc> Private<T> {
    #[inline]
    fn of(sch: NonNull<bindings::Qdisc>) -> *mut Self {
        const { assert!(align_of::<Self>() <= align_of::<bindings::Qdisc>()) };
        // SAFETY: The kernel allocated `priv_size` bytes there.
        unsafe { addr_of_mut!((*sch.as_ptr()).privdata) }.cast()
    }

    /// The parts of an instance.
    ///
    /// # Safety
    ///
    /// `sch` must be an instance of `T` that is ready, and the root lock must be held for `'a`, or
    /// nobody else may use the instance.
    #[inline]
    pub(super) unsafe fn borrow<'a>(sch: NonNull<bindings::Qdisc>) -> (Pin<&'a mut T>, Queue<'a>) {
        let this = Self::of(sch);
        // SAFETY: The instance is ready, and the state stays where it is until it is dropped.
        let state = unsafe { Pin::new_unchecked((*addr_of_mut!((*this).state)).assume_init_mut()) };
        // INVARIANT: The lock is held by the safety requirements, and the instance is ready.
        let queue = Queue {
            sch,
            lock: PhantomData,
        };
        (state, queue)
    }
}

/// The callbacks for `T`.
///
/// Those that say "root lock" are called by the kernel with a valid and ready instance of `T` under
/// its root lock; those that say "RTNL", under RTNL.
pub(super) struct Adapter<T>(PhantomData<T>);

impl<T: Qdisc> Adapter<T> {
    const CLASS_OPS: bindings::Qdisc_class_ops = bindings::Qdisc_class_ops {
        flags: 0,
        select_queue: None,
        graft: None,
        leaf: Some(Self::leaf),
        qlen_notify: None,
        find: Some(Self::find),
        change: None,
        delete: None,
        walk: Some(Self::walk),
        tcf_block: Some(Self::tcf_block),
        bind_tcf: Some(Self::bind_tcf),
        unbind_tcf: Some(Self::unbind_tcf),
        dump: Some(Self::dump_class),
        dump_stats: Some(Self::dump_class_stats),
    };

    /// The table for `register_qdisc`.
    pub(super) fn ops(module: &'static ThisModule) -> bindings::Qdisc_ops {
        bindings::Qdisc_ops {
            next: core::ptr::null_mut(),
            cl_ops: if T::HAS_WALK {
                &Self::CLASS_OPS
            } else {
                core::ptr::null()
            },
            id: const { id(T::ID) },
            priv_size: const { size_of::<Private<T>>() as c_int },
            static_flags: bindings::TCQ_F_DEQUEUE_DROPS,
            enqueue: Some(Self::enqueue),
            dequeue: Some(Self::dequeue),
            peek: Some(bindings::qdisc_peek_dequeued),
            init: Some(Self::init),
            reset: Some(Self::reset),
            destroy: Some(Self::destroy),
            change: Some(Self::change),
            attach: None,
            change_tx_queue_len: None,
            change_real_num_tx: None,
            dump: Some(Self::dump),
            dump_stats: Some(Self::dump_stats),
            ingress_block_set: None,
            egress_block_set: None,
            ingress_block_get: None,
            egress_block_get: None,
            owner: module.as_ptr().cast(),
        }
    }

    /// # Safety
    ///
    /// Root lock. `skb` is a packet that is given away, `to_free` the head of a list.
    unsafe extern "C" fn enqueue(
        skb: *mut bindings::sk_buff,
        sch: *mut bindings::Qdisc,
        to_free: *mut *mut bindings::sk_buff,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let verdict = unsafe {
            let (state, mut queue) = Private::<T>::borrow(NonNull::new_unchecked(sch));
            let packet = Skb::from_raw(NonNull::new_unchecked(skb));
            let mut dropped = Dropped {
                list: &mut *to_free,
            };
            state.enqueue(packet, &mut queue, &mut dropped)
        };
        match verdict {
            Verdict::Queued => bindings::NET_XMIT_SUCCESS as c_int,
            Verdict::Congested => bindings::NET_XMIT_CN as c_int,
            Verdict::Dropped => bindings::NET_XMIT_DROP as c_int,
            // Both count as success, since parents are not to count them as their own drops.
            Verdict::Stolen => bindings::net_xmit_qdisc_t___NET_XMIT_STOLEN as c_int,
            Verdict::Shot => bindings::net_xmit_qdisc_t___NET_XMIT_BYPASS as c_int,
        }
    }

    /// # Safety
    ///
    /// Root lock.
    unsafe extern "C" fn dequeue(sch: *mut bindings::Qdisc) -> *mut bindings::sk_buff {
        // SAFETY: By the safety requirements.
        let packet = unsafe {
            let (state, mut queue) = Private::<T>::borrow(NonNull::new_unchecked(sch));
            state.dequeue(&mut queue)
        };
        packet.map_or(core::ptr::null_mut(), |packet| packet.into_raw().as_ptr())
    }

    /// # Safety
    ///
    /// RTNL. `sch` is a new instance, its private data zero; `options` and `extack` are valid or
    /// null.
    unsafe extern "C" fn init(
        sch: *mut bindings::Qdisc,
        options: *mut bindings::nlattr,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe {
                let this = Private::<T>::of(NonNull::new_unchecked(sch));
                let device = Device(&*(*(*sch).dev_queue).dev);
                let options = NonNull::new(options).map(|options| Attribute::from_raw(options));
                let mut explanation = ExtAck::from_raw(extack);
                let state = T::init(device, options, &mut explanation);
                pin_init::raw_try_init(addr_of_mut!((*this).state).cast(), state)?;
                let head = addr_of_mut!((*this).head);
                let block = addr_of_mut!((*head).block);
                let filters = addr_of_mut!((*head).filters);
                to_result(bindings::tcf_block_get(block, filters, sch, extack)).inspect_err(
                    |_| {
                        (*addr_of_mut!((*this).state)).assume_init_drop();
                    },
                )?;
                bindings::qdisc_watchdog_init(Head::watchdog(head), sch);
                // INVARIANT: All of it is initialised.
                (*head).is_ready = true;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Nobody else uses the instance, or its root lock is held. It need not be ready.
    unsafe extern "C" fn reset(sch: *mut bindings::Qdisc) {
        // SAFETY: By the safety requirements.
        unsafe {
            let sch = NonNull::new_unchecked(sch);
            if (*Head::of(sch)).is_ready {
                Private::<T>::borrow(sch).0.reset();
            }
        }
    }

    /// # Safety
    ///
    /// Nobody else uses the instance. It need not be ready: the kernel calls this after
    /// [`Self::init`] has failed, too.
    unsafe extern "C" fn destroy(sch: *mut bindings::Qdisc) {
        // SAFETY: By the safety requirements. What is initialised is dropped once.
        unsafe {
            let sch = NonNull::new_unchecked(sch);
            if (*Head::of(sch)).is_ready {
                let head = Head::of(sch);
                (*head).is_ready = false;
                bindings::qdisc_watchdog_cancel(Head::watchdog(head));
                bindings::tcf_block_put((*head).block);
                let this = Private::<T>::of(sch);
                (*addr_of_mut!((*this).state)).assume_init_drop();
            }
        }
    }

    /// # Safety
    ///
    /// RTNL. `sch` is a ready instance of `T`.
    unsafe fn handle<'a>(sch: *mut bindings::Qdisc) -> Handle<'a, T> {
        // INVARIANT: By the safety requirements.
        Handle {
            // SAFETY: By the safety requirements.
            sch: unsafe { NonNull::new_unchecked(sch) },
            rtnl: PhantomData,
        }
    }

    /// # Safety
    ///
    /// RTNL. `options` is valid or null, as is `extack`.
    unsafe extern "C" fn change(
        sch: *mut bindings::Qdisc,
        options: *mut bindings::nlattr,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe {
                let options = NonNull::new(options).ok_or(EINVAL)?;
                let options = Attribute::from_raw(options);
                T::change(Self::handle(sch), options, &mut ExtAck::from_raw(extack))?;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// RTNL. `skb` is a message under construction.
    unsafe extern "C" fn dump(sch: *mut bindings::Qdisc, skb: *mut bindings::sk_buff) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe { T::dump(Self::handle(sch), &mut Message::from_raw(skb))? };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// RTNL. `dump` is valid.
    unsafe extern "C" fn dump_stats(
        sch: *mut bindings::Qdisc,
        dump: *mut bindings::gnet_dump,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe { T::dump_stats(Self::handle(sch), &mut StatsDump::from_raw(dump))? };
            Ok(0)
        })
    }

    /// Classes are no places for other disciplines.
    extern "C" fn leaf(_sch: *mut bindings::Qdisc, _class: c_ulong) -> *mut bindings::Qdisc {
        core::ptr::null_mut()
    }

    /// Classes come and go with the traffic and cannot be named from outside.
    extern "C" fn find(_sch: *mut bindings::Qdisc, _classid: u32) -> c_ulong {
        0
    }

    /// # Safety
    ///
    /// RTNL. `sch` is a ready instance of `T`.
    unsafe extern "C" fn tcf_block(
        sch: *mut bindings::Qdisc,
        class: c_ulong,
        _extack: *mut bindings::netlink_ext_ack,
    ) -> *mut bindings::tcf_block {
        if class != 0 {
            return core::ptr::null_mut();
        }
        // SAFETY: By the safety requirements.
        unsafe { (*Head::of(NonNull::new_unchecked(sch))).block }
    }

    /// Filters name classes without holding on to them.
    extern "C" fn bind_tcf(_sch: *mut bindings::Qdisc, _parent: c_ulong, _classid: u32) -> c_ulong {
        0
    }

    /// See [`Self::bind_tcf`].
    extern "C" fn unbind_tcf(_sch: *mut bindings::Qdisc, _class: c_ulong) {}

    /// # Safety
    ///
    /// RTNL. `walker` is valid.
    unsafe extern "C" fn walk(sch: *mut bindings::Qdisc, walker: *mut bindings::qdisc_walker) {
        // SAFETY: By the safety requirements.
        unsafe {
            let mut walker = Walker {
                sch: NonNull::new_unchecked(sch),
                walker: &mut *walker,
            };
            T::walk(Self::handle(sch), &mut walker);
        }
    }

    /// # Safety
    ///
    /// RTNL. `message` is valid.
    unsafe extern "C" fn dump_class(
        _sch: *mut bindings::Qdisc,
        class: c_ulong,
        _skb: *mut bindings::sk_buff,
        message: *mut bindings::tcmsg,
    ) -> c_int {
        // CAST: Minor numbers have 16 bits.
        let minor = class as u32 & bindings::TC_H_MIN_MASK;
        // SAFETY: By the safety requirements.
        unsafe { (*message).tcm_handle |= minor };
        0
    }

    /// # Safety
    ///
    /// RTNL. `dump` is valid.
    unsafe extern "C" fn dump_class_stats(
        sch: *mut bindings::Qdisc,
        class: c_ulong,
        dump: *mut bindings::gnet_dump,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe {
                // CAST: Minor numbers have 16 bits.
                let mut stats = StatsDump::from_raw(dump);
                T::dump_class_stats(Self::handle(sch), class as u16, &mut stats)?;
            }
            Ok(0)
        })
    }
}

/// A name as the kernel keeps it. For constants alone.
#[inline]
pub(super) const fn id(name: &CStr) -> [c_char; 16] {
    let bytes = name.to_bytes();
    let mut id = [0; 16];
    assert!(bytes.len() < id.len());
    let mut i = 0;
    while i < bytes.len() {
        id[i] = bytes[i] as c_char;
        i += 1;
    }
    id
}
