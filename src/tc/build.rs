// SPDX-License-Identifier: GPL-2.0

//! Takes the attribute numbers from the uapi headers, with the program that Kbuild uses as well.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=uapi.h");
    println!("cargo::rerun-if-changed=../../include/uapi/linux/pkt_sched_cake.h");
    let out = Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("uapi.rs");
    let status = Command::new("bindgen")
        .args(["--allowlist-var", "(TCA|CAKE|RTM|NLM_F)_.*"])
        .args(["--no-layout-tests", "--no-doc-comments", "uapi.h", "-o"])
        .arg(out)
        .args(["--", "-I../../include/uapi"])
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("bindgen failed on uapi.h: {status}; are the kernel's headers there?"),
        Err(error) => panic!("needs bindgen (apt-get install bindgen): {error}"),
    }
}
