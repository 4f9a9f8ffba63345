// SPDX-License-Identifier: GPL-2.0

//! Attributes of a request: pure functions over its bytes.

use super::{
    bindings::{NLA_ALIGNTO, NLA_TYPE_MASK},
    ExtAck, //
};
use kernel::prelude::*;

/// Length and type, in front of what an attribute carries.
const HEADER: usize = 4;

/// An attribute of a request: its header and what it carries, padding excluded.
///
/// # Invariants
///
/// The bytes hold a whole header.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'a>(&'a [u8]);

impl<'a> Attribute<'a> {
    /// An attribute of no type that carries nothing.
    // INVARIANT: It is a header and nothing else.
    pub(super) const EMPTY: Self = Self(&[0; HEADER]);

    /// The first attribute in `bytes`, and what follows it. [`None`] if it is not whole.
    pub(crate) fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let len = bytes.first_chunk().copied().map(u16::from_ne_bytes)?;
        let len = usize::from(len);
        if len < HEADER {
            return None;
        }
        let (attribute, _) = bytes.split_at_checked(len)?;
        let rest = bytes.get(len.next_multiple_of(NLA_ALIGNTO as usize)..);
        // INVARIANT: The length was checked above.
        Some((Self(attribute), rest.unwrap_or_default()))
    }

    /// The attribute as it stands in the request.
    pub(super) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }

    /// The bytes that the attribute carries.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0.get(HEADER..).unwrap_or_default()
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
        match *self.0 {
            [_, _, low, high, ..] => {
                u32::from(u16::from_ne_bytes([low, high])) & (NLA_TYPE_MASK as u32)
            }
            _ => 0,
        }
    }

    /// The attributes that this one nests, in their order; [`None`] stands for what is no whole
    /// attribute, and is the last.
    pub(crate) fn children(&self) -> impl Iterator<Item = Option<Attribute<'a>>> {
        let mut bytes = self.bytes();
        core::iter::from_fn(move || {
            if bytes.is_empty() {
                return None;
            }
            let first = Self::first(bytes);
            bytes = first.map_or(&[], |(_, rest)| rest);
            Some(first.map(|(attribute, _)| attribute))
        })
    }

    /// The attributes that this one nests, by type, after `policy`. Types that it does not know are
    /// ignored, and so is what follows the last whole attribute.
    ///
    /// # Errors
    ///
    /// Fails, with an explanation, if an attribute is shorter than `policy` says.
    pub(crate) fn nested<const N: usize>(
        &self,
        policy: &'static Policy<N>,
        extack: &mut ExtAck<'_>,
    ) -> Result<Attributes<'a, N>> {
        let mut found = [None; N];
        for attribute in self.children().map_while(|child| child) {
            let kind = attribute.kind() as usize;
            let (Some(slot), Some(Some((name, len)))) = (found.get_mut(kind), policy.0.get(kind))
            else {
                continue;
            };
            if attribute.bytes().len() < *len {
                return Err(extack.refuse_for(
                    attribute,
                    fmt!("{name}: shorter than {len} bytes"),
                    ERANGE,
                ));
            }
            *slot = Some(attribute);
        }
        Ok(Attributes(found))
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

/// The types of attributes below `N` that are known: what they are called, and the least bytes that
/// they carry.
pub(crate) struct Policy<const N: usize>([Option<(&'static str, usize)>; N]);

impl<const N: usize> Policy<N> {
    /// A policy that accepts numbers of 64 bits for the types in `u64s` and of 32 for those in
    /// `u32s`, each with its name.
    pub(crate) const fn numbers(
        u64s: &[(u32, &'static str)],
        u32s: &[(u32, &'static str)],
    ) -> Self {
        let mut policy = [None; N];
        let mut i = 0;
        while i < u64s.len() {
            policy[u64s[i].0 as usize] = Some((u64s[i].1, size_of::<u64>()));
            i += 1;
        }
        i = 0;
        while i < u32s.len() {
            policy[u32s[i].0 as usize] = Some((u32s[i].1, size_of::<u32>()));
            i += 1;
        }
        Self(policy)
    }
}
