//! The engine takes anything in any order: see `interpreter` for what is done to it and what is checked.
#![allow(unreachable_pub, reason = "a program of tests shows nothing to anybody")]

mod interpreter;

use interpreter::{Life, WIDTH, run};
use leasehold_engine::Engine;
use leasehold_engine::config::Config;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::*;
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow, RowRead};
use leasehold_engine::shard::{HashRange, Shard};
use leasehold_engine::time::{Mono, Span, Wall};
use proptest::collection::vec;
use proptest::prelude::*;

/// Steps apart, so that a failing life shrinks by leaving steps out.
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

/// A worker that was told its boot record at `at`.
fn booted(at: Mono) -> Engine {
    let mut engine = Engine::new();
    let boot = Boot {
        worker: "w".into(),
        incarnation: 1,
        seed: 1,
        config: Config::default().with_table("app").with_stream("orders"),
    };
    let _ = tell(&mut engine, at, Body::Boot(Box::new(boot)));
    engine
}

fn tell(engine: &mut Engine, at: Mono, body: Body) -> Vec<Command> {
    let wall = Wall(0);
    engine
        .handle(Input { at, wall, body })
        .filter_map(|output| match output {
            Output::Do(command) => Some(command),
            Output::Tell(_) => None,
        })
        .collect()
}

/// A clock at the end of its range does not make due what nobody waits for.
#[test]
fn the_end_of_time_is_not_never() {
    let mut engine = booted(Mono::NEVER);
    let asked = engine.unanswered();
    for _ in 0..3 {
        assert_eq!(tell(&mut engine, Mono::NEVER, Body::Tick), []);
    }
    assert_eq!(engine.unanswered(), asked);
}

/// A row whose counter cannot grow is taken, renewed and put back without an overflow.
#[test]
fn a_counter_at_its_end_stays_there() {
    let mut row = LeaseRow::new("shardId-000000000000".into(), Checkpoint::TrimHorizon);
    row.counter = u64::MAX;
    let mut engine = booted(Mono(1));
    let mut open: Vec<Command> = (1..=2)
        .map(|n| Command {
            op: OpId { life: 1, n },
            give_up: Mono::NEVER,
            effect: Effect::Table(if n == 1 {
                TableOp::Describe
            } else {
                TableOp::Scan {
                    after: None,
                    limit: None,
                }
            }),
        })
        .collect();
    let (mut taken, mut renewed, mut restored) = (false, 0, false);
    let mut at = Mono(1);
    for _ in 0..200 {
        for command in std::mem::take(&mut open) {
            let reply = match &command.effect {
                Effect::Table(TableOp::Describe) => Reply::Table(TableState::Usable),
                Effect::Table(TableOp::Scan { .. }) => Reply::Page(ScanPage {
                    rows: vec![RowRead::Lease(row.clone())],
                    next: None,
                }),
                // The second renewal finds that somebody removed the row.
                Effect::Table(TableOp::Read { .. }) => Reply::Row(None),
                Effect::Table(TableOp::Write(Change::Renew { .. })) if renewed == 1 => {
                    renewed += 1;
                    let refusal = Refusal {
                        why: Why::ConditionFailed,
                        current: None,
                        detail: String::new(),
                    };
                    let outcome = Outcome::Refused(refusal);
                    open.extend(tell(
                        &mut engine,
                        at,
                        Body::Done {
                            op: command.op,
                            outcome,
                        },
                    ));
                    continue;
                }
                Effect::Table(TableOp::Write(change)) => {
                    match change {
                        Change::Take { to, .. } => {
                            taken = true;
                            row.owner = Some(to.clone());
                        }
                        Change::Renew { .. } => renewed += 1,
                        Change::Create(new) if new.counter == u64::MAX => restored = true,
                        _ => {}
                    }
                    Reply::Done
                }
                Effect::Stream(StreamOp::Describe) => Reply::Stream(StreamState {
                    readable: true,
                    created: Wall(1),
                }),
                Effect::Stream(StreamOp::ListShards { .. }) => Reply::Shards(ShardPage {
                    shards: vec![Shard {
                        id: row.key.to_shard(),
                        parent: None,
                        adjacent_parent: None,
                        range: HashRange::ALL,
                        starting: 0.into(),
                        ending: None,
                    }],
                    more: false,
                }),
                _ => Reply::Done,
            };
            let outcome = Outcome::Applied(reply);
            open.extend(tell(
                &mut engine,
                at,
                Body::Done {
                    op: command.op,
                    outcome,
                },
            ));
        }
        at += Span::from_millis(500);
        open.extend(tell(&mut engine, at, Body::Tick));
    }
    assert!(taken && renewed >= 2 && restored, "{taken} {renewed} {restored}");
    assert!(engine.held().all(|held| held.counter == u64::MAX));
}

/// The lives above are worth something only if they get somewhere.
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
