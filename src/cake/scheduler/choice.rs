// SPDX-License-Identifier: GPL-2.0

//! Which tin is next.

use super::Scheduler;
use crate::cake::{index::TinIndex, packet::PacketQueue, tin::Tin, units::Nanos};
use core::ops::DerefMut;

impl<Q, B> Scheduler<Q, B>
where
    Q: PacketQueue,
    B: DerefMut<Target = Tin<Q>>,
{
    /// The tin that is to send.
    #[inline]
    pub(super) fn choose(&mut self, now: Nanos) -> Option<TinIndex> {
        match self.active.only() {
            Some(at) if !self.pace.is_unlimited() => Some(at),
            Some(at) if at == self.current => self.keep_to(at),
            _ => self.choose_among(now),
        }
    }

    #[inline(never)]
    fn choose_among(&mut self, now: Nanos) -> Option<TinIndex> {
        if self.pace.is_unlimited() {
            self.choose_by_weight()
        } else {
            self.choose_by_priority(now)
        }
    }

    /// In shaped mode: the highest tin within its threshold, else the one that will be first.
    fn choose_by_priority(&self, now: Nanos) -> Option<TinIndex> {
        let mut best: Option<(Nanos, TinIndex)> = None;
        for at in self.active {
            let Some(tin) = self.tins[at.at()].as_deref() else {
                continue;
            };
            let next = tin.clock.next();
            let earlier = match best {
                None => true,
                Some((best, _)) => next <= best,
            };
            if earlier || next <= now {
                best = Some((next, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// In unlimited mode: deficit round robin over the tins.
    fn choose_by_weight(&mut self) -> Option<TinIndex> {
        if let Some(at) = self.active.only() {
            return self.choose_the_only(at);
        }
        self.settle_rounds();
        let count = self.config.preset.tin_count();
        let mut idle = 0;
        while idle < count {
            let at = self.current;
            let tin = self.tins[at.at()].as_deref_mut()?;
            let active = tin.is_active();
            if active && tin.deficit >= 0 {
                return Some(at);
            }
            if tin.deficit <= 0 {
                tin.deficit = tin.deficit.saturating_add(i32::from(tin.params.quantum));
            }
            idle = if active { 0 } else { idle.wrapping_add(1) };
            self.current = self.after(at);
        }
        None
    }

    /// The same where only one tin has packets.
    fn choose_the_only(&mut self, at: TinIndex) -> Option<TinIndex> {
        if at != self.current {
            self.settle_rounds();
        }
        while at != self.current {
            self.tins[self.current.at()].as_deref_mut()?.idle(1);
            self.current = self.after(self.current);
        }
        self.keep_to(at)
    }

    /// Has the only tin that has packets, whose turn it is, go through as many rounds as it needs.
    #[inline]
    fn keep_to(&mut self, at: TinIndex) -> Option<TinIndex> {
        let tin = self.tins[at.at()].as_deref_mut()?;
        if tin.deficit < 0 {
            self.solo_rounds = self.solo_rounds.saturating_add(tin.pay_off());
        }
        Some(at)
    }

    /// The tin whose turn is after that of `at`.
    #[inline]
    fn after(&self, at: TinIndex) -> TinIndex {
        let next = at.at().wrapping_add(1);
        TinIndex::new(if next < self.config.preset.tin_count() {
            next as u32
        } else {
            0
        })
    }

    /// Gives the other tins the quanta of rounds in which they had no packets.
    fn settle_rounds(&mut self) {
        let rounds = core::mem::take(&mut self.solo_rounds);
        if rounds == 0 {
            return;
        }
        for at in self.config.preset.tins() {
            match self.tins[at.at()].as_deref_mut() {
                Some(tin) if at != self.current => tin.idle(rounds),
                _ => {}
            }
        }
    }
}
