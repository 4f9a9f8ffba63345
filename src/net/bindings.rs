// SPDX-License-Identifier: GPL-2.0

//! Bindings to the kernel's C API, generated from `include/bindings_helper.h`.
//!
//! They are private to [`crate::net`]. `kernel::bindings` has types of the same names; they are
//! others to the compiler, so that pointers are cast where the two meet.

#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

include!(env!("CAKE_BINDINGS"));
