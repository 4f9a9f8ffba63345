// SPDX-License-Identifier: GPL-2.0

//! Netlink attributes, in and out.
//!
//! C header: [`include/net/netlink.h`](srctree/include/net/netlink.h)

use super::bindings;
use core::{
    marker::PhantomData,
    ptr::{null_mut, NonNull},
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
            unsafe { (*extack.as_ptr()).bad_attr = attribute.0.as_ptr() };
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
            (*extack.as_ptr()).bad_attr = attribute.0.as_ptr();
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

/// An attribute of a request.
///
/// # Invariants
///
/// The pointer is to an attribute that lies whole within a message that lives for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'a>(NonNull<bindings::nlattr>, PhantomData<&'a ()>);

impl<'a> Attribute<'a> {
    /// # Safety
    ///
    /// As the type's invariants say.
    pub(super) unsafe fn from_raw(attribute: NonNull<bindings::nlattr>) -> Self {
        // INVARIANT: By the safety requirements.
        Self(attribute, PhantomData)
    }

    /// The bytes that the attribute carries.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        const HEADER: usize = size_of::<bindings::nlattr>();
        // SAFETY: By the type's invariants.
        unsafe {
            let len = usize::from((*self.0.as_ptr()).nla_len).saturating_sub(HEADER);
            slice::from_raw_parts(self.0.as_ptr().cast::<u8>().add(HEADER), len)
        }
    }

    /// A `u32` in host byte order, [`None`] if the attribute is too short.
    pub(crate) fn u32(&self) -> Option<u32> {
        self.bytes().first_chunk().copied().map(u32::from_ne_bytes)
    }

    /// A `u64` in host byte order, [`None`] if the attribute is too short.
    pub(crate) fn u64(&self) -> Option<u64> {
        self.bytes().first_chunk().copied().map(u64::from_ne_bytes)
    }

    /// The attribute's type.
    pub(crate) fn kind(&self) -> u32 {
        // SAFETY: By the type's invariants.
        u32::from(unsafe { (*self.0.as_ptr()).nla_type } & bindings::NLA_TYPE_MASK as u16)
    }

    /// The attributes that this one nests, in their order; [`None`] stands for what is no whole
    /// attribute, and is the last.
    pub(crate) fn children(&self) -> Children<'a> {
        Children(self.bytes())
    }

    /// The attributes that this one nests, by type, after `policy`. Types above it are ignored.
    ///
    /// # Errors
    ///
    /// Fails, with an explanation, if an attribute is not as `policy` says.
    pub(crate) fn nested<const N: usize>(
        &self,
        policy: &'static Policy<N>,
        extack: &mut ExtAck<'_>,
    ) -> Result<Attributes<'a, N>> {
        let mut found = [null_mut::<bindings::nlattr>(); N];
        let bytes = self.bytes();
        // SAFETY: `found` and `policy` have an element for each type up to the largest, and the
        // attributes to parse are within `bytes`.
        to_result(unsafe {
            bindings::__nla_parse(
                found.as_mut_ptr(),
                const { N as c_int - 1 },
                bytes.as_ptr().cast(),
                bytes.len() as c_int,
                policy.0.as_ptr(),
                bindings::netlink_validation_NL_VALIDATE_LIBERAL,
                extack.0.map_or(null_mut(), NonNull::as_ptr),
            )
        })?;
        // INVARIANT: What was found is within this attribute.
        Ok(Attributes(found.map(|attribute| {
            NonNull::new(attribute).map(|attribute| Attribute(attribute, PhantomData))
        })))
    }
}

/// The attributes in a piece of a message.
pub(crate) struct Children<'a>(&'a [u8]);

impl<'a> Iterator for Children<'a> {
    type Item = Option<Attribute<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        const HEADER: usize = size_of::<bindings::nlattr>();
        const ALIGN: usize = bindings::NLA_ALIGNTO as usize;
        let bytes = self.0;
        if bytes.is_empty() {
            return None;
        }
        self.0 = &[];
        let Some(len) = bytes.first_chunk().copied().map(u16::from_ne_bytes) else {
            return Some(None);
        };
        let len = usize::from(len);
        if len < HEADER || len > bytes.len() {
            return Some(None);
        }
        self.0 = bytes.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
        // INVARIANT: The attribute lies whole within the bytes, which start where attributes are
        // aligned.
        let attribute = NonNull::from(bytes).cast();
        Some(Some(Attribute(attribute, PhantomData)))
    }
}

/// Attributes by type, each the last of its type.
pub(crate) struct Attributes<'a, const N: usize>([Option<Attribute<'a>>; N]);

impl<'a, const N: usize> Attributes<'a, N> {
    /// The attribute of type `kind`.
    pub(crate) fn get(&self, kind: u32) -> Option<Attribute<'a>> {
        self.0.get(kind as usize).copied().flatten()
    }
}

/// What is expected of each type of attribute below `N`.
#[repr(transparent)]
pub(crate) struct Policy<const N: usize>([bindings::nla_policy; N]);

// SAFETY: A policy is only read.
unsafe impl<const N: usize> Sync for Policy<N> {}

impl<const N: usize> Policy<N> {
    /// A policy that accepts numbers of 64 bits for the types in `u64s`, of 32 for those in `u32s`
    /// and anything for others.
    pub(crate) const fn numbers(u64s: &[u32], u32s: &[u32]) -> Self {
        let mut policy = [policy(bindings::NLA_UNSPEC); N];
        let mut i = 0;
        while i < u64s.len() {
            policy[u64s[i] as usize] = self::policy(bindings::NLA_U64);
            i += 1;
        }
        i = 0;
        while i < u32s.len() {
            policy[u32s[i] as usize] = self::policy(bindings::NLA_U32);
            i += 1;
        }
        Self(policy)
    }
}

const fn policy(kind: u32) -> bindings::nla_policy {
    // SAFETY: A policy of zeros is one that accepts anything.
    let mut policy: bindings::nla_policy = unsafe { core::mem::zeroed() };
    policy.type_ = kind as u8;
    policy
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
