//! The cheapest worlds of each table format are sound: a quick check for small changes of the engine.

use leasehold_engine::format::Format;
use leasehold_sim::quick;
use leasehold_sim::run::{Options, run_seed};

/// As many of the first 128 worlds of each.
const WORLDS: usize = 24;

#[test]
fn the_cheapest_worlds_are_sound() {
    for kind in Format::ALL {
        let options = Options { formats: vec![kind], ..Options::default() };
        for seed in quick::first(128, &options).take(WORLDS) {
            let found = run_seed(seed, &options).found.violations;
            assert!(found.is_empty(), "{kind:?}, seed {seed}: {found:?}");
        }
    }
}
