// SPDX-License-Identifier: GPL-2.0

//! The discipline `cake`.

use super::{
    attributes,
    classify::Classifier,
    dump, //
};
use crate::{
    cake::{
        index::{FlowIndex, TinIndex, MAX_TINS, QUEUES},
        packet,
        scheduler::{Arrival, Tins, Unsettled},
        siphash::SipKey,
        stats::TinStats,
        tin::Tin,
        Config,
        Decision,
        Enqueued,
        Nanos,
        Scheduler, //
    },
    net::{
        gen_stats::StatsDump,
        gso::{segment, Segments},
        netlink::{Attribute, ExtAck, Message},
        qdisc::{Device, Dropped, Handle, Qdisc, Queue, Verdict, Walker},
        random::random_words,
        skb::{DropReason, Skb},
        skb_queue::SkbQueue,
        time::ktime_get_ns, //
    },
};
use kernel::{
    alloc::flags::__GFP_NOWARN,
    prelude::*, //
};

/// A tin in memory of its own. It is 24 pages large; blocks of that size are rounded up to 32 and
/// hard to come by on a small router that has been up for long, single pages are not.
type TinBox = VBox<Tin<SkbQueue>>;

/// An instance.
pub(crate) struct Cake {
    scheduler: Scheduler<SkbQueue, TinBox>,
    /// Makes the choice of queues unpredictable from outside.
    key: SipKey,
    /// When the instance last looked how many share its bandwidth, if it shares it.
    shared: Option<Nanos>,
    /// Boxes for a change that is under way.
    fresh: Tins<TinBox>,
}

/// Nanoseconds between looks at who shares the bandwidth.
const SYNC_TIME: u64 = 200_000;

fn now() -> Nanos {
    Nanos(ktime_get_ns())
}

/// A box for each tin that `is_needed`.
fn allocate(is_needed: impl Fn(TinIndex) -> bool) -> Result<Tins<TinBox>> {
    let mut tins = [const { None }; MAX_TINS];
    for (slot, tin) in tins.iter_mut().zip((0..MAX_TINS as u32).map(TinIndex::new)) {
        if is_needed(tin) {
            // Whoever asked for it is told, so that the log need not be.
            *slot = Some(VBox::init(Tin::init(), GFP_KERNEL | __GFP_NOWARN)?);
        }
    }
    Ok(tins)
}

/// The display position of a class's tin and the flow in it. Minor numbers count from 1.
fn class_parts(class: u16) -> (u32, FlowIndex) {
    let index = u32::from(class.saturating_sub(1));
    (index / QUEUES as u32, FlowIndex::new(index))
}

impl Cake {
    fn new(config: Config, mtu: u32) -> Result<Self> {
        let tins = allocate(|tin| tin.at() < config.preset.tin_count())?;
        let [seed, key @ ..] = random_words::<3>();
        Ok(Self {
            scheduler: Scheduler::new(config, mtu, tins, seed),
            key: SipKey::new(key),
            shared: None,
            fresh: Tins::default(),
        })
    }

    /// Brings what a change to `config` needs: boxes for tins that are new. [`Self::commit`] uses
    /// them; until then nothing changes.
    pub(super) fn prepare(this: &Handle<'_, Self>, config: &Config) -> Result {
        let lacking: [bool; MAX_TINS] = this.lock(|cake, _| {
            let mut tins = (0..MAX_TINS as u32).map(TinIndex::new);
            [(); MAX_TINS].map(|()| {
                tins.next()
                    .is_some_and(|tin| cake.scheduler.lacks(config.preset, tin))
            })
        });
        let fresh = allocate(|tin| lacking[tin.at()])?;
        let _spare = this.lock(|cake, _| core::mem::replace(&mut cake.get_mut().fresh, fresh));
        Ok(())
    }

    /// Frees what [`Self::prepare`] has brought.
    pub(super) fn abandon(this: &Handle<'_, Self>) {
        let _spare = this.lock(|cake, _| core::mem::take(&mut cake.get_mut().fresh));
    }

    /// Changes to `config`, for which [`Self::prepare`] was called. Returned is what is no longer
    /// needed, to be freed without the lock.
    pub(super) fn commit(&mut self, config: Config, mtu: u32) -> Tins<TinBox> {
        let fresh = core::mem::take(&mut self.fresh);
        self.scheduler.reconfigure(config, mtu, now(), fresh)
    }

    /// Has the instance share its bandwidth with those on the device's other queues.
    pub(super) fn share(&mut self) {
        self.shared = Some(Nanos::default());
    }

    /// Looks how many share the bandwidth, from time to time.
    #[cold]
    fn sync(&mut self, last: Nanos, now: Nanos, queue: &Queue<'_>) {
        if self.scheduler.config().bandwidth != 0 && now.since(last) >= SYNC_TIME {
            self.scheduler.share(queue.active_siblings(last.0));
            self.shared = Some(now);
        }
    }

    /// Queues `packets`, which have been counted in, for the one that arrived.
    #[inline]
    fn enqueue_all(
        &mut self,
        arrival: &Arrival,
        packets: impl Iterator<Item = Skb>,
        queue: &mut Queue<'_>,
        dropped: &mut Dropped<'_>,
    ) -> Verdict {
        match self.scheduler.enter(arrival, packets) {
            None => Verdict::Queued,
            Some(entered) => self.settle(arrival, entered, queue, dropped),
        }
    }

    /// Drops what an arrival that is in its queue makes superfluous.
    #[inline(never)]
    fn settle(
        &mut self,
        arrival: &Arrival,
        entered: Unsettled,
        queue: &mut Queue<'_>,
        dropped: &mut Dropped<'_>,
    ) -> Verdict {
        let (mut lost, mut lost_bytes) = (0i32, 0i32);
        let outcome = self
            .scheduler
            .settle(arrival, entered, &mut |packet, reason| {
                lost = lost.wrapping_add(1);
                lost_bytes = lost_bytes.wrapping_add_unsigned(packet.pkt_len());
                queue.count_out(1, packet.pkt_len());
                dropped.push(queue, packet, reason.into());
            });
        match outcome {
            Enqueued::Queued => {
                if lost != 0 {
                    queue.tell_parents(lost, lost_bytes);
                }
                Verdict::Queued
            }
            // The parents do not count the arrival, so that one packet less is news to them.
            Enqueued::Congested => {
                queue.tell_parents(
                    lost.wrapping_sub(1),
                    lost_bytes.wrapping_sub_unsigned(arrival.len),
                );
                Verdict::Congested
            }
        }
    }

    /// The next packet of a queue that is not empty, if it may go now.
    #[inline(never)]
    fn next(&mut self, queue: &mut Queue<'_>) -> Option<Skb> {
        let now = now();
        if let Some(last) = self.shared {
            self.sync(last, now, queue);
        }
        let decision = self.scheduler.dequeue(now, &mut |packet, reason| {
            queue.count_out(1, packet.pkt_len());
            queue.drop_dequeued(packet, reason.into());
        });
        match decision {
            Decision::Send(packet) => {
                queue.count_out(1, packet.pkt_len());
                queue.count_sent(&packet);
                if self.shared.is_some() {
                    queue.note_active(now.0);
                }
                Some(packet)
            }
            Decision::Wait(Nanos(until)) => {
                queue.count_overlimit();
                queue.wake_at(until);
                None
            }
            Decision::Empty => None,
        }
    }

    /// Queues the segments of `packet`.
    #[cold]
    fn enqueue_split(
        &mut self,
        mut arrival: Arrival,
        packet: Skb,
        queue: &mut Queue<'_>,
        dropped: &mut Dropped<'_>,
    ) -> Verdict {
        match segment(packet) {
            Ok(Segments {
                packets,
                count,
                bytes,
            }) => {
                queue.count_in(count, bytes);
                // The parents count the one that arrived.
                queue.tell_parents(
                    1i32.wrapping_sub_unsigned(count),
                    (arrival.len as i32).wrapping_sub_unsigned(bytes),
                );
                // Said here, where the compiler sees what cannot be.
                arrival.is_split = true;
                self.enqueue_all(&arrival, packets, queue, dropped)
            }
            Err(packet) => {
                dropped.push(queue, packet, DropReason::Generic);
                Verdict::Dropped
            }
        }
    }
}

#[vtable]
impl Qdisc for Cake {
    const ID: &'static CStr = c"cake";

    fn init(
        device: Device<'_>,
        options: Option<Attribute<'_>>,
        extack: &mut ExtAck<'_>,
    ) -> impl PinInit<Self, Error> {
        let config = match options {
            Some(options) => attributes::apply(Config::default(), false, options, extack),
            None => Ok(Config::default()),
        };
        config.and_then(|config| Self::new(config, device.psched_mtu()))
    }

    #[inline]
    fn enqueue(
        mut self: Pin<&mut Self>,
        packet: Skb,
        queue: &mut Queue<'_>,
        dropped: &mut Dropped<'_>,
    ) -> Verdict {
        let (mut packet, class) = match queue.classify(packet, dropped) {
            Ok(classified) => classified,
            Err(verdict) => return verdict,
        };
        if queue.psched_mtu() != self.scheduler.mtu() {
            self.scheduler.set_mtu(queue.psched_mtu());
        }
        let Self { scheduler, key, .. } = &*self;
        let config = scheduler.config();
        let classifier = Classifier {
            config,
            classes: scheduler.classes(),
            key,
            handle: queue.handle(),
            class,
        };
        let (tin, hashes) = classifier.classify(&mut packet);
        let arrival = Arrival {
            now: now(),
            tin,
            hashes,
            len: packet.pkt_len(),
            is_split: config.split_gso && packet.pkt_segs() > 1,
        };
        if arrival.is_split {
            return self
                .get_mut()
                .enqueue_split(arrival, packet, queue, dropped);
        }
        queue.count_in(1, arrival.len);
        self.get_mut()
            .enqueue_all(&arrival, core::iter::once(packet), queue, dropped)
    }

    #[inline]
    fn dequeue(self: Pin<&mut Self>, queue: &mut Queue<'_>) -> Option<Skb> {
        // The kernel asks once more after the last packet; that is not worth a look at the clock.
        if self.scheduler.qlen() == 0 {
            return None;
        }
        self.get_mut().next(queue)
    }

    fn reset(self: Pin<&mut Self>) {
        let purge = &mut |packet: Skb| packet.drop_for(DropReason::QueuePurge);
        self.get_mut().scheduler.reset(purge);
    }

    fn change(this: Handle<'_, Self>, options: Attribute<'_>, extack: &mut ExtAck<'_>) -> Result {
        let (before, is_shared) =
            this.lock(|cake, _| (*cake.scheduler.config(), cake.shared.is_some()));
        if is_shared {
            return Err(extack.explain(c"change the cake_mq above instead", EOPNOTSUPP));
        }
        let mut config = attributes::apply(before, false, options, extack)?;
        let mtu = this.device().psched_mtu();
        Self::prepare(&this, &config)?;
        let _spare = this.lock(|cake, _| {
            let cake = cake.get_mut();
            if config.bandwidth == before.bandwidth {
                // Autorate may have changed it meanwhile.
                config.bandwidth = cake.scheduler.config().bandwidth;
            }
            cake.commit(config, mtu)
        });
        Ok(())
    }

    fn dump(this: Handle<'_, Self>, message: &mut Message<'_>) -> Result {
        let config = this.lock(|cake, _| *cake.scheduler.config());
        dump::config(message, &config)
    }

    fn dump_stats(this: Handle<'_, Self>, stats: &mut StatsDump<'_>) -> Result {
        let mut tins = [TinStats::default(); MAX_TINS];
        let (total, count) = this.lock(|cake, _| {
            let scheduler = &mut cake.get_mut().scheduler;
            let now = now();
            let mut count = 0usize;
            for (slot, display) in tins.iter_mut().zip(0..) {
                let Some(tin) = scheduler.tin_stats(display, now) else {
                    break;
                };
                *slot = tin;
                count = count.wrapping_add(1);
            }
            (scheduler.stats(), count)
        });
        stats.put_app(|message| dump::stats(message, &total, tins.iter().take(count)))
    }

    fn walk(this: Handle<'_, Self>, walker: &mut Walker<'_>) {
        let tins = this.lock(|cake, _| cake.scheduler.config().preset.tin_count());
        for display in 0..tins as u32 {
            let mut active = [0u64; QUEUES / 64];
            this.lock(|cake, _| {
                let now = now();
                for (word, first) in active.iter_mut().zip((0..QUEUES as u32).step_by(64)) {
                    for bit in 0..64 {
                        let flow = FlowIndex::new(first | bit);
                        if cake.scheduler.is_flow_active(display, flow, now) {
                            *word |= 1 << bit;
                        }
                    }
                }
            });
            let first_class = (display as u16).wrapping_mul(QUEUES as u16).wrapping_add(1);
            for flow in 0..QUEUES as u16 {
                let word = active[usize::from(flow / 64) % active.len()];
                if word >> (flow % 64) & 1 == 0 {
                    walker.pass(1);
                } else if !walker.visit(first_class.wrapping_add(flow)) {
                    return;
                }
            }
        }
    }

    fn dump_class_stats(this: Handle<'_, Self>, class: u16, stats: &mut StatsDump<'_>) -> Result {
        let (display, flow) = class_parts(class);
        let found = this.lock(|cake, _| cake.scheduler.flow_stats(display, flow, now()));
        dump::flow(stats, found.as_ref())
    }
}

impl From<packet::DropReason> for DropReason {
    fn from(reason: packet::DropReason) -> Self {
        match reason {
            packet::DropReason::Overlimit => Self::Overlimit,
            packet::DropReason::Congested => Self::Congested,
            packet::DropReason::FloodProtection => Self::FloodProtection,
            packet::DropReason::RedundantAck => Self::Generic,
        }
    }
}
