//! Workers of the KCL and ours, one after the other in the same scenes on the same machine, at their defaults: the
//! standstill of shards, and the repeated records. The test prints a table. Only reads are quicker than by default,
//! equally for both: the measured times are then times of leases.

use crate::interop::fleet::{Fleet, program};
use leasehold_tests::history::{Cause, Handover};
use leasehold_tests::kcl_java::{Kcl, Program};
use leasehold_tests::member::Member;
use leasehold_tests::wait::until;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const OURS: &[&str] = &["--reader-idle-interval=200 ms", "--reader-min-interval=200 ms"];
const SHARDS: &[u32] = &[0, 1, 2];
/// KCL waits for up to a minute before filling a table, and for its leader's next report.
const LONG: Duration = Duration::from_secs(300);

/// Whose workers take part in a scene.
enum Kind<'a> {
    Ours,
    Theirs(&'a Program),
}

impl Kind<'_> {
    fn start(&self, fleet: &Fleet, name: &str) -> Member {
        match self {
            Kind::Ours => fleet.ours_with(name, OURS),
            Kind::Theirs(program) => fleet.theirs_by_default(program, name),
        }
    }
}

/// The longest of these, in seconds, and how many records came again.
#[derive(Default)]
struct Measured {
    seconds: f64,
    repeats: usize,
    moved: usize,
}

impl Measured {
    fn of(handovers: &[Handover], cause: Cause) -> Self {
        let of_cause = handovers.iter().filter(|handover| handover.cause == cause);
        of_cause.fold(Self::default(), |all, handover| Self {
            seconds: all.seconds.max(handover.standstill.as_secs_f64()),
            repeats: all.repeats + handover.repeats,
            moved: all.moved + 1,
        })
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.moved {
            0 => f.write_str("–"),
            _ => write!(f, "{:.1} s, {} again", self.seconds, self.repeats),
        }
    }
}

/// From now until each shard's first record was printed by this worker.
async fn first_records(fleet: &Fleet, began: Instant, by: &str) -> f64 {
    until(&format!("{by} to read every shard"), LONG, || async {
        let seen = fleet.watch.seen().into_iter().filter(|seen| seen.worker == by);
        let shards: BTreeSet<String> = seen.map(|seen| seen.record.shard).collect();
        shards.len() == SHARDS.len()
    })
    .await;
    began.elapsed().as_secs_f64()
}

/// What a kind of worker comes to, in the order of the table's rows.
async fn measured(test: &'static str, kind: &Kind<'_>) -> [String; 6] {
    let (fleet, producer) = Fleet::start(test).await;
    let began = Instant::now();
    let mut anna = kind.start(&fleet, "anna");
    let cold = first_records(&fleet, began, "anna").await;
    let mut bert = kind.start(&fleet, "bert");
    fleet.until_owned_within("bert to get a share", SHARDS, &["anna", "bert"], LONG).await;
    fleet.leave(&mut anna).await;
    fleet.until_owned_within("what anna read", SHARDS, &["bert"], LONG).await;
    fleet.kill(&mut bert);
    let began = Instant::now();
    let mut carl = kind.start(&fleet, "carl");
    let taken_over = first_records(&fleet, began, "carl").await;
    fleet.until_owned_within("what bert read", SHARDS, &["carl"], LONG).await;
    let handovers = fleet.watch.handovers();
    fleet.leave(&mut carl).await;
    let began = Instant::now();
    let dora = kind.start(&fleet, "dora");
    let warm = first_records(&fleet, began, "dora").await;
    fleet.finish(producer, vec![dora]).await;
    [
        format!("{cold:.1} s"),
        format!("{warm:.1} s"),
        Measured::of(&handovers, Cause::Taken).to_string(),
        Measured::of(&handovers, Cause::Left).to_string(),
        Measured::of(&handovers, Cause::Killed).to_string(),
        format!("{taken_over:.1} s"),
    ]
}

/// Takes some minutes: `cargo test … compare -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures for some minutes"]
async fn the_same_scenes_with_workers_of_the_kcl_and_with_ours() {
    const TEST: &str = "compare";
    let (Some(two), Some(three)) = (program(TEST, Kcl::Two).await, program(TEST, Kcl::Three).await) else {
        return;
    };
    let kinds = [
        ("Leasehold", measured("compare-ours", &Kind::Ours).await),
        ("KCL 2.7.2", measured("compare-kcl-2", &Kind::Theirs(&two)).await),
        ("KCL 3.5.1", measured("compare-kcl-3", &Kind::Theirs(&three)).await),
    ];
    let rows = [
        "new table, until every shard is read",
        "a table that all workers left, until every shard is read",
        "a worker joins, each shard that moves",
        "a worker stops, each shard that moves",
        "a worker is killed, each shard that moves",
        "its table taken over by a new worker, until every shard is read",
    ];
    println!("| | {} |", kinds.each_ref().map(|(name, _)| *name).join(" | "));
    for (n, row) in rows.iter().enumerate() {
        println!("| {row} | {} |", kinds.each_ref().map(|(_, cells)| cells[n].clone()).join(" | "));
    }
    let [(_, ours), ..] = &kinds;
    assert!(ours[2].ends_with(" 0 again") && ours[3].ends_with(" 0 again"), "{ours:?}");
}
