//! The engine takes anything in any order: see `interpreter` for what is done to it and what is checked.

mod interpreter;

use interpreter::{Life, WIDTH, run};
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
        stopped += usize::from(life.stopped);
    }
    assert!(
        sum.takes > 200 && sum.deliveries > 200 && sum.checkpoints > 50 && sum.losses > 50 && sum.ends > 20,
        "{sum:?}"
    );
    assert!((1..200).contains(&stopped), "{stopped} stopped");
}
