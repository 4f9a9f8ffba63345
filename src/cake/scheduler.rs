// SPDX-License-Identifier: GPL-2.0

//! The scheduler: one instance of CAKE.
//!
//! It ties the parts together and owns what all tins share: the link's clock, the memory limit and
//! the length of the queue.

mod choice;
mod dequeue;
mod enqueue;
mod report;

pub use dequeue::Decision;
pub use enqueue::{Arrival, Enqueued, Unsettled};

use super::{
    autorate::Autorate,
    config::{AckFilter, Config},
    diffserv::{Classes, Preset},
    index::{TinIndex, TinSet, MAX_TINS},
    packet::PacketQueue,
    random::Random,
    shaper::{LinkClock, Pace},
    stats::Lengths,
    tin::{Tin, TinParams},
    units::Nanos,
};
use core::ops::DerefMut;

/// The boxes of an instance's tins. Those that the preset does not use are not allocated.
pub type Tins<B> = [Option<B>; MAX_TINS];

/// The memory that queued packets hold, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    used: u32,
    max_used: u32,
    limit: u32,
}

impl Memory {
    #[inline]
    fn note_peak(&mut self) {
        if self.used > self.max_used {
            self.max_used = self.used;
        }
    }
}

/// One instance of CAKE. `Q` is a queue of packets and `B` the box of a tin.
pub struct Scheduler<Q, B> {
    config: Config,
    classes: Classes,
    clock: LinkClock,
    pace: Pace,
    /// Whose turn it is in unlimited mode.
    current: TinIndex,
    /// Rounds in which nobody but `current` had packets, for which the others are due their quanta.
    solo_rounds: u32,
    /// The tins that have flows in their rotations.
    active: TinSet,
    qlen: u32,
    memory: Memory,
    /// Whether the configuration asks for a second look at each arrival.
    is_followed: bool,
    lengths: Lengths,
    random: Random,
    autorate: Autorate,
    /// Instances that share the bandwidth; 0 if it is not to be shared.
    sharers: u32,
    /// The device's largest packet in bytes, link-layer header included.
    mtu: u32,
    tins: Tins<B>,
    queues: core::marker::PhantomData<Q>,
}

impl<Q, B> Scheduler<Q, B>
where
    Q: PacketQueue,
    B: DerefMut<Target = Tin<Q>>,
{
    /// An idle instance.
    ///
    /// `tins` holds a box for each tin of the configured preset; `mtu` is the device's largest
    /// packet in bytes, link-layer header included; `seed` is random.
    pub fn new(config: Config, mtu: u32, tins: Tins<B>, seed: u64) -> Self {
        let mut new = Self {
            config,
            classes: Classes::of(&config),
            clock: LinkClock::default(),
            pace: Pace::default(),
            current: TinIndex::FIRST,
            solo_rounds: 0,
            active: TinSet::default(),
            qlen: 0,
            memory: Memory::default(),
            is_followed: false,
            lengths: Lengths::new(),
            random: Random::new(seed),
            autorate: Autorate::new(config.bandwidth),
            sharers: 0,
            mtu,
            tins,
            queues: core::marker::PhantomData,
        };
        new.derive();
        new
    }

    /// Packets in the queue.
    #[inline]
    pub fn qlen(&self) -> u32 {
        self.qlen
    }

    /// The configuration in force.
    #[inline]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The tins of all code points.
    #[inline]
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Whether a change to `preset` has to bring a box for `tin`.
    pub fn lacks(&self, preset: Preset, tin: TinIndex) -> bool {
        tin.at() < preset.tin_count() && self.tins[tin.at()].is_none()
    }

    /// Changes the configuration and loses neither packets nor state.
    ///
    /// `fresh` brings the boxes of tins that are new. Returned are the boxes of tins that are gone;
    /// their packets have moved to the first tin.
    pub fn reconfigure(&mut self, config: Config, mtu: u32, now: Nanos, fresh: Tins<B>) -> Tins<B> {
        if config.framing != self.config.framing {
            self.lengths.forget_ranges();
        }
        if config.autorate_ingress && !self.config.autorate_ingress {
            self.autorate.restart(now);
        }
        let recount = config.flow_mode != self.config.flow_mode;
        let is_faster = config.bandwidth == 0 || config.bandwidth > self.config.bandwidth;
        self.config = config;
        self.classes = Classes::of(&config);
        self.mtu = mtu;
        let mut spare: Tins<B> = [const { None }; MAX_TINS];
        for (i, fresh) in fresh.into_iter().enumerate() {
            let slot = &mut self.tins[i & (MAX_TINS - 1)];
            if fresh.is_some() {
                *slot = fresh;
            } else if i >= config.preset.tin_count() {
                spare[i & (MAX_TINS - 1)] = slot.take();
            }
        }
        if self.current.at() >= config.preset.tin_count() {
            self.current = TinIndex::FIRST;
        }
        self.solo_rounds = 0;
        self.derive_at(now);
        if is_faster {
            self.clock.wait_at_most(now.after(self.pace.duration(mtu)));
        }
        if recount {
            for tin in self.tins.iter_mut().flatten() {
                tin.recount_hosts(config.flow_mode);
            }
        }
        if let Some(first) = self.tins[TinIndex::FIRST.at()].as_deref_mut() {
            if first.backlog() == 0 {
                first.clock.wake(now, first.params.burst);
            }
            for tin in spare.iter_mut().flatten() {
                while let Some((hashes, packet)) = tin.evict() {
                    let flow = first.lookup(config.flow_mode, &hashes, now);
                    first.push(flow, packet);
                    first.activate(config.flow_mode, flow, now, &mut self.random);
                }
            }
        }
        self.active = TinSet::default();
        for at in config.preset.tins() {
            if self.tins[at.at()].as_deref().is_some_and(Tin::is_active) {
                self.active.insert(at);
            }
        }
        spare
    }

    /// Empties all queues.
    pub fn reset(&mut self, drop: &mut impl FnMut(Q::Packet)) {
        for i in 0..MAX_TINS {
            while let Some((_, packet)) = self.tins[i].as_deref_mut().and_then(Tin::evict) {
                self.forget(&packet);
                drop(packet);
            }
        }
    }

    /// The device's largest packet in bytes for which the instance is set up.
    #[inline]
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Sets the instance up for a device whose largest packet has `mtu` bytes.
    pub fn set_mtu(&mut self, mtu: u32) {
        self.mtu = mtu;
        self.derive();
    }

    /// Takes an equal part of the bandwidth, because that many instances share it, this one among
    /// them.
    pub fn share(&mut self, sharers: u32) {
        if sharers != self.sharers {
            self.sharers = sharers;
            self.derive();
        }
    }

    /// [`Scheduler::derive`] where the bandwidth may have changed: an unlimited link's clocks have
    /// stood still.
    fn derive_at(&mut self, now: Nanos) {
        let was_unlimited = self.pace.is_unlimited();
        self.derive();
        self.clock.wake(now);
        if was_unlimited {
            for tin in self.tins.iter_mut().flatten() {
                let tin: &mut Tin<Q> = tin;
                tin.clock.wake(now, tin.params.burst);
            }
        }
    }

    /// Works out what follows from the configuration. Sharing slows the clocks down; targets stay
    /// those of the whole link, on which a packet takes no longer for it.
    fn derive(&mut self) {
        let Self { config, tins, .. } = self;
        let part = config.shared_by(self.sharers);
        self.memory.limit = config.memory_limit(self.mtu);
        self.is_followed = config.autorate_ingress || config.ack_filter != AckFilter::Off;
        self.pace = Pace::of_rate(part.bandwidth);
        for at in config.preset.tins() {
            if let Some(tin) = tins[at.at()].as_deref_mut() {
                tin.params = TinParams {
                    cobalt: TinParams::derive(config, at, self.mtu).cobalt,
                    ..TinParams::derive(&part, at, self.mtu)
                };
            }
        }
    }
}
