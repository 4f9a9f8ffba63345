// SPDX-License-Identifier: GPL-2.0

//! COBALT: CoDel and BLUE side by side on each queue.
//!
//! CoDel (RFC 8289) watches how long packets stay in the queue. Once that has been above the
//! target for an interval, it signals congestion, and again after `interval / sqrt(count)`, so
//! that the rate of signals grows until the flow slows down. Unlike RFC 8289's pseudocode, the
//! count is not forgotten when the queue gets short: it decays at the rate at which it grew.
//!
//! BLUE watches for overflow and idleness instead. A flow whose queue overflows again and again
//! does not respond to CoDel's signals, so a share of its packets is dropped at random. The share
//! grows with each overflow and shrinks with each idle moment, at most once per target.

use super::{packet::DropReason, random::Random, units::Nanos};

/// How much one overflow adds to BLUE's drop probability: 1/256 in Q0.32.
const P_INC: u32 = 1 << 24;
/// How much one idle moment takes from BLUE's drop probability: 1/4096 in Q0.32.
const P_DEC: u32 = 1 << 20;

/// The most steps of decay to take at once; a count that is higher still is forgotten instead.
const MAX_DECAY_STEPS: u32 = 4096;

/// Counts below this have their reciprocal square root in a table. A single Newton step is too
/// coarse there.
const TABLE_LEN: usize = 16;

/// `1 / sqrt(n)` in Q0.32 for small `n`; as close to 1 as fits for 0 and 1.
static INV_SQRT: [u32; TABLE_LEN] = inv_sqrt_table();

const fn inv_sqrt_table() -> [u32; TABLE_LEN] {
    let mut table = [u32::MAX; TABLE_LEN];
    let mut n = 2;
    while n < TABLE_LEN {
        // 2^32 / sqrt(n) = sqrt(2^64 / n), by binary search for its floor.
        let square = (1u128 << 64) / n as u128;
        let (mut low, mut high) = (0u128, 1u128 << 32);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if middle * middle <= square {
                low = middle;
            } else {
                high = middle;
            }
        }
        table[n] = low as u32;
        n += 1;
    }
    table
}

/// What the owner's settings mean for the queues of one tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CobaltParams {
    /// Sojourn time in nanoseconds that a queue may keep for good.
    pub target: u64,
    /// Nanoseconds above target before the first signal.
    pub interval: u64,
    /// Nanoseconds that a full-size packet takes at the tin's threshold rate.
    pub mtu_time: u64,
}

/// What COBALT remembers of one queue.
#[derive(Clone, Copy, Debug)]
pub struct CobaltState {
    /// When the next signal is due; with `count` 0, when the queue counts as unused.
    drop_next: Nanos,
    /// When BLUE last changed its mind.
    blue_timer: Nanos,
    /// How many signals CoDel has raised, less those that have decayed.
    count: u32,
    /// `1 / sqrt(count)` in Q0.32.
    rec_inv_sqrt: u32,
    /// BLUE's drop probability in Q0.32.
    p_drop: u32,
    /// The queue has been above target and has not been below since.
    dropping: bool,
}

impl CobaltState {
    /// The state of a queue that was never used.
    ///
    /// Like the C module's it does not wait an interval before its very first signal: `rec_inv_sqrt`
    /// is right only once `count` has changed.
    pub const fn new() -> Self {
        Self {
            drop_next: Nanos(0),
            blue_timer: Nanos(0),
            count: 0,
            rec_inv_sqrt: 0,
            p_drop: 0,
            dropping: false,
        }
    }
}

impl Default for CobaltState {
    fn default() -> Self {
        Self::new()
    }
}

/// What is to happen to a packet at the head of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it.
    Pass,
    /// Send it; it carries a congestion mark now.
    Marked,
    /// Drop it, unless it is its queue's last.
    Drop(DropReason),
}

/// A change of BLUE between having and not having anything to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blue {
    /// Nothing changed.
    Same,
    /// The flow began to count as unresponsive.
    Rose,
    /// The flow ceased to count as unresponsive.
    Fell,
}

impl CobaltState {
    /// Judges a packet that has waited for `sojourn` nanoseconds and is about to leave.
    ///
    /// `bulk_flows` counts the flows that share the link where this queue cannot drain faster than
    /// its share of it (`ingress` mode), and is 0 otherwise. `mark` sets a congestion mark if the
    /// packet allows; `random` decides for
    /// BLUE.
    #[inline]
    pub fn judge(
        &mut self,
        params: &CobaltParams,
        now: Nanos,
        sojourn: u64,
        bulk_flows: u32,
        random: &mut Random,
        mark: impl FnOnce() -> bool,
    ) -> Verdict {
        if self.is_calm() && sojourn <= params.target {
            self.dropping = false;
            self.drop_next = now.after(params.interval);
            return Verdict::Pass;
        }
        self.weigh(params, now, sojourn, bulk_flows, random, mark)
    }

    /// [`CobaltState::judge`] where there is something to weigh.
    fn weigh(
        &mut self,
        params: &CobaltParams,
        now: Nanos,
        sojourn: u64,
        bulk_flows: u32,
        random: &mut Random,
        mark: impl FnOnce() -> bool,
    ) -> Verdict {
        let floor = u64::from(bulk_flows).wrapping_mul(2).max(4);
        let over_target = sojourn > params.target && sojourn > params.mtu_time.wrapping_mul(floor);
        let due = self.count != 0 && now >= self.drop_next;
        let mut verdict = Verdict::Pass;

        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control_law(params, now);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }

        if due && self.dropping {
            verdict = if mark() {
                Verdict::Marked
            } else {
                Verdict::Drop(DropReason::Congested)
            };
            self.set_count(self.count.saturating_add(1));
            self.drop_next = self.control_law(params, self.drop_next);
        } else if due {
            self.decay(params, now);
        }

        // A mark does not save the packet: this flow does not respond to signals.
        let spared = !matches!(verdict, Verdict::Drop(_));
        if spared && self.p_drop != 0 && random.draw() < self.p_drop {
            verdict = Verdict::Drop(DropReason::FloodProtection);
        }

        if self.count == 0 {
            self.drop_next = now.after(params.interval);
        } else if now > self.drop_next && !matches!(verdict, Verdict::Drop(_)) {
            self.drop_next = now;
        }
        verdict
    }

    /// Notes that the queue overflowed.
    pub fn overflowed(&mut self, params: &CobaltParams, now: Nanos) -> Blue {
        let mut change = Blue::Same;
        if now.since(self.blue_timer) > params.target {
            if self.p_drop == 0 {
                change = Blue::Rose;
            }
            self.p_drop = self.p_drop.saturating_add(P_INC);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        change
    }

    /// Notes that the queue was to send and had nothing.
    #[inline]
    pub fn ran_empty(&mut self, params: &CobaltParams, now: Nanos) -> Blue {
        self.dropping = false;
        if self.is_calm() {
            return Blue::Same;
        }
        self.calm_down(params, now)
    }

    /// [`CobaltState::ran_empty`] where there is something to forget.
    fn calm_down(&mut self, params: &CobaltParams, now: Nanos) -> Blue {
        let mut change = Blue::Same;
        if self.p_drop != 0 && now.since(self.blue_timer) > params.target {
            self.p_drop = self.p_drop.saturating_sub(P_DEC);
            self.blue_timer = now;
            if self.p_drop == 0 {
                change = Blue::Fell;
            }
        }
        if self.count != 0 && now >= self.drop_next {
            self.set_count(self.count.saturating_sub(1));
            self.drop_next = self.control_law(params, self.drop_next);
        }
        change
    }

    /// Catches up on a time without packets that ended at `now`.
    ///
    /// A queue that stays empty decays step by step. Nobody needs to see the steps, so that all of
    /// them are taken when somebody looks at the state again.
    #[inline]
    pub fn idled(&mut self, params: &CobaltParams, now: Nanos) -> Blue {
        if self.is_calm() {
            return Blue::Same;
        }
        self.catch_up(params, now)
    }

    /// [`CobaltState::idled`] where there is something to forget.
    fn catch_up(&mut self, params: &CobaltParams, now: Nanos) -> Blue {
        let mut change = Blue::Same;
        if self.p_drop != 0 {
            let steps = now.since(self.blue_timer) / params.target.max(1);
            let fall = u64::from(P_DEC).saturating_mul(steps);
            if steps != 0 {
                self.p_drop = u64::from(self.p_drop).saturating_sub(fall) as u32;
                self.blue_timer = self.blue_timer.after(steps.saturating_mul(params.target));
            }
            if self.p_drop == 0 {
                change = Blue::Fell;
            }
        }
        self.decay(params, now);
        change
    }

    /// Whether neither CoDel nor BLUE has signals to decay.
    #[inline]
    fn is_calm(&self) -> bool {
        self.count | self.p_drop == 0
    }

    /// Whether nothing is left to decay, so that another flow may have the queue.
    #[inline]
    pub fn is_at_rest(&self, now: Nanos) -> bool {
        self.is_calm() && now >= self.drop_next
    }

    /// The earliest time at which [`CobaltState::idled`] may leave the state at rest; what is not
    /// after `now` means that it does now.
    #[inline]
    pub fn rest_time(&self, params: &CobaltParams, now: Nanos) -> Nanos {
        if self.is_calm() || now < self.drop_next {
            return self.drop_next;
        }
        let mut later = *self;
        later.catch_up(params, now);
        if later.is_at_rest(now) {
            now
        } else {
            now.after(1)
        }
    }

    /// How many signals have been raised and have not decayed.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// BLUE's drop probability in Q0.32.
    pub fn p_drop(&self) -> u32 {
        self.p_drop
    }

    /// Microseconds since BLUE last changed its mind, where it drops at all.
    pub fn blue_age_us(&self, now: Nanos) -> Option<i32> {
        (self.p_drop != 0).then(|| signed_us(now, self.blue_timer))
    }

    /// Microseconds since the next signal fell due, negative if it lies ahead, where CoDel is
    /// dropping.
    pub fn drop_lateness_us(&self, now: Nanos) -> Option<i32> {
        self.dropping.then(|| signed_us(now, self.drop_next))
    }

    /// Whether CoDel is in its dropping state.
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Takes back the signals whose time has passed.
    fn decay(&mut self, params: &CobaltParams, now: Nanos) {
        let mut steps = 0;
        while self.count != 0 && now >= self.drop_next {
            let next = if steps < MAX_DECAY_STEPS {
                self.count.saturating_sub(1)
            } else {
                0
            };
            self.set_count(next);
            self.drop_next = self.control_law(params, self.drop_next);
            steps = steps.saturating_add(1);
        }
    }

    /// RFC 8289, section 5.5: `t + interval / sqrt(count)`.
    fn control_law(&self, params: &CobaltParams, t: Nanos) -> Nanos {
        let scaled = u128::from(params.interval).wrapping_mul(u128::from(self.rec_inv_sqrt));
        t.after((scaled >> 32) as u64)
    }

    /// Changes `count` by one and follows with `1 / sqrt(count)`: one step of Newton's method,
    /// `x' = x / 2 * (3 - count * x^2)`, since a division and a root would cost too much.
    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.rec_inv_sqrt = match INV_SQRT.get(count as usize) {
            Some(&exact) => exact,
            None => {
                let x = u64::from(self.rec_inv_sqrt);
                let square = x.wrapping_mul(x) >> 32;
                let three = 3u64 << 32;
                // A quarter of the difference, so that the product with `x` fits.
                let difference = three.saturating_sub(u64::from(count).wrapping_mul(square)) >> 2;
                (difference.wrapping_mul(x) >> 31).min(u64::from(u32::MAX)) as u32
            }
        };
    }
}

fn signed_us(now: Nanos, then: Nanos) -> i32 {
    ((now.0.wrapping_sub(then.0) as i64) / 1000) as i32
}
