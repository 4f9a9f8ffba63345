// SPDX-License-Identifier: GPL-2.0

//! The ACK filter: what goes, what stays.

mod support;

use cake::cake::{
    ack_filter::{redundant, segment},
    config::AckFilter,
    PacketQueue,
};
use proptest::prelude::*;
use support::{TestPacket, TestQueue};

const ACK: u16 = 0x10;
const PSH: u16 = 0x08;
const FIN: u16 = 0x01;
const SYN: u16 = 0x02;
const ECE: u16 = 0x40;
const CWR: u16 = 0x80;

/// What a segment is made from; [`Ack::new`] makes a plain acknowledgement.
#[derive(Clone)]
struct Ack {
    number: u32,
    flags: u16,
    options: Vec<u8>,
    data: usize,
    port: u16,
    /// Bytes of the header as the header has it, if that is a lie.
    header_len: Option<usize>,
}

impl Ack {
    fn new(number: u32) -> Self {
        Self {
            number,
            flags: ACK,
            options: Vec::new(),
            data: 0,
            port: 40000,
            header_len: None,
        }
    }

    fn flags(mut self, flags: u16) -> Self {
        self.flags = flags;
        self
    }

    fn option(mut self, kind: u8, content: &[u8]) -> Self {
        self.options.extend([kind, content.len() as u8 + 2]);
        self.options.extend(content);
        self
    }

    fn timestamp(self, value: u32, echo: u32) -> Self {
        let content = [value.to_be_bytes(), echo.to_be_bytes()].concat();
        self.option(8, &content)
    }

    fn sack(self, blocks: &[(u32, u32)]) -> Self {
        let content: Vec<u8> = blocks
            .iter()
            .flat_map(|(start, end)| [start.to_be_bytes(), end.to_be_bytes()].concat())
            .collect();
        self.option(5, &content)
    }

    fn tcp(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 1);
        let header_len = self.header_len.unwrap_or(20 + options.len());
        let mut bytes = Vec::new();
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(443u16.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(((((header_len / 4) as u16) << 12) | self.flags).to_be_bytes());
        bytes.extend([0; 6]);
        bytes.extend(options);
        bytes.extend(vec![0; self.data]);
        bytes
    }

    fn v4(&self) -> Vec<u8> {
        let tcp = self.tcp();
        let mut bytes = vec![0x45, 0];
        bytes.extend((20 + tcp.len() as u16).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1]);
        bytes.extend(tcp);
        bytes
    }

    fn v6(&self) -> Vec<u8> {
        let tcp = self.tcp();
        let mut bytes = vec![0x60, 0, 0, 0];
        bytes.extend((tcp.len() as u16).to_be_bytes());
        bytes.extend([6, 64]);
        bytes.extend([0x20; 16]);
        bytes.extend([0x21; 16]);
        bytes.extend(tcp);
        bytes
    }

    /// IPv6 in IPv4, whose header has an option.
    fn six_in_four(&self) -> Vec<u8> {
        let inner = self.v6();
        let mut bytes = vec![0x46, 0];
        bytes.extend((24 + inner.len() as u16).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 41, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1]);
        bytes.extend([1; 4]);
        bytes.extend(inner);
        bytes
    }
}

/// What the filter takes out of a queue of these headers.
fn filtered(filter: AckFilter, headers: impl IntoIterator<Item = Vec<u8>>) -> Option<usize> {
    let mut queue = TestQueue::new();
    for (number, headers) in headers.into_iter().enumerate() {
        let mut packet = TestPacket::new(1, number as u64, headers.len() as u32 + 14);
        packet.headers = headers;
        queue.push(packet);
    }
    redundant(&queue, filter)
}

fn aggressive<const N: usize>(acks: [Ack; N]) -> Option<usize> {
    filtered(AckFilter::Aggressive, acks.iter().map(Ack::v4))
}

fn conservative<const N: usize>(acks: [Ack; N]) -> Option<usize> {
    filtered(AckFilter::Conservative, acks.iter().map(Ack::v4))
}

#[test]
fn aggressive_filter_leaves_the_newest_of_two() {
    assert_eq!(aggressive([Ack::new(1), Ack::new(2)]), Some(0));
}

#[test]
fn conservative_filter_leaves_the_newest_two_of_three() {
    assert_eq!(conservative([Ack::new(1), Ack::new(2)]), None);
    assert_eq!(
        conservative([Ack::new(1), Ack::new(2), Ack::new(3)]),
        Some(0)
    );
}

#[test]
fn filter_looks_into_ipv6_and_6in4() {
    let acks = [Ack::new(1), Ack::new(2)];
    let wrapped = [Ack::v6, Ack::six_in_four];
    for wrap in wrapped {
        let headers = acks.iter().map(wrap);
        assert_eq!(filtered(AckFilter::Aggressive, headers), Some(0));
    }
}

#[test]
fn other_flows_are_none_of_its_business() {
    let mut other = Ack::new(1);
    other.port = 40001;
    assert_eq!(aggressive([other.clone(), Ack::new(2)]), None);
    assert_eq!(
        conservative([Ack::new(1), other, Ack::new(2), Ack::new(3)]),
        Some(0)
    );
    let mixed = [Ack::new(1).v4(), Ack::new(2).v6()];
    assert_eq!(filtered(AckFilter::Aggressive, mixed), None);
}

#[test]
fn duplicate_and_later_acknowledgements_stay() {
    assert_eq!(aggressive([Ack::new(2), Ack::new(2)]), None);
    assert_eq!(aggressive([Ack::new(3), Ack::new(2)]), None);
    // Sequence numbers wrap.
    assert_eq!(aggressive([Ack::new(u32::MAX), Ack::new(5)]), Some(0));
}

#[test]
fn data_and_other_flags_stay() {
    let mut data = Ack::new(1);
    data.data = 10;
    assert_eq!(aggressive([data, Ack::new(2)]), None);
    for flags in [
        ACK | PSH,
        ACK | FIN,
        ACK | SYN,
        ACK | 0x20,
        ACK | 0x100,
        ACK | 0x800,
        0,
    ] {
        assert_eq!(aggressive([Ack::new(1).flags(flags), Ack::new(2)]), None);
    }
    // Data may make an acknowledgement redundant; the start of a connection may not.
    let mut data = Ack::new(2).flags(ACK | PSH);
    data.data = 10;
    assert_eq!(aggressive([Ack::new(1), data]), Some(0));
    assert_eq!(
        aggressive([Ack::new(1), Ack::new(2).flags(ACK | SYN)]),
        None
    );
}

#[test]
fn changes_of_ecn_flags_are_not_lost() {
    assert_eq!(
        aggressive([Ack::new(1).flags(ACK | ECE), Ack::new(2)]),
        None
    );
    assert_eq!(
        aggressive([Ack::new(1), Ack::new(2).flags(ACK | CWR)]),
        None
    );
    let echoed = Ack::new(1).flags(ACK | ECE);
    assert_eq!(aggressive([echoed, Ack::new(2).flags(ACK | ECE)]), Some(0));
    let acks = [
        Ack::new(1),
        Ack::new(2).flags(ACK | ECE),
        Ack::new(3).flags(ACK | ECE),
        Ack::new(4).flags(ACK | ECE),
    ];
    assert_eq!(conservative(acks), Some(1));
}

#[test]
fn timestamps_must_not_run_backwards() {
    let newest = || Ack::new(2).timestamp(100, 50);
    assert_eq!(
        aggressive([Ack::new(1).timestamp(100, 50), newest()]),
        Some(0)
    );
    assert_eq!(aggressive([Ack::new(1).timestamp(101, 50), newest()]), None);
    assert_eq!(aggressive([Ack::new(1).timestamp(100, 51), newest()]), None);
    assert_eq!(aggressive([Ack::new(1).option(8, &[0; 4]), newest()]), None);
}

#[test]
fn unknown_options_stay_and_md5_may_go() {
    assert_eq!(
        aggressive([Ack::new(1).option(254, &[0; 2]), Ack::new(2)]),
        None
    );
    assert_eq!(
        aggressive([Ack::new(1).option(2, &[5, 0xb4]), Ack::new(2)]),
        None
    );
    assert_eq!(
        aggressive([Ack::new(1).option(19, &[0; 16]), Ack::new(2)]),
        Some(0)
    );
}

#[test]
fn selective_acknowledgements_stay_unless_covered() {
    let first = || Ack::new(10).sack(&[(20, 30)]);
    assert_eq!(aggressive([first(), Ack::new(10)]), None);
    assert_eq!(aggressive([first(), Ack::new(10).sack(&[(20, 30)])]), None);
    assert_eq!(
        aggressive([first(), Ack::new(10).sack(&[(20, 40)])]),
        Some(0)
    );
    assert_eq!(aggressive([first(), Ack::new(10).sack(&[(25, 90)])]), None);
    assert_eq!(
        aggressive([first(), Ack::new(15).sack(&[(20, 30)])]),
        Some(0)
    );
    assert_eq!(
        aggressive([first(), Ack::new(10).sack(&[(60, 70), (20, 30)])]),
        Some(0)
    );
    assert_eq!(
        aggressive([Ack::new(10), Ack::new(10).sack(&[(20, 30)])]),
        Some(0)
    );
    // A duplicate is reported once (RFC 2883).
    let duplicate = Ack::new(10).sack(&[(5, 8)]);
    assert_eq!(aggressive([duplicate, Ack::new(12).sack(&[(5, 8)])]), None);
    // A range of odd length is none.
    assert_eq!(
        aggressive([Ack::new(1).option(5, &[0; 7]), Ack::new(2)]),
        None
    );
}

#[test]
fn headers_that_lie_are_left_alone() {
    for header_len in [0, 4, 16, 24, 60] {
        let mut liar = Ack::new(1);
        liar.header_len = Some(header_len);
        assert_eq!(aggressive([liar.clone(), Ack::new(2)]), None);
        assert_eq!(aggressive([Ack::new(1), liar]), None);
    }
    // What follows a malformed option is not looked at.
    for bad in [
        vec![5u8],
        vec![8, 0],
        vec![8, 1],
        vec![8, 200],
        vec![254, 0],
        vec![5, 0],
        vec![19, 0],
        vec![19, 1],
    ] {
        for liar in 0..2 {
            let mut acks = [Ack::new(1), Ack::new(2)];
            acks[liar].options = bad.clone();
            let _ = aggressive(acks);
        }
    }
}

proptest! {
    /// Bytes of any kind are read without harm.
    #[test]
    fn any_bytes_can_be_filtered(
        version in prop::sample::select(vec![0x45u8, 0x46, 0x4f, 0x40, 0x60]),
        protocol in prop::sample::select(vec![6u8, 41, 17]),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..160), 1..5),
        aggressive in any::<bool>(),
    ) {
        let filter = if aggressive { AckFilter::Aggressive } else { AckFilter::Conservative };
        let count = packets.len();
        let found = filtered(filter, packets.into_iter().map(|mut bytes| {
            for (place, value) in [(0, version), (9, protocol), (6, protocol)] {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = value;
                }
            }
            bytes
        }));
        prop_assert!(found.is_none_or(|position| position + 1 < count));
    }

    /// A segment that is cut off anywhere within its headers is none.
    #[test]
    fn truncated_headers_are_no_segment(keep in 0usize..52) {
        let whole = Ack::new(7).timestamp(1, 2).v4();
        prop_assert!(segment(&whole).is_some());
        prop_assert!(segment(&whole[..keep.min(whole.len() - 1)]).is_none());
    }
}
