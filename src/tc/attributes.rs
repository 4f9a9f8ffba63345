// SPDX-License-Identifier: GPL-2.0

//! Netlink attributes over byte slices.

use netlink_packet_core::{DefaultNla, Emitable, NlasIterator, NLA_HEADER_SIZE};

/// The attributes in `bytes` up to the first that is not whole: type and payload.
pub fn each(bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    NlasIterator::new(bytes).map_while(|nla| {
        let nla = nla.ok()?;
        let (kind, end) = (u32::from(nla.kind()), usize::from(nla.length()));
        Some((kind, nla.into_inner().get(NLA_HEADER_SIZE..end)?))
    })
}

/// Attributes by type, each the last of its type.
pub struct Attributes<'a>(Vec<(u32, &'a [u8])>);

impl<'a> Attributes<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(each(bytes).collect())
    }

    pub fn bytes(&self, kind: u32) -> Option<&'a [u8]> {
        let found = self.0.iter().rev().find(|(k, _)| *k == kind);
        found.map(|(_, bytes)| *bytes)
    }

    pub fn u32(&self, kind: u32) -> Option<u32> {
        self.bytes(kind)?
            .first_chunk()
            .copied()
            .map(u32::from_ne_bytes)
    }

    pub fn i32(&self, kind: u32) -> Option<i32> {
        self.u32(kind).map(|value| value as i32)
    }

    pub fn u64(&self, kind: u32) -> Option<u64> {
        self.bytes(kind)?
            .first_chunk()
            .copied()
            .map(u64::from_ne_bytes)
    }
}

/// Attributes under construction.
#[derive(Default)]
pub struct Builder(Vec<u8>);

impl Builder {
    pub fn put(&mut self, kind: u32, payload: &[u8]) {
        let nla = DefaultNla::new(kind as u16, payload.to_vec());
        let start = self.0.len();
        self.0
            .resize(start + nla.buffer_len().next_multiple_of(4), 0);
        nla.emit(&mut self.0[start..]);
    }

    pub fn put_u32(&mut self, kind: u32, value: Option<u32>) {
        if let Some(value) = value {
            self.put(kind, &value.to_ne_bytes());
        }
    }

    pub fn put_u64(&mut self, kind: u32, value: Option<u64>) {
        if let Some(value) = value {
            self.put(kind, &value.to_ne_bytes());
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
