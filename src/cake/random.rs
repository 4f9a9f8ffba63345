// SPDX-License-Identifier: GPL-2.0

//! A small generator for dithering and for BLUE's dice.
//!
//! Nothing secret depends on it: which queue a flow gets is decided by a keyed hash.

/// Marsaglia's xorshift64 ("Xorshift RNGs", Journal of Statistical Software, 2003).
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose sequence follows from `seed`.
    pub const fn new(seed: u64) -> Self {
        // The all-zero state would stay zero.
        Self(seed | 1)
    }

    /// The next 32 uniform bits.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }
}
