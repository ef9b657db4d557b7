use super::*;
use leasehold_engine::Engine;
use leasehold_engine::input::Input;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn traced() -> Options {
    Options { trace: true, ..Options::default() }
}

#[test]
fn a_seed_fixes_everything() {
    for seed in 0..5 {
        let (one, other) = (run_seed(seed, &traced()).found, run_seed(seed, &traced()).found);
        assert_eq!(one.digest, other.digest, "seed {seed}");
        assert_eq!(one.trace, other.trace, "seed {seed}");
    }
}

#[test]
fn deeds_of_chance_can_be_done_again_from_a_list() {
    let recorded = Options { request_faults: true, ..Options::default() };
    let mut struck = 0;
    // Seeds of worlds that are not large.
    for seed in (16..24).chain(26..31) {
        let drawn = run_seed(seed, &recorded).found;
        struck += drawn.request_faults.len();
        let mut plan = Plan::draw(seed);
        plan.faults.request_faults = Some(drawn.request_faults);
        let listed = run_plan(plan, &Options::default()).map(|found| found.digest);
        assert_eq!(listed, Ok(drawn.digest), "seed {seed}");
    }
    assert!(struck > 400, "only {struck} faults in 13 worlds");
}

#[test]
fn the_summary_does_not_depend_on_the_number_of_threads() {
    let options = Options::default();
    let (one, three) = (run_seeds(16..24, 1, &options, &|_| {}), run_seeds(16..24, 3, &options, &|_| {}));
    assert_eq!((one.digest, one.inputs, one.marks), (three.digest, three.inputs, three.marks));
    assert_eq!(one.seeds, 8);
}

#[test]
fn a_stopped_run_sums_up_the_first_worlds() {
    let stopped_after_five = |jobs| {
        let asked = Arc::new(AtomicBool::new(false));
        let options = Options { cancel: Cancel::when(asked.clone()), ..Options::default() };
        run_seeds(16..10_000, jobs, &options, &|done| {
            asked.store(done >= 5, Ordering::Relaxed);
        })
    };
    let same_as_the_first = |stopped: &Summary| {
        let first = run_seeds(16..16 + stopped.seeds, 2, &Options::default(), &|_| {});
        assert_eq!((&stopped.digest, stopped.inputs), (&first.digest, first.inputs));
    };
    let alone = stopped_after_five(1);
    assert!((5..100).contains(&alone.seeds), "{} worlds", alone.seeds);
    same_as_the_first(&alone);
    // A world stopped early hides all later findings. The number would then depend on the speed of worlds.
    let beside = stopped_after_five(2);
    assert!(beside.seeds < 100, "{} worlds", beside.seeds);
    same_as_the_first(&beside);
}

#[test]
fn a_world_that_is_given_up_is_neither_well_nor_broken() {
    let whole = run_seed(36, &Options::default()).found;
    let options = Options { cancel: Cancel::when(Arc::new(AtomicBool::new(true))), ..Options::default() };
    let found = run_seed(36, &options).found;
    assert_eq!((found.ending, found.violations.len()), (Ending::Cancelled, 0));
    assert!(found.inputs < whole.inputs / 2, "{} of {}", found.inputs, whole.inputs);
}

#[test]
fn a_life_can_be_lived_again_from_its_inputs() {
    for seed in [1, 5, 9] {
        let trace = run_seed(seed, &traced()).found.trace;
        let lives = trace.iter().map(|(life, _)| *life).max().unwrap_or(0);
        assert!(trace.len() > 100, "seed {seed} tells nothing: {} inputs", trace.len());
        for life in 0..=lives {
            let inputs = || trace.iter().filter(|(of, _)| *of == life).map(|(_, input)| input.clone());
            assert_eq!(live(inputs()), live(inputs()), "seed {seed} life {life}");
        }
    }
}

fn live(inputs: impl Iterator<Item = Input>) -> (u64, usize) {
    let mut engine = Engine::new();
    let (mut digest, mut count) = (Digest::new(), 0);
    for input in inputs {
        let outbox = engine.handle(input);
        digest.absorb(&outbox.wake_at());
        for output in outbox {
            digest.absorb(&output);
            count += 1;
        }
    }
    (digest.value(), count)
}

#[test]
fn nothing_goes_wrong_where_nothing_is_made_to() {
    let calm = Options { no_faults: true, ..Options::default() };
    let summary = run_seeds(0..12, 2, &calm, &|_| {});
    assert_eq!(summary.violations.iter().map(|v| &v.summary).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(summary.excused, 0);
    assert!(summary.marks.contains_key("engine/took-unowned"), "{:?}", summary.marks);
}
