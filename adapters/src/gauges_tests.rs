//! The gauges, over what an engine would hold and a store keeps, on tokio's paused clock.

use super::*;
use crate::record::Record;
use crate::runtime::{Runtime, TokioRuntime};
use crate::store::Answer;
use crate::testing::op;
use bytes::Bytes;
use leasehold_engine::Held;
use leasehold_engine::aggregate::Misplaced;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::Input;
use leasehold_engine::output::Output;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::Wall;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use std::sync::Arc;
use std::time::Duration;

/// Holds these leases: their shard, token, and whether it has stalled. As many rows cannot be read. One that has stalled under
/// token 9 is stopped.
struct Holds(Vec<(&'static str, u64, bool)>);

impl Machine for Holds {
    fn feed(&mut self, _: Input, _: &mut dyn FnMut(Output)) -> Mono {
        Mono::NEVER
    }
    fn is_stopped(&self) -> bool {
        false
    }
    fn each_held(&self, each: &mut dyn FnMut(&Held<'_>)) {
        for (shard, token, stalled) in &self.0 {
            each(&Held {
                lease: &LeaseKey::from(*shard),
                token: FencingToken(*token),
                counter: *token,
                checkpoint: Checkpoint::TrimHorizon,
                valid_until: Mono::NEVER,
                open: true,
                stalled: *stalled,
                paused: false,
                stopped: *stalled && *token == 9,
                processed: None,
            });
        }
    }
    fn unreadable(&self) -> usize {
        self.0.len()
    }
}

struct Rig {
    recorder: PrometheusRecorder,
    runtime: Arc<dyn Runtime>,
    store: Store,
    gauges: Option<Gauges>,
}

fn rig() -> Rig {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
    let store = Store::new(Misplaced::Drop, runtime.clone());
    Rig {
        recorder: PrometheusBuilder::new().build_recorder(),
        gauges: Some(Gauges::new(Meter::new("a", "s", "w:1"), store.clone())),
        runtime,
        store,
    }
}

impl Rig {
    fn set(&mut self, held: &[(&'static str, u64, bool)]) {
        let (now, engine) = (self.runtime.now(), Holds(held.to_vec()));
        ::metrics::with_local_recorder(&self.recorder, || {
            self.gauges.as_mut().unwrap().set(now, &engine);
        });
    }

    /// An answer with records of these ages, in seconds.
    fn answer(&self, id: u64, behind_secs: u64, ages: &[i64], ends: bool) {
        let Wall(wall) = self.runtime.wall();
        let record = |(n, age): (u64, &i64)| Record {
            shard: "s-1".into(),
            position: Position::of((id * 100 + n).into()),
            partition_key: "k".into(),
            explicit_hash_key: None,
            data: Bytes::from_static(b"data"),
            arrival: Some(Wall(wall - age * 1_000)),
            aggregated: false,
        };
        let answer = Answer {
            records: (0..).zip(ages).map(record).collect(),
            behind_ms: behind_secs * 1_000,
            next: (!ends).then(|| "next".into()),
            ..Answer::default()
        };
        self.store.take_in(&"s-1".into(), op(id), answer);
    }

    /// The value of a gauge, rounded down to a whole number; its labels end with `labels`.
    fn gauge(&self, name: &str, labels: &str) -> i64 {
        let text = self.recorder.handle().render();
        let series =
            text.lines().find(|line| line.starts_with(&format!("{name}{{")) && line.contains(labels));
        let value = series.unwrap_or_else(|| panic!("no {name} with {labels} in\n{text}"));
        let value: f64 = value.rsplit(' ').next().unwrap().parse().unwrap();
        value.floor() as i64
    }

    fn sums(&self) -> [i64; 4] {
        let names = ["leases_held", "leases_stalled", "waiting_records", "behind_seconds"];
        names.map(|name| self.gauge(&format!("leasehold_{name}"), r#"worker="w:1"}"#))
    }

    fn shard(&self, shard: &str) -> [i64; 2] {
        let label = format!(r#"worker="w:1",shard="{shard}"}}"#);
        ["waiting_records", "behind_seconds"]
            .map(|name| self.gauge(&format!("leasehold_shard_{name}"), &label))
    }
}

async fn secs(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

const ONE: &[(&str, u64, bool)] = &[("s-1", 3, false)];

#[tokio::test(start_paused = true)]
async fn records_behind_a_handler_grow_older_though_nothing_is_read() {
    let mut rig = rig();
    // Read at the tip, and nothing is processed since.
    rig.answer(1, 0, &[2, 1, 0], false);
    rig.answer(2, 0, &[0], false);
    rig.set(ONE);
    assert_eq!((rig.sums(), rig.shard("s-1")), ([1, 0, 4, 2], [4, 2]));
    secs(60).await;
    rig.set(&[("s-1", 3, true)]);
    assert_eq!((rig.sums(), rig.shard("s-1")), ([1, 1, 4, 62], [4, 62]));
    // The handler acknowledges the first record: what is left is a second younger.
    rig.store.processed_through(&"s-1".into(), Position::of(100.into()));
    rig.set(ONE);
    assert_eq!((rig.sums(), rig.shard("s-1")), ([1, 0, 3, 61], [3, 61]));
    rig.store.processed(&"s-1".into(), op(1));
    rig.set(ONE);
    assert_eq!(rig.shard("s-1"), [1, 60]);
}

#[tokio::test(start_paused = true)]
async fn without_records_a_shard_is_behind_by_the_last_answers_age() {
    let mut rig = rig();
    rig.set(ONE);
    secs(5).await;
    rig.set(ONE);
    assert_eq!(rig.shard("s-1"), [0, 5], "never read, for so long");
    rig.answer(1, 90, &[], false);
    rig.set(ONE);
    assert_eq!(rig.shard("s-1"), [0, 90]);
    rig.answer(2, 0, &[], false);
    rig.set(ONE);
    assert_eq!(rig.shard("s-1"), [0, 0], "at the tip");
    secs(30).await;
    rig.set(ONE);
    assert_eq!(rig.shard("s-1"), [0, 30], "reads fail since");
    rig.answer(3, 0, &[7], true);
    rig.set(ONE);
    assert_eq!(rig.shard("s-1"), [1, 7]);
    rig.store.processed(&"s-1".into(), op(3));
    secs(30).await;
    rig.set(ONE);
    assert_eq!(rig.shard("s-1"), [0, 0], "all of a shard that has ended");
}

#[tokio::test(start_paused = true)]
async fn with_a_slow_clock_a_record_is_as_old_as_its_answer() {
    let mut rig = rig();
    rig.answer(1, 40, &[-3_600], false);
    rig.set(ONE);
    assert_eq!(rig.shard("s-1"), [1, 40]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_held_no_more_is_set_to_nothing_once() {
    let mut rig = rig();
    rig.answer(1, 0, &[9], false);
    rig.set(&[("s-1", 3, true), ("s-2", 4, false)]);
    assert_eq!((rig.sums(), rig.shard("s-1")), ([2, 1, 1, 9], [1, 9]));
    rig.set(&[("s-2", 4, false)]);
    assert_eq!((rig.sums(), rig.shard("s-1")), ([1, 0, 0, 0], [0, 0]));
    secs(5).await;
    // It comes back under another ownership: what was held before does not count.
    rig.store.close(&"s-1".into(), op(50));
    rig.set(&[("s-1", 8, false), ("s-2", 4, false)]);
    assert_eq!((rig.sums(), rig.shard("s-1")), ([2, 0, 0, 5], [0, 0]));
    assert_eq!(rig.shard("s-2"), [0, 5]);
}

#[tokio::test(start_paused = true)]
async fn rows_that_cannot_be_read_are_counted_as_long_as_it_runs() {
    let mut rig = rig();
    let unreadable = |rig: &Rig| rig.gauge("leasehold_rows_unreadable", r#"worker="w:1"}"#);
    rig.set(&[("s-1", 3, false), ("s-2", 4, false)]);
    assert_eq!(unreadable(&rig), 2);
    rig.set(ONE);
    assert_eq!(unreadable(&rig), 1);
    let gauges = rig.gauges.take();
    ::metrics::with_local_recorder(&rig.recorder, || drop(gauges));
    assert_eq!(unreadable(&rig), 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_dropped_leaves_nothing_behind() {
    let mut rig = rig();
    rig.answer(1, 0, &[9], false);
    rig.set(&[("s-1", 3, true)]);
    assert_eq!((rig.sums(), rig.shard("s-1")), ([1, 1, 1, 9], [1, 9]));
    let gauges = rig.gauges.take();
    ::metrics::with_local_recorder(&rig.recorder, || drop(gauges));
    assert_eq!((rig.sums(), rig.shard("s-1")), ([0; 4], [0; 2]));
}

#[tokio::test(start_paused = true)]
async fn shards_that_are_stopped_for_a_record_are_counted() {
    let mut rig = rig();
    let stopped = |rig: &Rig| rig.gauge("leasehold_shards_stopped", r#"worker="w:1"}"#);
    rig.set(&[("s-1", 9, true), ("s-2", 4, true)]);
    assert_eq!(stopped(&rig), 1);
    rig.set(ONE);
    assert_eq!(stopped(&rig), 0);
}
