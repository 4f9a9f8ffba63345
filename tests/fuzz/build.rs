// SPDX-License-Identifier: GPL-2.0

//! As for tc's plugin: numbers from the uapi headers.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=../../src/tc/uapi.h");
    println!("cargo::rerun-if-changed=../../include/uapi/linux/pkt_sched_cake.h");
    let out = Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("uapi.rs");
    let status = Command::new("bindgen")
        .args(["--allowlist-var", "(TCA|CAKE)_.*", "--no-layout-tests"])
        .args(["--no-doc-comments", "../../src/tc/uapi.h", "-o"])
        .arg(out)
        .args(["--", "-I../../include/uapi"])
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "bindgen failed on uapi.h: are bindgen and the kernel's headers there?"
    );
}
