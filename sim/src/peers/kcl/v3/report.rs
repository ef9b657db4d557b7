//! Each worker says every half minute that it lives, in a row of its own.

use super::super::super::sdk::key_only;
use super::super::Worker;
use super::super::lease::{ENTITY, KEY, number, s, text};
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::dynamo::expr::Update;
use std::collections::BTreeMap;
use std::rc::Rc;

const KIND: &str = "WORKER_METRIC_STATS";
const UPDATED: &str = "lut";
const PERIOD_US: u64 = 30_000_000;
const FIRST_US: u64 = 2_000_000;

/// Who has said nothing for so long lives no more, by the reader's wall clock.
const SILENCE_S: u64 = 60;

impl Worker {
    pub(super) async fn report(self: Rc<Self>) {
        let mut pause = FIRST_US;
        while !self.host.sleep_or_stop(pause).await {
            pause = PERIOD_US;
            let now = || AttributeValue::n(self.host.wall_ns() / 1_000_000_000);
            let none = || AttributeValue::M(BTreeMap::new());
            let update = Update::new()
                .set(ENTITY, s(KIND))
                .set(UPDATED, now())
                .set("sts", none())
                .set("opr", none())
                .set("sup", AttributeValue::n(1))
                .set("slu", now());
            // A failure is logged.
            let _ = self
                .table
                .sdk
                .update_plain(key_only(KEY, &self.me), update, None)
                .await;
        }
    }
}

/// The worker whose row this is, if it lives.
pub(super) fn live_worker(item: &Item, wall_ns: u64) -> Option<String> {
    if text(item, ENTITY) != Some(KIND) {
        return None;
    }
    let updated = number(item, UPDATED)?;
    let lives = updated + SILENCE_S >= wall_ns / 1_000_000_000;
    lives.then(|| text(item, KEY).unwrap_or_default().to_owned())
}
