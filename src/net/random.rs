// SPDX-License-Identifier: GPL-2.0

//! Random numbers.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use super::bindings;
use kernel::prelude::*;

/// `N` random words, fit for keys.
pub(crate) fn random_words<const N: usize>() -> [u64; N] {
    let mut words = [0u64; N];
    // SAFETY: `words` is valid for writes of its size, and any bytes make a `u64`.
    unsafe { bindings::get_random_bytes(words.as_mut_ptr().cast::<c_void>(), size_of_val(&words)) };
    words
}
