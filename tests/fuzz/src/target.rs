// SPDX-License-Identifier: GPL-2.0

//! The targets.

use crate::{
    cake::{
        ack_filter::{redundant, segment},
        config::{AckFilter, TinConfig},
        diffserv::Preset,
        dissect,
        hash::{FlowHashes, FlowMode},
        index::TinIndex,
        overhead::Cells,
        Config, Decision, Nanos, PacketQueue,
    },
    ledger::Ledger,
    net::{
        netlink::{Attribute, ExtAck},
        pkt_sched::TCA_OPTIONS,
    },
    qdisc,
    support::{Link, TestPacket, TestQueue},
};
use arbitrary::{Arbitrary, Unstructured};

/// A packet from its network header on, in front of it two bytes for its EtherType: what follows it
/// and where it is cut off change nothing of what was read.
pub fn headers(data: &[u8]) {
    let Some((protocol, bytes)) = data.split_first_chunk() else {
        return;
    };
    let protocol = u16::from_be_bytes(*protocol);
    assert!(dissect::dscp(protocol, bytes) < 64);
    let padded = [bytes, &[0xff; 64]].concat();
    let keys = dissect::plain(protocol, bytes);
    if keys.is_some() {
        assert_eq!(dissect::plain(protocol, &padded), keys);
    }
    let filtered = segment(bytes);
    for len in 0..bytes.len() {
        let cut = &bytes[..len];
        assert!(dissect::dscp(protocol, cut) < 64);
        let cut_keys = dissect::plain(protocol, cut);
        assert!(cut_keys.is_none() || cut_keys == keys);
        assert!(filtered.is_some() || segment(cut).is_none());
    }
    let version = bytes.first().map_or(0, |first| first >> 4);
    if let (Some(keys), Some(_)) = (keys, filtered) {
        // Both read the same packet, if both say that it is TCP.
        let is_tcp = keys.protocol == 6;
        assert!(is_tcp || version == 0 || keys.protocol == 17);
    }
}

/// Up to four packets in a queue: the filter never takes the newest, takes what is before it, and
/// takes aggressively wherever it takes conservatively.
pub fn acks(data: &[u8]) {
    let mut queue = TestQueue::new();
    let mut rest = data;
    let mut count = 0;
    while let Some(([len], tail)) = rest.split_first_chunk() {
        if count == 4 {
            break;
        }
        let (bytes, tail) = tail.split_at(tail.len().min(usize::from(*len)));
        let mut packet = TestPacket::new(1, count, bytes.len() as u32 + 14);
        packet.headers = bytes.to_vec();
        queue.push(packet);
        count += 1;
        rest = tail;
    }
    let found =
        [AckFilter::Conservative, AckFilter::Aggressive].map(|filter| redundant(&queue, filter));
    assert!(found[0].is_none() || found[1].is_some());
    for position in found.into_iter().flatten() {
        assert!(position as u64 + 1 < count, "the newest packet was taken");
        let taken = queue.iter().nth(position);
        let is_whole = taken.is_some_and(|packet| segment(&packet.headers).is_some());
        assert!(is_whole, "what was taken has no headers");
    }
}

/// Options of a request, as they are behind `TCA_OPTIONS`: what is accepted makes sense, works, and
/// reads back as it was set.
pub fn requests(data: &[u8]) {
    let mut message = Vec::with_capacity(data.len() + 4);
    message.extend((data.len().min(60_000) as u16 + 4).to_ne_bytes());
    message.extend((TCA_OPTIONS as u16).to_ne_bytes());
    message.extend(&data[..data.len().min(60_000)]);
    let Some((options, _)) = Attribute::first(&message) else {
        panic!("a whole attribute is not taken for one");
    };
    let mut tuned = Config {
        bandwidth: 250_000,
        preset: Preset::Diffserv4,
        ..Config::default()
    };
    tuned.tin_mut(TinIndex::new(3)).target_us = 10_000;
    for before in [Config::default(), tuned] {
        let mut extack = ExtAck::default();
        match qdisc::apply(before, options, &mut extack) {
            Err(error) => {
                assert!(
                    extack.0.is_some_and(|why| why.len() > 10),
                    "{error:?} unexplained"
                );
            }
            Ok(config) => {
                check_config(&config);
                let dump = qdisc::dump(&config).expect("any configuration fits");
                let (again, rest) = Attribute::first(&dump).expect("a dump is an attribute");
                assert!(rest.is_empty());
                let again = qdisc::apply(Config::default(), again, &mut ExtAck::default());
                assert_eq!(again, Ok(config), "a dump reads back as something else");
            }
        }
    }
}

fn check_config(config: &Config) {
    assert!(config.rtt_us > 0 && config.target_us > 0);
    let mut claimed = 0;
    for tin in &config.tins {
        assert!(tin.interval_us == 0 || tin.interval_us > tin.target_us);
        assert!(tin.burst.is_none_or(|bytes| bytes <= TinConfig::MAX_BURST));
        assert_eq!(claimed & tin.code_points.0, 0, "a code point of two tins");
        claimed |= tin.code_points.0;
    }
    let mut link = Link::new(*config);
    for number in 0..3 {
        let _ = link.send(TinIndex::new(number), TestPacket::new(number, 0, 1514));
    }
    let mut count = 0;
    while link.next().is_some() {
        count += 1;
    }
    assert_eq!(count + link.dropped.len(), 3);
}

/// What may happen to an instance.
#[derive(Arbitrary, Debug)]
enum Operation {
    Arrive {
        tin: u8,
        flow: u8,
        host: u8,
        len: u16,
        ecn: bool,
    },
    Leave {
        packets: u8,
    },
    Pass {
        us: u32,
    },
    Change {
        bandwidth: u32,
        preset: u8,
        mode: u8,
        cells: u8,
        overhead: i8,
        memory: u16,
        rtt_us: u32,
        ingress: bool,
        burst: u16,
    },
    Reset,
}

/// Operations on an instance against books that are kept of them.
pub fn operations(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let mut link = Link::new(Config::default());
    let mut ledger = Ledger::new(&link);
    let mut number = 0;
    while let (false, Ok(operation)) = (input.is_empty(), Operation::arbitrary(&mut input)) {
        number += 1;
        if let Err(failure) = operate(&mut link, &mut ledger, number, &operation) {
            panic!("{operation:?}: {failure}");
        }
    }
    ledger.audit_queues(&link).expect("queues agree");
    while let Some(packet) = link.next() {
        ledger.sent(&link, &packet).expect("what is left leaves");
        ledger.dropped(&mut link).expect("or is dropped");
    }
    ledger.dropped(&mut link).expect("or is dropped");
    ledger.audit(&mut link).expect("books agree");
    ledger.is_closed().expect("all that came has left");
}

fn operate(
    link: &mut Link,
    ledger: &mut Ledger,
    number: u64,
    operation: &Operation,
) -> Result<(), String> {
    match *operation {
        Operation::Arrive {
            tin,
            flow,
            host,
            len,
            ecn,
        } => {
            let tins = link.scheduler.config().preset.tin_count() as u8;
            let tin = TinIndex::new(u32::from(tin % tins));
            let flow = u32::from(flow);
            let packet = TestPacket {
                ecn_capable: ecn,
                // A flow keeps its tin.
                ..TestPacket::new(
                    flow | ((tin.at() as u32) << 8),
                    number,
                    u32::from(len % 1514) + 1,
                )
            };
            let hashes = FlowHashes {
                flow: flow * 8,
                src_host: u32::from(host),
                dst_host: u32::from(host) * 3,
            };
            ledger.arrived(tin, u32::from(host), &packet);
            let _ = link.enqueue(tin, hashes, packet);
            ledger.dropped(link)?;
            ledger.check_memory(link)?;
        }
        Operation::Leave { packets } => {
            for _ in 0..packets {
                let decision = link.dequeue();
                ledger.dropped(link)?;
                match decision {
                    Decision::Send(packet) => ledger.sent(link, &packet)?,
                    Decision::Wait(until) => {
                        ledger.waits(link, until)?;
                        link.now = until;
                    }
                    Decision::Empty => {
                        ledger.idles(link)?;
                        break;
                    }
                }
            }
        }
        // A link that is left alone while packets wait catches up: the kernel does not do that.
        Operation::Pass { us } if link.scheduler.qlen() == 0 => {
            link.now = link.now.after(u64::from(us) * 1000);
        }
        Operation::Pass { .. } => {}
        Operation::Change { .. } => {
            let before = link.scheduler.config().bandwidth;
            link.reconfigure(config_of(operation));
            ledger.reconfigured(link, before);
        }
        Operation::Reset => {
            let mut gone = Vec::new();
            link.scheduler.reset(&mut |packet| gone.push(packet));
            link.dropped.extend(
                gone.into_iter()
                    .map(|packet| (packet, crate::cake::packet::DropReason::Overlimit)),
            );
            ledger.dropped(link)?;
        }
    }
    assert!(link.now < Nanos(u64::MAX));
    ledger.check(link)?;
    ledger.audit(link)
}

fn config_of(operation: &Operation) -> Config {
    const PRESETS: [Preset; 5] = [
        Preset::Besteffort,
        Preset::Precedence,
        Preset::Diffserv3,
        Preset::Diffserv4,
        Preset::Diffserv8,
    ];
    const MODES: [FlowMode; 8] = [
        FlowMode::Flowblind,
        FlowMode::SrcHost,
        FlowMode::DstHost,
        FlowMode::Hosts,
        FlowMode::Flows,
        FlowMode::DualSrcHost,
        FlowMode::DualDstHost,
        FlowMode::Triple,
    ];
    const CELLS: [Cells; 3] = [Cells::None, Cells::Atm, Cells::Ptm];
    let mut config = Config::default();
    if let Operation::Change {
        bandwidth,
        preset,
        mode,
        cells,
        overhead,
        memory,
        rtt_us,
        ingress,
        burst,
    } = *operation
    {
        config.bandwidth = bandwidth.into();
        config.preset = PRESETS[usize::from(preset) % PRESETS.len()];
        config.flow_mode = MODES[usize::from(mode) % MODES.len()];
        config.framing.cells = CELLS[usize::from(cells) % CELLS.len()];
        config.framing.overhead = overhead.into();
        config.memory = memory.into();
        config.rtt_us = rtt_us.max(1);
        config.ingress = ingress;
        config.tin_mut(TinIndex::new(2)).burst = Some(burst.into());
    }
    config
}
