// SPDX-License-Identifier: GPL-2.0

//! Netlink attributes, in and out.
//!
//! C header: [`include/net/netlink.h`](srctree/include/net/netlink.h)

mod attribute;

use super::bindings;
pub(crate) use attribute::{
    Attribute,
    Attributes,
    Policy, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull,
    slice, //
};
use kernel::{
    error::to_result,
    fmt::{self, Write},
    prelude::*,
    str::NullTerminatedFormatter,
    transmute::AsBytes, //
};

/// Where a request's error is explained, `struct netlink_ext_ack`.
///
/// # Invariants
///
/// The pointer is valid for `'a`, if there is one.
pub(crate) struct ExtAck<'a>(
    Option<NonNull<bindings::netlink_ext_ack>>,
    PhantomData<&'a mut ()>,
);

impl ExtAck<'_> {
    /// # Safety
    ///
    /// `extack` must be valid for `'a` or null.
    pub(super) unsafe fn from_raw(extack: *mut bindings::netlink_ext_ack) -> Self {
        // INVARIANT: By the safety requirements.
        Self(NonNull::new(extack), PhantomData)
    }

    /// Explains that `attribute` is refused because of `reason`. Returns `error` for the caller to
    /// fail with.
    #[must_use]
    pub(crate) fn refuse(
        &mut self,
        attribute: Attribute<'_>,
        reason: &'static CStr,
        error: Error,
    ) -> Error {
        if let Some(extack) = self.0 {
            // SAFETY: By the type's invariants.
            unsafe { (*extack.as_ptr()).bad_attr = attribute.as_ptr().cast() };
        }
        self.explain(reason, error)
    }

    /// Explains that `attribute` is refused because of `reason`, which has room for 79 bytes.
    /// Returns `error` for the caller to fail with.
    #[must_use]
    pub(crate) fn refuse_for(
        &mut self,
        attribute: Attribute<'_>,
        reason: fmt::Arguments<'_>,
        error: Error,
    ) -> Error {
        let Some(extack) = self.0 else { return error };
        // SAFETY: By the type's invariants, and nobody else uses the buffer.
        let text = unsafe { &mut (*extack.as_ptr())._msg_buf };
        if let Some(mut writer) = NullTerminatedFormatter::new(text) {
            // What does not fit is left out.
            let _ = writer.write_fmt(reason);
        }
        // SAFETY: By the type's invariants; the message is part of what is pointed to.
        unsafe {
            (*extack.as_ptr()).bad_attr = attribute.as_ptr().cast();
            (*extack.as_ptr())._msg = text.as_ptr();
        }
        error
    }

    /// Explains that the request is refused because of `reason`, and returns `error`.
    #[must_use]
    pub(crate) fn explain(&mut self, reason: &'static CStr, error: Error) -> Error {
        if let Some(extack) = self.0 {
            // SAFETY: By the type's invariants; the reason lives as long as the module, and the
            // kernel copies it before the request ends.
            unsafe { (*extack.as_ptr())._msg = reason.as_char_ptr() };
        }
        error
    }
}

impl Attribute<'_> {
    /// The attribute at `start`.
    ///
    /// # Safety
    ///
    /// `start` must be the start of an attribute that lies whole within a message that lives as long
    /// as what is returned.
    pub(super) unsafe fn from_raw(start: NonNull<bindings::nlattr>) -> Self {
        // SAFETY: By the safety requirements.
        let bytes = unsafe {
            let len = usize::from((*start.as_ptr()).nla_len);
            slice::from_raw_parts(start.as_ptr().cast::<u8>(), len)
        };
        Self::first(bytes).map_or(Self::EMPTY, |(attribute, _)| attribute)
    }
}

/// A message under construction.
///
/// # Invariants
///
/// The pointer is to a valid `struct sk_buff` of a netlink message that nobody else writes to.
pub(crate) struct Message<'a>(NonNull<bindings::sk_buff>, PhantomData<&'a mut ()>);

impl Message<'_> {
    /// # Safety
    ///
    /// As the type's invariants say.
    pub(super) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Self {
        // INVARIANT: By the safety requirements.
        // SAFETY: By the safety requirements.
        Self(unsafe { NonNull::new_unchecked(skb) }, PhantomData)
    }

    fn put<T: AsBytes>(&mut self, kind: u32, value: T) -> Result {
        let data = (&raw const value).cast();
        // SAFETY: The message is valid by the type's invariants, and so is the value.
        to_result(unsafe {
            bindings::nla_put(
                self.0.as_ptr(),
                kind as c_int,
                size_of::<T>() as c_int,
                data,
            )
        })
    }

    /// Puts a `u32`.
    pub(crate) fn put_u32(&mut self, kind: u32, value: u32) -> Result {
        self.put(kind, value)
    }

    /// Puts an `i32`.
    pub(crate) fn put_s32(&mut self, kind: u32, value: i32) -> Result {
        self.put(kind, value)
    }

    /// Puts a `u64`, aligned by an attribute of type `padding` where need be.
    pub(crate) fn put_u64(&mut self, kind: u32, value: u64, padding: u32) -> Result {
        let data = (&raw const value).cast();
        // SAFETY: As in `put`.
        to_result(unsafe {
            bindings::nla_put_64bit(
                self.0.as_ptr(),
                kind as c_int,
                size_of::<u64>() as c_int,
                data,
                padding as c_int,
            )
        })
    }

    /// Nests in an attribute of type `kind` what `fill` puts. If it fails, nothing remains of it.
    ///
    /// # Errors
    ///
    /// [`EMSGSIZE`] if the message is full, and whatever `fill` fails with.
    pub(crate) fn nest(&mut self, kind: u32, fill: impl FnOnce(&mut Self) -> Result) -> Result {
        // SAFETY: The message is valid by the type's invariants.
        let start = unsafe { bindings::nla_nest_start_noflag(self.0.as_ptr(), kind as c_int) };
        if start.is_null() {
            return Err(EMSGSIZE);
        }
        let result = fill(self);
        // SAFETY: The message is valid by the type's invariants, and the nest was started above.
        unsafe {
            match result {
                Ok(()) => {
                    bindings::nla_nest_end(self.0.as_ptr(), start);
                }
                Err(_) => bindings::nla_nest_cancel(self.0.as_ptr(), start),
            }
        }
        result
    }
}
