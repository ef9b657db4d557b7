//! The engine takes anything in any order: see `interpreter` for the inputs and the checks.
#![allow(unreachable_pub, reason = "a program of tests shows nothing to anybody")]

mod interpreter;

use interpreter::{Life, WIDTH, run};
use leasehold_engine::config::Config;
use leasehold_engine::input::{Body, Boot, Input};
use leasehold_engine::output::{Command, Effect, TableOp};
use leasehold_engine::row::Change;
use leasehold_engine::testkit::{Carry, Driven, Kept, Services};
use leasehold_engine::time::{Mono, Span, Wall};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Separate steps, so that a failing life shrinks by leaving steps out.
fn lives(most: usize) -> impl Strategy<Value = Vec<[u8; WIDTH]>> {
    vec(any::<[u8; WIDTH]>(), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 1_500 } else { 15_000 }))]

    #[test]
    fn no_life_breaks_the_contract(steps in lives(300)) {
        run(&steps.concat());
    }
}

/// Tells a worker its boot record.
fn boot(driven: &mut Driven, at: Mono, carry: &mut impl Carry) {
    let boot = Boot {
        worker: "w".into(),
        incarnation: 1,
        seed: 1,
        config: Config::default().with_table("app").with_stream("orders"),
    };
    tell(driven, at, Body::Boot(Box::new(boot)), carry);
}

fn tell(driven: &mut Driven, at: Mono, body: Body, carry: &mut impl Carry) {
    let wall = Wall(0);
    driven.tell(Input { at, wall, body }, carry);
}

/// A clock at the end of its range makes no never-due event due.
#[test]
fn the_end_of_time_is_not_never() {
    let (mut driven, mut kept) = (Driven::default(), Kept::default());
    boot(&mut driven, Mono::NEVER, &mut kept);
    let asked = kept.commands.len();
    assert!(asked > 0);
    for _ in 0..3 {
        tell(&mut driven, Mono::NEVER, Body::Tick, &mut kept);
    }
    assert_eq!(kept.commands.len(), asked, "{kept:?}");
    assert_eq!(driven.engine().unanswered(), asked);
}

/// A row whose counter cannot grow is taken, renewed and put back without an overflow.
#[test]
fn a_counter_at_its_end_stays_there() {
    let mut services = Services::with_shards(1);
    for row in services.table.rows.iter_mut().flat_map(|rows| rows.values_mut()) {
        row.counter = u64::MAX;
    }
    let (mut taken, mut renewed, mut restored) = (false, 0, false);
    let mut carry = |command: Command| {
        if let Effect::Table(TableOp::Write(change)) = &command.effect {
            match change {
                Change::Take { .. } => taken = true,
                // The second renewal finds that a person removed the row.
                Change::Renew { .. } => {
                    renewed += 1;
                    if renewed == 2 {
                        services.table.rows = Some(BTreeMap::new());
                    }
                }
                Change::Create(new) if new.counter == u64::MAX => restored = true,
                _ => {}
            }
        }
        Some(services.perform(&command))
    };
    let (mut driven, mut at) = (Driven::default(), Mono(1));
    boot(&mut driven, at, &mut carry);
    for _ in 0..200 {
        at += Span::from_millis(500);
        tell(&mut driven, at, Body::Tick, &mut carry);
    }
    assert!(taken && renewed > 2 && restored, "{taken} {renewed} {restored}");
    assert_eq!(driven.engine().held().count(), 1);
    assert!(driven.engine().held().all(|held| held.counter == u64::MAX));
}

/// The lives above have a value only if they get somewhere.
#[test]
fn lives_reach_every_part_of_the_engine() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut sum = Life::default();
    let mut stopped = 0;
    for _ in 0..200 {
        let steps = lives(300).new_tree(&mut runner).unwrap().current();
        let life = run(&steps.concat());
        sum.takes += life.takes;
        sum.deliveries += life.deliveries;
        sum.checkpoints += life.checkpoints;
        sum.losses += life.losses;
        sum.ends += life.ends;
        sum.inputs_after_end += life.inputs_after_end;
        stopped += usize::from(life.stopped);
    }
    assert!(
        sum.takes > 200
            && sum.deliveries > 200
            && sum.checkpoints > 50
            && sum.losses > 50
            && sum.ends > 20
            && sum.inputs_after_end > 200,
        "{sum:?}"
    );
    assert!((1..200).contains(&stopped), "{stopped} stopped");
}
