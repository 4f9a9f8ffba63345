// SPDX-License-Identifier: GPL-2.0

//! Disciplines of devices with several queues: one instance of another discipline on each.
//!
//! The parent sees no packets. It gives its children their configuration, and to users it is one
//! discipline that has classes for the queues.
//!
//! C header: [`include/net/sch_priv.h`](srctree/include/net/sch_priv.h)

use super::{adapter, *};
use core::mem::MaybeUninit;
use kernel::error::from_result;

/// A discipline of several queues.
///
/// All callbacks come under RTNL and may sleep.
pub(crate) trait MultiQueue: Send + Sized {
    /// The name by which `tc` knows the discipline, at most 15 bytes.
    const ID: &'static CStr;

    /// Why no other discipline may be put in a child's place.
    const NO_GRAFT: &'static CStr;

    /// The discipline of each queue.
    type Child: Qdisc;

    /// Makes the state of a new instance.
    fn init(options: Option<Attribute<'_>>, extack: &mut ExtAck<'_>) -> impl PinInit<Self, Error>;

    /// Gives the children, which are new, their configuration.
    fn adopt(&mut self, children: &Children<'_, Self::Child>) -> Result;

    /// Changes the configuration of all, whole or not at all.
    fn change(
        &mut self,
        children: &Children<'_, Self::Child>,
        options: Attribute<'_>,
        extack: &mut ExtAck<'_>,
    ) -> Result;

    /// Writes the configuration.
    fn dump(&self, message: &mut Message<'_>) -> Result;
}

/// The children of an instance.
///
/// # Invariants
///
/// RTNL is held for `'a`, and the device of `sch` has an instance of `T` on each queue: in `new` as
/// long as they are not attached, else on the queue itself. Others are passed over.
pub(crate) struct Children<'a, T: Qdisc> {
    sch: NonNull<bindings::Qdisc>,
    ops: *const bindings::Qdisc_ops,
    new: *mut *mut bindings::Qdisc,
    rtnl: PhantomData<&'a T>,
}

impl<T: Qdisc> Children<'_, T> {
    /// The children, in the order of their queues.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Handle<'_, T>> {
        // SAFETY: By the type's invariants.
        let dev = unsafe { (*(*self.sch.as_ptr()).dev_queue).dev };
        // SAFETY: As above.
        let count = unsafe { (*dev).num_tx_queues };
        (0..count as usize).filter_map(move |i| {
            // SAFETY: By the type's invariants; `i` is less than the number of queues.
            let child = unsafe {
                if self.new.is_null() {
                    (*(*dev)._tx.add(i)).qdisc_sleeping
                } else {
                    *self.new.add(i)
                }
            };
            // SAFETY: What is there is a discipline, and `T`'s if it has its table.
            let sch = NonNull::new(child).filter(|sch| unsafe {
                (*sch.as_ptr()).ops == self.ops && (*adapter::Head::of(*sch)).is_ready()
            })?;
            // INVARIANT: It is an instance of `T` that is ready, and RTNL is held.
            Some(Handle {
                sch,
                rtnl: PhantomData,
            })
        })
    }
}

/// What the kernel keeps for an instance; `queues` comes first because the kernel says so.
///
/// # Invariants
///
/// `state` is initialised while `is_ready`.
#[repr(C)]
struct Private<T> {
    queues: bindings::mq_sched,
    is_ready: bool,
    state: MaybeUninit<T>,
}

/// A table for the kernel that knows that of the children.
#[repr(C)]
struct Ops {
    parent: bindings::Qdisc_ops,
    child: *const bindings::Qdisc_ops,
}

/// Both disciplines, that of the children and their parent's, which the kernel knows. Dropping it
/// makes the kernel forget them.
///
/// # Invariants
///
/// `ops.parent` is registered, and `ops.child` is the table in `child`.
#[pin_data(PinnedDrop)]
pub(crate) struct MultiQueueRegistration<T: MultiQueue> {
    #[pin]
    child: Registration<T::Child>,
    #[pin]
    ops: Opaque<Ops>,
}

// SAFETY: Disciplines may be unregistered on any thread.
unsafe impl<T: MultiQueue> Send for MultiQueueRegistration<T> {}
// SAFETY: There is nothing that a shared reference could do.
unsafe impl<T: MultiQueue> Sync for MultiQueueRegistration<T> {}

impl<T: MultiQueue> MultiQueueRegistration<T> {
    /// Registers `T` and its children's discipline on behalf of `module`.
    ///
    /// # Errors
    ///
    /// [`EEXIST`] if there is a discipline of either name.
    pub(crate) fn new(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        // INVARIANT: The initialiser fails unless both were registered.
        try_pin_init!(&this in Self {
            child <- Registration::new(module),
            ops <- Opaque::try_ffi_init(move |ops: *mut Ops| {
                // SAFETY: `ops` is valid for writes and stays where it is until it is unregistered,
                // and so does `child`, which is initialised.
                unsafe {
                    let child = (*addr_of!((*this.as_ptr()).child)).ops.get();
                    ops.write(Ops { parent: Adapter::<T>::ops(module), child });
                    to_result(bindings::register_qdisc(addr_of_mut!((*ops).parent)))
                }
            }),
        })
    }
}

#[pinned_drop]
impl<T: MultiQueue> PinnedDrop for MultiQueueRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The table is registered by the type's invariants.
        unsafe { bindings::unregister_qdisc(addr_of_mut!((*self.ops.get()).parent)) };
    }
}

/// The callbacks for `T`. The kernel calls them with a valid instance under RTNL.
struct Adapter<T>(PhantomData<T>);

impl<T: MultiQueue> Adapter<T> {
    const CLASS_OPS: bindings::Qdisc_class_ops = bindings::Qdisc_class_ops {
        flags: 0,
        select_queue: Some(bindings::mq_select_queue),
        graft: Some(Self::graft),
        leaf: Some(bindings::mq_leaf),
        qlen_notify: None,
        find: Some(bindings::mq_find),
        change: None,
        delete: None,
        walk: Some(bindings::mq_walk),
        tcf_block: None,
        bind_tcf: None,
        unbind_tcf: None,
        dump: Some(bindings::mq_dump_class),
        dump_stats: Some(bindings::mq_dump_class_stats),
    };

    fn ops(module: &'static ThisModule) -> bindings::Qdisc_ops {
        bindings::Qdisc_ops {
            next: core::ptr::null_mut(),
            cl_ops: &Self::CLASS_OPS,
            id: const { adapter::id(T::ID) },
            priv_size: const { size_of::<Private<T>>() as c_int },
            static_flags: 0,
            enqueue: None,
            dequeue: None,
            peek: None,
            init: Some(Self::init),
            reset: None,
            destroy: Some(Self::destroy),
            change: Some(Self::change),
            attach: Some(bindings::mq_attach),
            change_tx_queue_len: None,
            change_real_num_tx: Some(bindings::mq_change_real_num_tx),
            dump: Some(Self::dump),
            dump_stats: None,
            ingress_block_set: None,
            egress_block_set: None,
            ingress_block_get: None,
            egress_block_get: None,
            owner: module.as_ptr().cast(),
        }
    }

    fn of(sch: *mut bindings::Qdisc) -> *mut Private<T> {
        const { assert!(align_of::<Private<T>>() <= align_of::<bindings::Qdisc>()) };
        // SAFETY: The kernel allocated `priv_size` bytes there.
        unsafe { addr_of_mut!((*sch).privdata) }.cast()
    }

    /// # Safety
    ///
    /// RTNL. `sch` is an instance whose children exist.
    unsafe fn children<'a>(sch: *mut bindings::Qdisc) -> Children<'a, T::Child> {
        // INVARIANT: By the safety requirements; the kernel forgets the new ones once they are
        // attached.
        // SAFETY: The table of an instance is the first part of an `Ops`.
        unsafe {
            Children {
                sch: NonNull::new_unchecked(sch),
                ops: (*(*sch).ops.cast::<Ops>()).child,
                new: (*Self::of(sch)).queues.qdiscs,
                rtnl: PhantomData,
            }
        }
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
            // SAFETY: By the safety requirements. What fails from here on is cleared up by
            // `destroy`, which the kernel calls in any case.
            unsafe {
                let this = Self::of(sch);
                let attribute = NonNull::new(options).map(|options| Attribute::from_raw(options));
                let mut explanation = ExtAck::from_raw(extack);
                let state = T::init(attribute, &mut explanation);
                pin_init::raw_try_init(addr_of_mut!((*this).state).cast(), state)?;
                // INVARIANT: It is initialised.
                (*this).is_ready = true;
                let child = (*(*sch).ops.cast::<Ops>()).child;
                to_result(bindings::mq_init_common(sch, options, extack, child))?;
                let state = (*addr_of_mut!((*this).state)).assume_init_mut();
                state.adopt(&Self::children(sch))?;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// RTNL. The instance need not be ready.
    unsafe extern "C" fn destroy(sch: *mut bindings::Qdisc) {
        // SAFETY: By the safety requirements. What is initialised is dropped once.
        unsafe {
            bindings::mq_destroy_common(sch);
            let this = Self::of(sch);
            if (*this).is_ready {
                (*this).is_ready = false;
                (*addr_of_mut!((*this).state)).assume_init_drop();
            }
        }
    }

    /// # Safety
    ///
    /// RTNL. `sch` is ready; `options` and `extack` are valid or null.
    unsafe extern "C" fn change(
        sch: *mut bindings::Qdisc,
        options: *mut bindings::nlattr,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe {
                let options = Attribute::from_raw(NonNull::new(options).ok_or(EINVAL)?);
                let state = (*addr_of_mut!((*Self::of(sch)).state)).assume_init_mut();
                let children = Self::children(sch);
                state.change(&children, options, &mut ExtAck::from_raw(extack))?;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// RTNL. `sch` is ready; `skb` is a message under construction.
    unsafe extern "C" fn dump(sch: *mut bindings::Qdisc, skb: *mut bindings::sk_buff) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe {
                bindings::mq_dump_common(sch, skb);
                let state = (*addr_of!((*Self::of(sch)).state)).assume_init_ref();
                state.dump(&mut Message::from_raw(skb))?;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `extack` is valid or null.
    unsafe extern "C" fn graft(
        _sch: *mut bindings::Qdisc,
        _class: c_ulong,
        _new: *mut bindings::Qdisc,
        _old: *mut *mut bindings::Qdisc,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let mut extack = unsafe { ExtAck::from_raw(extack) };
        extack.explain(T::NO_GRAFT, EOPNOTSUPP).to_errno()
    }
}
