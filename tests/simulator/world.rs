// SPDX-License-Identifier: GPL-2.0

//! Discrete events over one link: what happens when, and the books that are kept of it.

use crate::{
    ledger::Ledger,
    sources::{Io, Outgoing, Source},
    support::{Link, TestPacket},
};
use cake::cake::{hash::FlowHashes, Config, Decision, Nanos};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
/// When the link's clock starts.
const START: Nanos = Nanos(SECOND);

/// What all worlds of this process have played.
static SECONDS: AtomicU64 = AtomicU64::new(0);
static PACKETS: AtomicU64 = AtomicU64::new(0);

/// How many of the latest events a failure shows.
const TRACE: usize = 8;
/// Events between full audits; what is cheap is checked at each.
const AUDIT: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The link may be free; outdated unless it is the latest of its kind.
    Link { number: u64 },
    /// A source's timer.
    Timer { source: usize, token: u64 },
    /// The sender learns that a packet arrived.
    Acked {
        source: usize,
        number: u64,
        marked: bool,
    },
    /// The owner changes the configuration.
    Change,
}

/// Draws a configuration.
pub type Draw = fn(&mut ChaCha8Rng) -> Config;

/// What a source's packets met with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub bytes: u64,
    pub worst: u64,
}

/// A number whose low bits choose places in tables as well as a hash would.
fn spread(number: u32) -> u32 {
    (u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// A link, its owner, and those who send through it.
pub struct World {
    pub link: Link,
    pub ledger: Ledger,
    /// By source.
    pub outcomes: Vec<Outcome>,
    /// Bytes per second of the device behind the shaper; 0 is at once.
    device_rate: u64,
    device_free: Nanos,
    sources: Vec<Box<dyn Source>>,
    /// Configurations that the owner changes to, and how long each is kept at most.
    changes: Option<(Draw, u64)>,
    agenda: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    scheduled: u64,
    link_event: u64,
    random: ChaCha8Rng,
    seed: u64,
    events: u64,
    trace: VecDeque<(Nanos, Event)>,
}

impl World {
    pub fn new(config: Config, seed: u64) -> Self {
        let link = Link::new(config);
        Self {
            ledger: Ledger::new(&link),
            link,
            outcomes: Vec::new(),
            device_rate: 0,
            device_free: Nanos(0),
            sources: Vec::new(),
            changes: None,
            agenda: BinaryHeap::new(),
            scheduled: 0,
            link_event: 0,
            random: ChaCha8Rng::seed_from_u64(seed),
            seed,
            events: 0,
            trace: VecDeque::new(),
        }
    }

    /// Puts a device of `rate` bytes per second behind the shaper.
    pub fn behind(mut self, rate: u64) -> Self {
        self.device_rate = rate;
        self
    }

    /// Adds a source, and returns its number.
    pub fn add(&mut self, source: impl Source + 'static) -> usize {
        self.sources.push(Box::new(source));
        self.outcomes.push(Outcome::default());
        self.sources.len() - 1
    }

    /// Has the owner change the configuration after up to `every` nanoseconds, over and over.
    pub fn change_at_random(&mut self, config: Draw, every: u64) {
        self.changes = Some((config, every));
        self.schedule(self.link.now, Event::Change);
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.scheduled += 1;
        self.agenda.push(Reverse((at, self.scheduled, event)));
    }

    /// Plays `duration` nanoseconds.
    pub fn play(&mut self, duration: u64) {
        let end = self.link.now.after(duration);
        if self.events == 0 {
            for source in 0..self.sources.len() {
                self.ask(source, |source, io| source.start(io));
            }
        }
        while let Some(Reverse((at, _, event))) = self.agenda.peek().copied() {
            if at > end {
                break;
            }
            self.agenda.pop();
            self.link.now = at;
            self.happen(event);
        }
        self.link.now = end;
        self.audit();
    }

    fn happen(&mut self, event: Event) {
        if event
            == (Event::Link {
                number: self.link_event,
            })
        {
            self.remember(event);
            self.serve();
        }
        match event {
            Event::Link { .. } => {}
            Event::Timer { source, token } => {
                self.remember(event);
                self.ask(source, |source, io| source.timer(io, token));
            }
            Event::Acked {
                source,
                number,
                marked,
            } => {
                self.remember(event);
                self.ask(source, |source, io| source.acked(io, number, marked));
            }
            Event::Change => {
                self.remember(event);
                self.change();
            }
        }
        self.events += 1;
        let checked = self.ledger.check(&self.link);
        self.expect(checked);
        if self.events % AUDIT == 0 {
            self.audit();
        }
    }

    fn remember(&mut self, event: Event) {
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        self.trace.push_back((self.link.now, event));
    }

    fn change(&mut self) {
        let Some((config, every)) = self.changes else {
            return;
        };
        let config = config(&mut self.random);
        let before = self.link.scheduler.config().bandwidth;
        self.link.reconfigure(config);
        self.ledger.reconfigured(&self.link, before);
        let next = rand::Rng::random_range(&mut self.random, 1..=every);
        self.schedule(self.link.now.after(next), Event::Change);
        self.serve();
    }

    /// Lets a source act.
    fn ask(&mut self, source: usize, act: impl FnOnce(&mut dyn Source, &mut Io<'_>)) {
        let mut io = Io {
            now: self.link.now,
            random: &mut self.random,
            packets: Vec::new(),
            timers: Vec::new(),
        };
        act(self.sources[source].as_mut(), &mut io);
        let Io {
            packets, timers, ..
        } = io;
        for (at, token) in timers {
            self.schedule(at, Event::Timer { source, token });
        }
        for packet in packets {
            self.arrive(source, packet);
        }
        self.serve();
    }

    fn arrive(&mut self, source: usize, outgoing: Outgoing) {
        let flow = ((source as u32) << 16) | outgoing.flow;
        let hashes = FlowHashes {
            flow: spread(flow),
            src_host: spread(outgoing.host),
            dst_host: spread(!flow),
        };
        let packet = TestPacket {
            ecn_capable: outgoing.ecn,
            ..TestPacket::new(flow, outgoing.number, outgoing.len)
        };
        self.ledger.arrived(outgoing.tin, outgoing.host, &packet);
        let _ = self.link.enqueue(outgoing.tin, hashes, packet);
        let booked = self.ledger.dropped(&mut self.link);
        self.expect(booked);
        let fits = self.ledger.check_memory(&self.link);
        self.expect(fits);
    }

    /// Sends what the link lets go, and sets the time to ask again.
    fn serve(&mut self) {
        loop {
            if self.device_free > self.link.now {
                return self.serve_at(self.device_free);
            }
            let decision = self.link.dequeue();
            let booked = self.ledger.dropped(&mut self.link);
            self.expect(booked);
            let booked = match &decision {
                Decision::Send(packet) => self.ledger.sent(&self.link, packet),
                Decision::Wait(until) => self.ledger.waits(&self.link, *until),
                Decision::Empty => self.ledger.idles(&self.link),
            };
            self.expect(booked);
            match decision {
                Decision::Send(packet) => self.deliver(packet),
                Decision::Wait(until) => return self.serve_at(until),
                Decision::Empty => return,
            }
        }
    }

    fn serve_at(&mut self, at: Nanos) {
        self.link_event += 1;
        let number = self.link_event;
        self.schedule(at, Event::Link { number });
    }

    fn deliver(&mut self, packet: TestPacket) {
        let source = (packet.flow >> 16) as usize;
        let outcome = &mut self.outcomes[source];
        outcome.bytes += u64::from(packet.len);
        outcome.worst = outcome.worst.max(self.link.now.since(packet.tag.enqueued));
        let scaled = u64::from(packet.len) * SECOND;
        if let Some(duration) = scaled.checked_div(self.device_rate) {
            self.device_free = self.link.now.after(duration);
        }
        if let Some(rtt) = self.sources[source].rtt() {
            let acked = Event::Acked {
                source,
                number: packet.number,
                marked: packet.marked,
            };
            self.schedule(self.link.now.after(rtt), acked);
        }
    }

    fn audit(&mut self) {
        let audited = self.ledger.audit(&mut self.link);
        self.expect(audited);
        self.expect(self.ledger.audit_queues(&self.link));
    }

    /// Lets all that is queued leave, and closes the books.
    pub fn drain(&mut self) {
        self.sources.clear();
        self.agenda.clear();
        while let Some(packet) = self.link.next() {
            let booked = self.ledger.sent(&self.link, &packet);
            self.expect(booked);
            let booked = self.ledger.dropped(&mut self.link);
            self.expect(booked);
        }
        let booked = self.ledger.dropped(&mut self.link);
        self.expect(booked);
        self.audit();
        let closed = self.ledger.is_closed();
        self.expect(closed);
        let seconds = self.link.now.since(START) / SECOND;
        let seconds = SECONDS.fetch_add(seconds, Relaxed) + seconds;
        let packets = self.ledger.packets_sent + self.ledger.packets_dropped;
        let packets = PACKETS.fetch_add(packets, Relaxed) + packets;
        println!("simulated: {packets} packets in {seconds} s of line time");
    }

    /// Fails with the latest events and the seed unless `claim` holds.
    #[track_caller]
    pub fn expect(&self, claim: Result<(), String>) {
        if let Err(failure) = claim {
            panic!("{failure}\n{self}");
        }
    }

    /// Fails likewise unless source `source` never waited for longer than `most`.
    #[track_caller]
    pub fn expect_delay(&self, source: usize, most: u64) {
        let worst = self.outcomes[source].worst;
        self.expect(if worst <= most {
            Ok(())
        } else {
            Err(format!("source {source} waited {worst} ns, at most {most}"))
        });
    }

    /// Fails likewise unless source `source` got `share` of all bytes, give or take `tolerance`.
    #[track_caller]
    pub fn expect_share(&self, source: usize, share: f64, tolerance: f64) {
        let total: u64 = self.outcomes.iter().map(|outcome| outcome.bytes).sum();
        let got = self.outcomes[source].bytes as f64 / total as f64;
        self.expect(if (got - share).abs() <= tolerance {
            Ok(())
        } else {
            Err(format!("source {source} got {got:.4}, not {share:.4}"))
        });
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "after {} events, the latest:", self.events)?;
        for (at, event) in &self.trace {
            writeln!(f, "  {:.6} s  {event:?}", at.0 as f64 / SECOND as f64)?;
        }
        write!(f, "again with SIMULATOR_SEED={}", self.seed)
    }
}
