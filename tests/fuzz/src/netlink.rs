// SPDX-License-Identifier: GPL-2.0

//! `src/net/netlink.rs` with its own attributes, and messages that are bytes.

#[path = "../../../src/net/netlink/attribute.rs"]
mod attribute;

mod bindings {
    pub(super) const NLA_ALIGNTO: u32 = 4;
    pub(super) const NLA_TYPE_MASK: i32 = 0x3fff;
}

use crate::prelude::*;
pub(crate) use attribute::{Attribute, Attributes, Policy};
use core::{fmt::Arguments, marker::PhantomData};

/// Keeps the explanation.
#[derive(Default)]
pub(crate) struct ExtAck<'a>(pub(crate) Option<String>, PhantomData<&'a ()>);

impl ExtAck<'_> {
    pub(crate) fn refuse(&mut self, _: Attribute<'_>, why: &'static CStr, error: Error) -> Error {
        self.explain(why, error)
    }

    pub(crate) fn refuse_for(
        &mut self,
        _: Attribute<'_>,
        why: Arguments<'_>,
        error: Error,
    ) -> Error {
        self.0 = Some(why.to_string());
        error
    }

    pub(crate) fn explain(&mut self, why: &'static CStr, error: Error) -> Error {
        self.0 = Some(why.to_string_lossy().into_owned());
        error
    }
}

/// A message that grows as needed.
#[derive(Default)]
pub(crate) struct Message<'a>(pub(crate) Vec<u8>, PhantomData<&'a ()>);

impl Message<'_> {
    fn put(&mut self, kind: u32, payload: &[u8]) -> Result {
        let len = u16::try_from(payload.len() + 4).map_err(|_| EMSGSIZE)?;
        self.0.extend(len.to_ne_bytes());
        self.0.extend((kind as u16).to_ne_bytes());
        self.0.extend(payload);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        Ok(())
    }

    pub(crate) fn put_u32(&mut self, kind: u32, value: u32) -> Result {
        self.put(kind, &value.to_ne_bytes())
    }

    pub(crate) fn put_s32(&mut self, kind: u32, value: i32) -> Result {
        self.put(kind, &value.to_ne_bytes())
    }

    pub(crate) fn put_u64(&mut self, kind: u32, value: u64, _padding: u32) -> Result {
        self.put(kind, &value.to_ne_bytes())
    }

    pub(crate) fn nest(&mut self, kind: u32, fill: impl FnOnce(&mut Self) -> Result) -> Result {
        let mut inner = Self::default();
        fill(&mut inner)?;
        self.put(kind, &inner.0)
    }
}
