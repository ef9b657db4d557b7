//! Hand-made histories for the oracles' own tests.

use super::fact::{Ask, How, Mark, Owner, Row, Verb};
use super::{Fact, Oracles, Property, Terms};
use leasehold_engine::config::Config;
use leasehold_engine::time::Mono;

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
