// SPDX-License-Identifier: GPL-2.0

//! The books: what came in, what went out, and what must hold between them.

use crate::support::{Link, TestPacket, MTU};
use cake::cake::{
    config::Threshold,
    index::{FlowIndex, TinIndex, QUEUES},
    packet::Packet,
    Nanos,
};
use std::collections::HashMap;

/// Packets and bytes that came in and have not left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    arrived: u64,
    packets: i64,
    bytes: i64,
}

impl Account {
    fn enter(&mut self, len: u32) {
        self.arrived += 1;
        self.packets += 1;
        self.bytes += i64::from(len);
    }

    fn leave(&mut self, len: u32) {
        self.packets -= 1;
        self.bytes -= i64::from(len);
    }
}

pub struct Ledger {
    total: Account,
    /// Tins as packets were sorted into them; only kept as long as no change moves packets.
    tins: Option<[Account; 8]>,
    hosts: HashMap<u32, Account>,
    flows: HashMap<u32, Account>,
    /// Whose each queued packet is, by flow and number.
    owners: HashMap<(u32, u64), (TinIndex, u32)>,
    /// Of flows that have queues of their own.
    last_sent: Option<HashMap<u32, u64>>,
    memory: u64,
    /// When a link of the configured rate is done with what was sent, and no packet may go before.
    free: Nanos,
    /// The same for how long packets may be held back: a change gives nobody time back.
    busy: Nanos,
    pub packets_sent: u64,
    pub packets_dropped: u64,
}

macro_rules! ensure {
    ($claim:expr, $($message:tt)*) => {
        if !$claim {
            return Err(format!($($message)*));
        }
    };
}

/// What the shaper makes of a bandwidth in bytes per second: it does not go below 64, and 0 is
/// unlimited.
fn shaped(bandwidth: u64) -> u64 {
    match bandwidth {
        0 => 0,
        rate => rate.max(Threshold::MIN_RATE),
    }
}

fn rate_of(link: &Link) -> u64 {
    shaped(link.scheduler.config().bandwidth)
}

impl Ledger {
    pub fn new(link: &Link) -> Self {
        Self {
            total: Account::default(),
            tins: Some(Default::default()),
            hosts: HashMap::new(),
            flows: HashMap::new(),
            owners: HashMap::new(),
            last_sent: Some(HashMap::new()),
            memory: 0,
            free: link.now,
            busy: link.now,
            packets_sent: 0,
            packets_dropped: 0,
        }
    }

    /// There are more flows than queues: one that loses its queue to another may get a free one
    /// while its packets wait in the first.
    pub fn expect_collisions(&mut self) {
        self.last_sent = None;
    }

    pub fn arrived(&mut self, tin: TinIndex, host: u32, packet: &TestPacket) {
        self.total.enter(packet.len);
        if let Some(tins) = &mut self.tins {
            tins[tin.at()].enter(packet.len);
        }
        self.hosts.entry(host).or_default().enter(packet.len);
        self.flows.entry(packet.flow).or_default().enter(packet.len);
        self.owners
            .insert((packet.flow, packet.number), (tin, host));
        self.memory += u64::from(packet.truesize());
    }

    fn left(&mut self, packet: &TestPacket) -> Result<(), String> {
        let owner = self.owners.remove(&(packet.flow, packet.number));
        let Some((tin, host)) = owner else {
            return Err(format!("{packet:?} left without being there"));
        };
        self.total.leave(packet.len);
        if let Some(tins) = &mut self.tins {
            tins[tin.at()].leave(packet.len);
        }
        self.hosts.entry(host).or_default().leave(packet.len);
        self.flows.entry(packet.flow).or_default().leave(packet.len);
        self.memory -= u64::from(packet.truesize());
        Ok(())
    }

    /// Books what the link has dropped.
    pub fn dropped(&mut self, link: &mut Link) -> Result<(), String> {
        for (packet, _) in std::mem::take(&mut link.dropped) {
            self.packets_dropped += 1;
            self.left(&packet)?;
        }
        Ok(())
    }

    /// Books a packet that was sent: in its flow's order, and not before the rate allows it.
    pub fn sent(&mut self, link: &Link, packet: &TestPacket) -> Result<(), String> {
        self.packets_sent += 1;
        self.left(packet)?;
        if let Some(last_sent) = &mut self.last_sent {
            let before = last_sent.insert(packet.flow, packet.number);
            ensure!(
                before.is_none_or(|before| before < packet.number),
                "flow {} reordered: {} after {before:?}",
                packet.flow,
                packet.number
            );
        }
        let rate = rate_of(link);
        if rate != 0 && !link.scheduler.config().autorate_ingress {
            // A pace is rounded down by less than one part in 2^33.
            ensure!(
                self.free.0 <= link.now.0 + 2,
                "sent {} ns before the rate allows it",
                self.free.since(link.now)
            );
            let duration = u128::from(packet.tag.adjusted_len) * 1_000_000_000 / u128::from(rate);
            self.free = self.free.max(link.now).after(duration as u64);
            // Rounding must not add up.
            self.free = Nanos(self.free.0.saturating_sub(1 + (duration >> 33) as u64));
            self.busy = self.busy.max(link.now).after(duration as u64);
        }
        Ok(())
    }

    /// The link waits although packets are queued: only as long as it is busy.
    pub fn waits(&self, link: &Link, until: Nanos) -> Result<(), String> {
        let config = link.scheduler.config();
        ensure!(until > link.now, "waits for the past");
        ensure!(config.bandwidth != 0, "waits without a rate");
        ensure!(
            config.autorate_ingress || until <= self.busy,
            "idle for {} ns too long",
            until.since(self.busy)
        );
        Ok(())
    }

    /// The link has nothing to do.
    pub fn idles(&self, link: &Link) -> Result<(), String> {
        ensure!(
            link.scheduler.qlen() == 0,
            "idle with {} packets queued",
            link.scheduler.qlen()
        );
        Ok(())
    }

    /// What was sent at `before` bytes per second says nothing about a faster rate, and packets may
    /// have moved.
    pub fn reconfigured(&mut self, link: &Link, before: u64) {
        self.free = link.now;
        let rate = rate_of(link);
        if rate > shaped(before) {
            let full_packet = u64::from(MTU) * 1_000_000_000 / rate;
            self.busy = self.busy.min(link.now.after(full_packet));
        }
        if link.scheduler.config().ingress {
            // What is dropped is charged, too, and stays so.
            self.busy = Nanos(u64::MAX);
        }
        self.tins = None;
        self.last_sent = None;
    }

    /// The memory limit holds as soon as a packet is in.
    pub fn check_memory(&self, link: &Link) -> Result<(), String> {
        let limit = u64::from(link.scheduler.stats().memory_limit);
        ensure!(
            self.memory <= limit,
            "{} bytes of memory used, at most {limit}",
            self.memory
        );
        Ok(())
    }

    /// What must hold after each event.
    pub fn check(&self, link: &Link) -> Result<(), String> {
        let (counted, kept) = (link.scheduler.qlen(), self.total.packets as u32);
        ensure!(counted == kept, "qlen {counted}, not {kept}");
        Ok(())
    }

    /// What must hold at all times, and takes some time to check.
    pub fn audit(&self, link: &mut Link) -> Result<(), String> {
        self.check(link)?;
        let (counted, kept) = (link.backlog(), self.total.bytes as u32);
        ensure!(counted == kept, "backlog {counted}, not {kept}");
        let now = link.now;
        let preset = link.scheduler.config().preset;
        for display in 0..preset.tin_count() as u32 {
            let (Some(at), Some(stats)) = (
                preset.tin_at(display),
                link.scheduler.tin_stats(display, now),
            ) else {
                return Err(format!("no tin {display}"));
            };
            if let Some(tins) = &self.tins {
                let kept = tins[at.at()];
                ensure!(
                    (stats.sent_packets, i64::from(stats.backlog_bytes))
                        == (kept.arrived as u32, kept.bytes),
                    "tin {at:?}: {stats:?}, not {kept:?}"
                );
            }
            let waiting = self.owners.values().filter(|(tin, _)| *tin == at).count();
            if self.tins.is_some() && waiting > 0 {
                ensure!(
                    stats.sparse_flows + stats.bulk_flows > 0,
                    "tin {at:?}: {waiting} packets and no flow"
                );
            }
        }
        for (name, accounts) in [("host", &self.hosts), ("flow", &self.flows)] {
            for (number, account) in accounts {
                ensure!(
                    account.packets >= 0
                        && account.bytes >= account.packets
                        && account.bytes <= account.packets * i64::from(MTU),
                    "{name} {number}: {account:?}"
                );
            }
        }
        Ok(())
    }

    /// What queues say of themselves adds up to what is queued.
    pub fn audit_queues(&self, link: &Link) -> Result<(), String> {
        let preset = link.scheduler.config().preset;
        let (mut packets, mut bytes) = (0, 0);
        for display in 0..preset.tin_count() as u32 {
            for queue in (0..QUEUES as u32).map(FlowIndex::new) {
                if let Some(stats) = link.scheduler.flow_stats(display, queue, link.now) {
                    packets += i64::from(stats.qlen);
                    bytes += i64::from(stats.backlog);
                }
            }
        }
        ensure!(
            (packets, bytes) == (self.total.packets, self.total.bytes),
            "queues hold {packets} packets and {bytes} bytes, not {:?}",
            self.total
        );
        Ok(())
    }

    /// All that came has left.
    pub fn is_closed(&self) -> Result<(), String> {
        ensure!(
            (self.total.packets, self.total.bytes, self.memory) == (0, 0, 0),
            "{:?} left over",
            self.total
        );
        for (name, accounts) in [("host", &self.hosts), ("flow", &self.flows)] {
            for (number, account) in accounts {
                ensure!(
                    (account.packets, account.bytes) == (0, 0),
                    "{name} {number}: {account:?} left over"
                );
            }
        }
        Ok(())
    }
}
