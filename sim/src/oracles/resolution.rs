//! `own-writes-recognised`: a worker resolves a write of unknown outcome before acting on the outcome, and never takes
//! its own applied write for a loss. `exclusive-ownership` (timing): a belief counts from the emission of a write known
//! to be durable.
//!
//! For every worker and lease, the oracle keeps the facts *proved* by answers: the highest counter shown, and the
//! emission of the worker's latest proven write. A guard above the proven counter rests on an unknown outcome. So does
//! a hand-over of records valid for longer than the proven write allows.

use super::fact::{Ask, How, begins};
use super::{
    EVENTS, Fact, History, LifeNo, PerShard, Property, REQUESTS, ROWS, SHOWN, Sees, ShardNo, Terms, Time,
    Verdict,
};
use leasehold_engine::output::EndReason;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Write {
    op: u64,
    leaves: u64,
    emitted: Mono,
}

#[derive(Clone, Debug, Default)]
struct Proof {
    counter: Option<u64>,
    emitted: Option<Mono>,
    /// Writes in flight, or of unknown outcome.
    open: Vec<Write>,
}

#[derive(Clone, Debug)]
pub(super) struct Resolution {
    hold: Span,
    proofs: BTreeMap<(LifeNo, ShardNo), Proof>,
    /// The counter of each row at the beginning of its present ownership.
    since: PerShard<u64>,
}

/// Unknown writes older than this many are no longer evidence.
const MOST_OPEN: usize = 64;

impl Resolution {
    pub(super) const SEES: Sees =
        Sees::ours(ROWS | EVENTS | REQUESTS | SHOWN).others(ROWS | REQUESTS | SHOWN);

    pub(super) fn new(terms: &Terms) -> Self {
        Self { hold: terms.config.hold(), proofs: BTreeMap::new(), since: PerShard::default() }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged { shard, verb, after, .. }
                if begins(verb, history.shard(shard).before, after) =>
            {
                *self.since.of(shard) = after.map_or(0, |row| row.counter);
            }
            Fact::Asked { life, ask: Ask::Write(verb), about: Some(shard), op, guard, leaves, local } => {
                let tampered = history.shard(shard).tampered;
                let proof = self.proofs.entry((life, shard)).or_default();
                if let Some(guard) = guard
                    && proof.counter.is_none_or(|shown| guard > shown)
                    && !tampered
                {
                    let shown = proof.counter;
                    verdict.report(Property::OwnWritesRecognised, now, || {
                        format!(
                            "life {life} guarded a {verb:?} of shard {shard} by counter {guard}, but the highest any answer \
                             has shown it is {shown:?}: an unknown outcome was taken as success"
                        )
                    });
                }
                if let Some(leaves) = leaves {
                    if proof.open.len() >= MOST_OPEN {
                        proof.open.remove(0);
                    }
                    proof.open.push(Write { op, leaves, emitted: local });
                }
            }
            Fact::Answered { life, ask: Ask::Write(_), about: Some(shard), op, how } => {
                let Some(proof) = self.proofs.get_mut(&(life, shard)) else {
                    return;
                };
                let Some(index) = proof.open.iter().position(|write| write.op == op) else {
                    return;
                };
                // A refused write may have been executed twice, and applied the first time.
                if matches!(how, How::Unknown | How::Refused) {
                    return;
                }
                let write = proof.open.remove(index);
                if how == How::Applied {
                    proof.counter = proof.counter.max(Some(write.leaves));
                    proof.emitted = proof.emitted.max(Some(write.emitted));
                }
            }
            Fact::Shown { life, shard, row, .. } => {
                let proof = self.proofs.entry((life, shard)).or_default();
                proof.counter = proof.counter.max(Some(row.counter));
                if row.is_of(life) {
                    let proven = proof.open.iter().filter(|write| write.leaves <= row.counter);
                    proof.emitted = proof.emitted.max(proven.map(|write| write.emitted).max());
                }
            }
            Fact::Delivered { life, shard, local, valid_until, .. } => {
                let hold = self.hold;
                let proven = self.proofs.get(&(life, shard)).and_then(|proof| proof.emitted);
                let end = proven.map(|emitted| emitted + hold);
                if end.is_none_or(|end| valid_until > end) {
                    verdict.report(Property::ExclusiveOwnership, now, || {
                        format!(
                            "life {life} handed over records of shard {shard} as valid until {valid_until}, but its last write \
                             proven durable was emitted at {proven:?}, and holds for {hold}"
                        )
                    });
                }
                if local >= valid_until {
                    verdict.report(Property::ExclusiveOwnership, now, || {
                        format!(
                            "life {life} handed over records of shard {shard} at {local}, when its belief had ended at \
                             {valid_until}"
                        )
                    });
                }
            }
            Fact::Closed { life, shard, token, reason: EndReason::LeaseLost, local } => {
                let hold = self.hold;
                let truth = history.shard(shard);
                let names = truth.row.is_some_and(|row| row.is_of(life));
                let ours = names && *self.since.of(shard) <= token;
                let proven = self.proofs.get(&(life, shard)).and_then(|proof| proof.emitted);
                if ours && !truth.tampered && proven.is_some_and(|emitted| emitted + hold > local) {
                    verdict.report(Property::OwnWritesRecognised, now, || {
                        format!(
                            "life {life} gave up shard {shard} as lost while the row names it and its last proven renewal is \
                             younger than {hold}: its own write was taken for a loss"
                        )
                    });
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                let keys: Vec<_> =
                    self.proofs.range((life, 0)..=(life, ShardNo::MAX)).map(|(key, _)| *key).collect();
                for key in keys {
                    self.proofs.remove(&key);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::{Mark, Verb};
    use super::super::testing::{self, answered, asked, at_once, changed, config, count, row};
    use super::*;

    const RENEW: Ask = Ask::Write(Verb::Renew);

    fn shown(counter: u64) -> Fact {
        testing::shown(0, 0, row(Some(0), counter, Mark::TrimHorizon))
    }

    fn handed(local: u64, valid_until: Mono) -> Fact {
        Fact::Delivered { life: 0, shard: 0, token: 1, first: 1, last: 1, local: Mono(local), valid_until }
    }

    fn judged(facts: Vec<Fact>, property: Property) -> usize {
        count(property, at_once(facts))
    }

    #[test]
    fn a_guard_that_an_answer_has_shown_is_fine() {
        let facts = vec![
            shown(4),
            asked(0, RENEW, 0, 1, 4, 10),
            answered(0, RENEW, 0, 1, How::Applied),
            asked(0, RENEW, 0, 2, 5, 20),
            answered(0, RENEW, 0, 2, How::Unknown),
            asked(0, RENEW, 0, 3, 5, 30),
            shown(6),
            asked(0, RENEW, 0, 4, 6, 40),
        ];
        assert_eq!(judged(facts, Property::OwnWritesRecognised), 0);
    }

    #[test]
    fn an_unknown_taken_as_success_is_found() {
        let facts = vec![
            shown(4),
            asked(0, RENEW, 0, 1, 4, 10),
            answered(0, RENEW, 0, 1, How::Unknown),
            asked(0, RENEW, 0, 2, 5, 20),
        ];
        assert_eq!(judged(facts, Property::OwnWritesRecognised), 1);
    }

    #[test]
    fn validity_counts_from_emission() {
        let hold = config().hold();
        let start = [shown(4), asked(0, RENEW, 0, 1, 4, 10), answered(0, RENEW, 0, 1, How::Applied)];
        let with = |fact| start.iter().cloned().chain([fact]).collect::<Vec<_>>();
        assert_eq!(judged(with(handed(30, Mono(10) + hold)), Property::ExclusiveOwnership), 0);
        // Stamped at the answer's arrival, at 20.
        assert_eq!(judged(with(handed(30, Mono(20) + hold)), Property::ExclusiveOwnership), 1);
        let end = Mono(10) + hold;
        assert_eq!(judged(with(handed(end.0, end)), Property::ExclusiveOwnership), 1);
    }

    #[test]
    fn an_adopted_write_counts_from_its_own_emission() {
        let hold = config().hold();
        let facts = |valid_until| {
            vec![
                shown(4),
                asked(0, RENEW, 0, 1, 4, 10),
                answered(0, RENEW, 0, 1, How::Unknown),
                shown(5),
                handed(30, valid_until),
            ]
        };
        assert_eq!(judged(facts(Mono(10) + hold), Property::ExclusiveOwnership), 0);
        assert_eq!(judged(facts(Mono(11) + hold), Property::ExclusiveOwnership), 1);
    }

    #[test]
    fn our_own_write_taken_for_a_loss_is_found() {
        let take =
            |owner| changed(0, Some(owner), Verb::Take, None, Some(row(Some(owner), 5, Mark::TrimHorizon)));
        let lost =
            Fact::Closed { life: 0, shard: 0, token: 5, reason: EndReason::LeaseLost, local: Mono(50) };
        let acknowledged = [shown(4), asked(0, RENEW, 0, 1, 4, 10), answered(0, RENEW, 0, 1, How::Applied)];
        let history =
            |owner| [take(owner)].into_iter().chain(acknowledged.clone()).chain([lost.clone()]).collect();
        assert_eq!(judged(history(0), Property::OwnWritesRecognised), 1);
        assert_eq!(judged(history(1), Property::OwnWritesRecognised), 0);
    }
}
