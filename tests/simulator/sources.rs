// SPDX-License-Identifier: GPL-2.0

//! Those who send: models of the traffic of a home.

use crate::world::{MS, SECOND};
use cake::cake::{index::TinIndex, Nanos};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// A packet on its way to the link.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Among the source's flows.
    pub flow: u32,
    pub host: u32,
    pub tin: TinIndex,
    /// Grows within a flow.
    pub number: u64,
    pub len: u32,
    pub ecn: bool,
}

/// What a source may do when it is its turn.
pub struct Io<'a> {
    pub now: Nanos,
    pub random: &'a mut ChaCha8Rng,
    pub packets: Vec<Outgoing>,
    pub timers: Vec<(Nanos, u64)>,
}

impl Io<'_> {
    /// Asks for a call of [`Source::timer`] after `ns`.
    fn after(&mut self, ns: u64, token: u64) {
        self.timers.push((self.now.after(ns), token));
    }

    /// A time that is exponentially distributed around `mean`.
    fn exponential(&mut self, mean: u64) -> u64 {
        let uniform: f64 = self.random.random_range(1e-9..1.0);
        (-uniform.ln() * mean as f64) as u64
    }
}

pub trait Source {
    fn start(&mut self, io: &mut Io<'_>);
    fn timer(&mut self, io: &mut Io<'_>, token: u64);

    /// A packet's arrival became known, and whether it came marked.
    fn acked(&mut self, _io: &mut Io<'_>, _number: u64, _marked: bool) {}

    /// How long after a packet's departure its sender knows of its arrival, if it ever does.
    fn rtt(&self) -> Option<u64> {
        None
    }
}

/// How a TCP sender answers to congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Response {
    /// RFC 5681: half the window, a packet more each round trip.
    Reno,
    /// RFC 9438.
    Cubic,
}

/// A greedy TCP upload: its window, its losses and its response to them.
pub struct Tcp {
    pub response: Response,
    pub host: u32,
    pub tin: TinIndex,
    pub rtt: u64,
    pub ecn: bool,
    window: f64,
    slow_start_until: f64,
    next: u64,
    /// The lowest number of which nothing is known yet.
    oldest: u64,
    /// Congestion signals of packets below this one were answered.
    answered: u64,
    /// CUBIC: the window at the last reduction, and when that was.
    largest: f64,
    reduced: Nanos,
    progress: u64,
}

impl Tcp {
    const LEN: u32 = 1514;
    const RETRANSMISSION_TIMEOUT: u64 = SECOND;

    pub fn new(response: Response, host: u32, rtt: u64) -> Self {
        Self {
            response,
            host,
            tin: TinIndex::FIRST,
            rtt,
            ecn: false,
            window: 10.0,
            slow_start_until: f64::INFINITY,
            next: 0,
            oldest: 0,
            answered: 0,
            largest: 0.0,
            reduced: Nanos(0),
            progress: 0,
        }
    }

    fn fill(&mut self, io: &mut Io<'_>) {
        while ((self.next - self.oldest) as f64) < self.window {
            io.packets.push(Outgoing {
                flow: 0,
                host: self.host,
                tin: self.tin,
                number: self.next,
                len: Self::LEN,
                ecn: self.ecn,
            });
            self.next += 1;
        }
    }

    fn reduce(&mut self, now: Nanos) {
        let factor = match self.response {
            Response::Reno => 0.5,
            Response::Cubic => 0.7,
        };
        self.largest = self.window;
        self.reduced = now;
        self.window = (self.window * factor).max(2.0);
        self.slow_start_until = self.window;
        self.answered = self.next;
    }

    fn grow(&mut self, now: Nanos) {
        if self.window < self.slow_start_until {
            self.window += 1.0;
            return;
        }
        let reno = 1.0 / self.window;
        self.window += match self.response {
            Response::Reno => reno,
            Response::Cubic => {
                let elapsed = now.since(self.reduced) as f64 / SECOND as f64;
                let plateau = (self.largest * 0.3 / 0.4).cbrt();
                let wanted = 0.4 * (elapsed - plateau).powi(3) + self.largest;
                ((wanted - self.window) / self.window).clamp(reno / 2.0, 0.5)
            }
        };
    }
}

impl Source for Tcp {
    fn start(&mut self, io: &mut Io<'_>) {
        // Not all at the same instant.
        let delay = io.random.random_range(0..self.rtt.max(1));
        io.after(delay, 0);
    }

    fn timer(&mut self, io: &mut Io<'_>, _token: u64) {
        if self.progress == self.oldest && self.next != self.oldest {
            self.oldest = self.next;
            self.window = 2.0;
            self.answered = self.next;
        }
        self.progress = self.oldest;
        self.fill(io);
        io.after(Self::RETRANSMISSION_TIMEOUT, 0);
    }

    fn acked(&mut self, io: &mut Io<'_>, number: u64, marked: bool) {
        if number < self.oldest {
            return;
        }
        // Packets of a flow arrive in order: what was left out is lost.
        let lost = number > self.oldest;
        self.oldest = number + 1;
        if (lost || marked) && number >= self.answered {
            self.reduce(io.now);
        } else {
            self.grow(io.now);
        }
        self.fill(io);
    }

    fn rtt(&self) -> Option<u64> {
        Some(self.rtt)
    }
}

/// A packet every so often: a game or a voice call, and with a small gap a flood.
pub struct Steady {
    pub host: u32,
    pub tin: TinIndex,
    pub len: u32,
    pub gap: u64,
    pub jitter: u64,
    number: u64,
}

impl Steady {
    fn new(host: u32, tin: TinIndex, len: u32, gap: u64, jitter: u64) -> Self {
        Self {
            host,
            tin,
            len,
            gap,
            jitter,
            number: 0,
        }
    }

    /// 150 bytes and headers every 16 ms.
    pub fn game(host: u32, tin: TinIndex) -> Self {
        Self::new(host, tin, 192, 16 * MS, 2 * MS)
    }

    /// G.711: 160 bytes and headers every 20 ms.
    pub fn voice(host: u32, tin: TinIndex) -> Self {
        Self::new(host, tin, 214, 20 * MS, MS)
    }

    /// Full-size packets at `rate` bytes per second, whatever becomes of them.
    pub fn flood(host: u32, rate: u64) -> Self {
        Self::new(host, TinIndex::FIRST, 1514, 1514 * SECOND / rate, 0)
    }
}

impl Source for Steady {
    fn start(&mut self, io: &mut Io<'_>) {
        let delay = io.random.random_range(0..self.gap);
        io.after(delay, 0);
    }

    fn timer(&mut self, io: &mut Io<'_>, _token: u64) {
        io.packets.push(Outgoing {
            flow: 0,
            host: self.host,
            tin: self.tin,
            number: self.number,
            len: self.len,
            ecn: false,
        });
        self.number += 1;
        let jitter = io.random.random_range(0..=self.jitter);
        io.after(self.gap + jitter - self.jitter / 2, 0);
    }
}

/// Browsing: bursts of a heavy-tailed size with pauses in between.
pub struct OnOff {
    pub host: u32,
    pub pause: u64,
    number: u64,
}

impl OnOff {
    pub fn new(host: u32, pause: u64) -> Self {
        Self {
            host,
            pause,
            number: 0,
        }
    }
}

impl Source for OnOff {
    fn start(&mut self, io: &mut Io<'_>) {
        self.timer(io, 0);
    }

    fn timer(&mut self, io: &mut Io<'_>, left: u64) {
        let left = if left == 0 {
            // Pareto with exponent 1.2, cut off.
            let uniform: f64 = io.random.random_range(0.001..1.0);
            (2.0 / uniform.powf(1.0 / 1.2)) as u64
        } else {
            left - 1
        };
        io.packets.push(Outgoing {
            flow: 0,
            host: self.host,
            tin: TinIndex::FIRST,
            number: self.number,
            len: io.random.random_range(60..=1514),
            ecn: false,
        });
        self.number += 1;
        let pause = if left == 0 { self.pause } else { MS };
        let pause = io.exponential(pause);
        io.after(pause, left);
    }
}

/// Thousands of flows that send a packet now and then, as file sharing does.
pub struct Swarm {
    pub host: u32,
    pub flows: u32,
    /// Between two packets of any flow.
    pub gap: u64,
    number: u64,
}

impl Swarm {
    pub fn new(host: u32, flows: u32, gap: u64) -> Self {
        Self {
            host,
            flows,
            gap,
            number: 0,
        }
    }
}

impl Source for Swarm {
    fn start(&mut self, io: &mut Io<'_>) {
        self.timer(io, 0);
    }

    fn timer(&mut self, io: &mut Io<'_>, _token: u64) {
        io.packets.push(Outgoing {
            flow: io.random.random_range(0..self.flows),
            host: self.host,
            tin: TinIndex::FIRST,
            number: self.number,
            len: io.random.random_range(60..=1514),
            ecn: io.random.random(),
        });
        self.number += 1;
        let gap = io.exponential(self.gap);
        io.after(gap, 0);
    }
}
