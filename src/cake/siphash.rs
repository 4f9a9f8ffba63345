// SPDX-License-Identifier: GPL-2.0

//! SipHash-1-3.
//!
//! Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012. With one round for each word
//! and three to finish it is what the kernel uses where a hash table must withstand chosen input.
//! The last word carries up to seven bytes beside the length, so that an address alone, or ports
//! and a protocol, cost no word of their own.

/// A random key, made once for each instance: which queue a packet meets must not be predictable
/// from outside. Kept is the state that a hash starts from.
#[derive(Clone, Copy, Debug)]
pub struct SipKey([u64; 4]);

impl SipKey {
    /// The key made of two random words.
    pub const fn new([k0, k1]: [u64; 2]) -> Self {
        Self([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ])
    }
}

/// A hash under way.
pub struct SipHash {
    v: [u64; 4],
    bytes: u64,
}

impl SipHash {
    /// A hash under `key` of nothing yet.
    #[inline]
    pub fn new(key: &SipKey) -> Self {
        Self { v: key.0, bytes: 0 }
    }

    /// The hash with `word` added.
    #[inline]
    pub fn word(mut self, word: u64) -> Self {
        self.bytes = self.bytes.wrapping_add(8);
        self.absorb(word);
        self
    }

    /// The hash with the lower `len` bytes of `tail` added, at most 7, the others being 0: its
    /// upper and lower half folded into 32 bits.
    #[inline]
    pub fn finish(mut self, tail: u64, len: u64) -> u32 {
        self.absorb((self.bytes.wrapping_add(len) << 56) | tail);
        self.v[2] ^= 0xff;
        self.round();
        self.round();
        self.round();
        let hash = self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3];
        (hash ^ (hash >> 32)) as u32
    }

    #[inline]
    fn absorb(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.v[0] ^= word;
    }

    #[inline]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.v;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.v = [a, b, c, d];
    }
}
