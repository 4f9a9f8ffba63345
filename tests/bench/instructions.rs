// SPDX-License-Identifier: GPL-2.0

//! A packet in and out of the algorithm, over and over: for a tool that counts instructions.
//!
//!     cargo bench --bench instructions --no-run
//!     valgrind --tool=callgrind --toggle-collect='*instructions*one*' PROGRAM flows

#[path = "../support/mod.rs"]
mod support;

use cake::cake::{
    config::Config,
    diffserv::Preset,
    dissect,
    hash::{FlowMode, Known},
    siphash::SipKey,
};
use std::hint::black_box;
use support::{Link, TestPacket};

/// An IPv4 header and ports of a datagram from one of 100 ports to one of 32 addresses.
fn headers(number: u64) -> [u8; 28] {
    let mut header = [0; 28];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&1486u16.to_be_bytes());
    header[8] = 64;
    header[9] = 17;
    header[12..16].copy_from_slice(&[192, 0, 2, 1]);
    header[16..20].copy_from_slice(&[198, 51, 100, (number % 32) as u8]);
    header[20..22].copy_from_slice(&(1000 + (number % 100) as u16).to_be_bytes());
    header
}

#[inline(never)]
fn one(link: &mut Link, key: &SipKey, mode: FlowMode, header: &[u8], packet: TestPacket) {
    let keys = dissect::plain(0x0800, header).unwrap_or_default();
    let hashes = keys.hashes(mode, key, &Known::default());
    let tin = link.scheduler.classes().tin(dissect::dscp(0x0800, header));
    let _ = link.enqueue(tin, hashes, packet);
    let _ = black_box(link.dequeue());
    let _ = black_box(link.dequeue());
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    let (preset, mode) = match arguments.next().as_deref() {
        Some("flowblind") => (Preset::Besteffort, FlowMode::Flowblind),
        Some("flows") => (Preset::Besteffort, FlowMode::Flows),
        _ => (Preset::Diffserv4, FlowMode::Triple),
    };
    let mut link = Link::new(Config {
        preset,
        flow_mode: mode,
        ..Config::default()
    });
    for number in 0..20_000 {
        link.now = link.now.after(3_000);
        let packet = TestPacket::new(0, number, 1500);
        one(
            &mut link,
            &SipKey::new([1, 2]),
            mode,
            &headers(number),
            packet,
        );
    }
}
