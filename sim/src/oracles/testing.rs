//! Hand-made histories for the oracles' own tests.

use super::fact::{Ask, How, Mark, Owner, Row, Verb};
use super::{Fact, History, Oracles, Property, Terms, Verdict};
use leasehold_engine::config::Config;
use leasehold_engine::output::EndReason;
use leasehold_engine::time::Mono;
use std::borrow::Borrow;

pub(super) fn config() -> Config {
    crate::swarm::named(false)
}

/// The verdict of one oracle; the histories of its tests are too short for the other oracles.
pub(super) fn judge_only(property: Property, facts: impl IntoIterator<Item = (u64, Fact)>) -> Vec<Property> {
    judge(facts).into_iter().filter(|&found| found == property).collect()
}

pub(super) fn judge(facts: impl IntoIterator<Item = (u64, Fact)>) -> Vec<Property> {
    judge_under(&Terms::plain(config()), facts)
}

pub(super) fn judge_under(terms: &Terms, facts: impl IntoIterator<Item = (u64, Fact)>) -> Vec<Property> {
    judge_by(Oracles::new(terms), facts)
}

/// The verdict on a history with one life of another program.
pub(super) fn judge_beside(other: u32, facts: impl IntoIterator<Item = (u64, Fact)>) -> Vec<Property> {
    let mut oracles = Oracles::new(&Terms::plain(config()));
    oracles.note_other(other);
    judge_by(oracles, facts)
}

/// The number of violations of a property at these times.
pub(super) fn count(property: Property, facts: impl IntoIterator<Item = (u64, Fact)>) -> usize {
    count_under(&Terms::plain(config()), property, facts)
}

pub(super) fn count_under(
    terms: &Terms, property: Property, facts: impl IntoIterator<Item = (u64, Fact)>,
) -> usize {
    judge_under(terms, facts).into_iter().filter(|&found| found == property).count()
}

/// Gives all facts the same time.
pub(super) fn at_once<F: Borrow<Fact>>(
    facts: impl IntoIterator<Item = F>,
) -> impl Iterator<Item = (u64, Fact)> {
    facts.into_iter().map(|fact| (1, fact.borrow().clone()))
}

fn judge_by(mut oracles: Oracles, facts: impl IntoIterator<Item = (u64, Fact)>) -> Vec<Property> {
    for (at, fact) in facts {
        oracles.observe(at, &fact);
        oracles.look(at);
    }
    oracles.verdict.violations().iter().map(|violation| violation.property).collect()
}

pub(super) fn row(owner: Option<u32>, counter: u64, checkpoint: Mark) -> Row {
    Row { owner: owner.map(Owner::Life), next: None, counter, checkpoint }
}

pub(super) fn changed(
    shard: u32, by: Option<u32>, verb: Verb, before: Option<Row>, after: Option<Row>,
) -> Fact {
    Fact::RowChanged { shard, by, verb: Some(verb), before, after, from_record: 1 }
}

pub(super) fn created(shard: u32, checkpoint: Mark) -> Fact {
    changed(shard, Some(0), Verb::Create, None, Some(row(None, 0, checkpoint)))
}

/// Life 0 takes the lease of a shard, for the first time.
pub(super) fn taken(shard: u32) -> Fact {
    changed(shard, Some(0), Verb::Take, None, Some(row(Some(0), 1, Mark::TrimHorizon)))
}

/// Life 0 writes the end of a shard.
pub(super) fn finished(shard: u32) -> Fact {
    let before = row(Some(0), 1, Mark::TrimHorizon);
    changed(shard, Some(0), Verb::End, Some(before), Some(row(None, 2, Mark::End)))
}

pub(super) fn born(shard: u32, parent: Option<u32>) -> Fact {
    Fact::ShardBorn { shard, parents: [parent, None] }
}

pub(super) fn delivered(life: u32, shard: u32, first: u64, last: u64) -> Fact {
    Fact::Delivered { life, shard, token: 1, first, last, local: Mono(0), valid_until: Mono(1) }
}

pub(super) fn processed(life: u32, shard: u32, through: u64) -> Fact {
    Fact::Processed { life, shard, token: 1, through }
}

pub(super) fn asked(life: u32, ask: Ask, shard: u32, op: u64, guard: u64, local: u64) -> Fact {
    Fact::Asked {
        life,
        ask,
        about: Some(shard),
        op,
        guard: Some(guard),
        leaves: Some(guard + 1),
        local: Mono(local),
    }
}

pub(super) fn answered(life: u32, ask: Ask, shard: u32, op: u64, how: How) -> Fact {
    Fact::Answered { life, ask, about: Some(shard), op, how }
}

/// A worker begins with a shard.
pub(super) fn opened(life: u32, shard: u32) -> Fact {
    Fact::OpenBegun { life, shard, token: 1 }
}

/// A handler returns.
pub(super) fn ended(life: u32, shard: u32) -> Fact {
    Fact::HandlerEnded { life, shard, token: 1 }
}

pub(super) fn closed(life: u32, shard: u32, reason: EndReason) -> Fact {
    Fact::Closed { life, shard, token: 1, reason, local: Mono(0) }
}

/// A page of a scan shows a row.
pub(super) fn shown(life: u32, shard: u32, row: Row) -> Fact {
    Fact::Shown { life, shard, row, scanned: true }
}

/// A person changes a row.
pub(super) fn edited(shard: u32, before: Row, after: Option<Row>) -> Fact {
    Fact::RowChanged { shard, by: None, verb: None, before: Some(before), after, from_record: 1 }
}

/// Shows facts to one oracle alone, and to its history.
pub(super) fn show_alone(
    history: &mut History, facts: impl IntoIterator<Item = (u64, Fact)>,
    mut observe: impl FnMut(u64, &Fact, &History),
) {
    for (at, fact) in facts {
        history.note(at, &fact);
        observe(at, &fact, history);
    }
}

/// The number of violations that one oracle finds alone.
pub(super) fn found_alone(
    history: &mut History, facts: impl IntoIterator<Item = (u64, Fact)>,
    mut observe: impl FnMut(u64, &Fact, &History, &mut Verdict),
) -> usize {
    let mut verdict = Verdict::default();
    show_alone(history, facts, |at, fact, history| observe(at, fact, history, &mut verdict));
    verdict.violations().len()
}

/// A history without a fact.
pub(super) fn blank() -> History {
    History::new(&Terms::plain(config()))
}

/// A history beside a life of another program.
pub(super) fn beside(other: u32) -> History {
    History { others: [other].into(), ..blank() }
}

/// The history at an act of another program.
pub(super) fn of_others(of_others: bool) -> History {
    History { of_others, ..blank() }
}

/// A report of a held lease at its beginning.
pub(super) fn held(life: u32, shard: u32, counter: u64, open: bool, until: u64) -> Fact {
    Fact::Holds { life, shard, counter, checkpoint: Mark::TrimHorizon, open, until }
}

/// A request about no lease.
pub(super) fn asked_at_large(life: u32, ask: Ask, op: u64) -> Fact {
    Fact::Asked { life, ask, about: None, op, guard: None, leaves: None, local: Mono(op) }
}

/// The removal of a row: by hand, or by a write of a worker.
pub(super) fn removed(shard: u32, verb: Option<Verb>, before: Option<Row>) -> Fact {
    Fact::RowChanged { shard, by: None, verb, before, after: None, from_record: 1 }
}
