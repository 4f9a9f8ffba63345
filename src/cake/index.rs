// SPDX-License-Identifier: GPL-2.0

//! Indices that are in range by construction, so that looking something up cannot panic.

/// Queues in each tin.
pub const QUEUES: usize = 1024;
/// The most tins that a preset has.
pub const MAX_TINS: usize = 8;

/// The number of a queue within its tin: 0 to 1023.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct FlowIndex(u16);

/// The number of a host within its tin's table: 0 to 1023.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct HostIndex(u16);

/// The number of a tin: 0 to 7, in order of priority except that Best Effort is 0 where Bulk is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct TinIndex(u8);

const MASK: u16 = QUEUES as u16 - 1;

macro_rules! table_index {
    ($name:ident) => {
        impl $name {
            /// The index of `n` modulo the table's size.
            #[inline(always)]
            pub const fn new(n: u32) -> Self {
                Self(n as u16 & MASK)
            }

            /// The index as a position in the table. The mask tells the compiler what the
            /// constructor made sure of, and it drops the bounds check.
            #[inline(always)]
            pub const fn at(self) -> usize {
                (self.0 & MASK) as usize
            }
        }
    };
}

table_index!(FlowIndex);
table_index!(HostIndex);

impl TinIndex {
    /// The first tin, which every preset has.
    pub const FIRST: Self = Self(0);

    /// The index of `n` modulo [`MAX_TINS`].
    #[inline(always)]
    pub const fn new(n: u32) -> Self {
        Self(n as u8 & (MAX_TINS as u8 - 1))
    }

    /// The index as a position in an array of [`MAX_TINS`].
    #[inline(always)]
    pub const fn at(self) -> usize {
        (self.0 & (MAX_TINS as u8 - 1)) as usize
    }
}

/// A set of tins, bit n for tin n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct TinSet(u8);

impl TinSet {
    /// Adds a tin.
    #[inline]
    pub fn insert(&mut self, tin: TinIndex) {
        self.0 |= 1 << tin.at();
    }

    /// Takes a tin out.
    #[inline]
    pub fn remove(&mut self, tin: TinIndex) {
        self.0 &= !(1 << tin.at());
    }

    /// The tin, if there is exactly one.
    #[inline]
    pub fn only(self) -> Option<TinIndex> {
        self.0
            .is_power_of_two()
            .then_some(TinIndex::new(self.0.trailing_zeros()))
    }
}

/// The tins in order.
impl Iterator for TinSet {
    type Item = TinIndex;

    #[inline]
    fn next(&mut self) -> Option<TinIndex> {
        if self.0 == 0 {
            return None;
        }
        let tin = TinIndex::new(self.0.trailing_zeros());
        self.remove(tin);
        Some(tin)
    }
}
