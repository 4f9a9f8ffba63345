// SPDX-License-Identifier: GPL-2.0

//! What fuzzers ask of the parts that meet bytes from outside, and of the scheduler.
//!
//! Each function takes whatever bytes a fuzzer makes up and panics where something does not hold.
//! `cargo test` plays the corpora through them.

// The module's own files, which say `kernel` and `crate::net`.
extern crate self as kernel;

use cake::cake;

#[path = "kernel.rs"]
pub mod kernel_crate;
#[path = "../../simulator/ledger.rs"]
#[allow(dead_code)]
mod ledger;
#[allow(dead_code)]
mod net;
#[allow(dead_code, unused_imports)]
mod netlink;
#[allow(dead_code)]
mod qdisc;
#[path = "../../support/mod.rs"]
mod support;

pub use kernel_crate::{fmt, prelude};

/// Formats as the kernel's macro does.
#[macro_export]
macro_rules! fmt {
    ($($arguments:tt)*) => {
        ::core::format_args!($($arguments)*)
    };
}

pub mod target;

#[cfg(test)]
mod tests {
    use super::target;
    use std::{fs, path::Path};

    fn play(name: &str, target: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(name);
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            target(&fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "the corpus is empty");
    }

    #[test]
    fn corpus_of_headers() {
        play("headers", target::headers);
    }

    #[test]
    fn corpus_of_acks() {
        play("acks", target::acks);
    }

    #[test]
    fn corpus_of_requests() {
        play("requests", target::requests);
    }

    #[test]
    fn corpus_of_operations() {
        play("operations", target::operations);
    }
}
