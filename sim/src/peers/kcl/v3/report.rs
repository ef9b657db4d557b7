//! Each worker reports its life every half minute, in a row of its own.

use super::super::super::sdk::key_only;
use super::super::Worker;
use super::super::lease::{ENTITY, KEY, number, s, text};
use super::Place;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::dynamo::expr::Update;
use std::collections::BTreeMap;
use std::rc::Rc;

const KIND: &str = "WORKER_METRIC_STATS";
const UPDATED: &str = "lut";
const PERIOD_US: u64 = 30_000_000;
const FIRST_US: u64 = 2_000_000;

/// A worker silent for this long is dead, by the reader's wall clock.
const SILENCE_S: u64 = 60;

impl Worker {
    pub(super) async fn report(self: Rc<Self>) {
        let Some(Place { sdk, key, beside }) = self.fleet.as_ref().map(|fleet| fleet.reports.clone()) else {
            return;
        };
        let mut pause = FIRST_US;
        while !self.host.sleep_or_stop(pause).await {
            pause = PERIOD_US;
            let now = || AttributeValue::n(self.host.wall_ns() / 1_000_000_000);
            let none = || AttributeValue::M(BTreeMap::new());
            let mut update = Update::new().set(UPDATED, now()).set("sts", none()).set("opr", none());
            if !beside {
                update = update.set(ENTITY, s(KIND)).set("sup", AttributeValue::n(1)).set("slu", now());
            }
            // A failure is logged.
            let _ = sdk.update(None, key_only(key, &self.me), update, None).await;
        }
    }
}

/// The worker of this row, if alive.
pub(super) fn live_worker(item: &Item, wall_ns: u64) -> Option<String> {
    (text(item, ENTITY) == Some(KIND)).then(|| live(item, KEY, wall_ns)).flatten()
}

/// The worker of this row in a table of reports only, if alive.
pub(super) fn live(item: &Item, key: &'static str, wall_ns: u64) -> Option<String> {
    let updated = number(item, UPDATED)?;
    let lives = updated + SILENCE_S >= wall_ns / 1_000_000_000;
    lives.then(|| text(item, key).unwrap_or_default().to_owned())
}
