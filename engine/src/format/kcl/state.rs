//! The row with the version of KCL whose rules a fleet follows: `Migration3.0`.
//!
//! `cv` is the version, `mb` its writer, `mts` the time of the write, in milliseconds since 1970. `h` has the earlier
//! states, the newest first, each as a map of the same three keys. Workers of KCL cannot read the row if one of these
//! values differs from KCL's own spelling.

use crate::fleet::{FleetState, FleetStep, FleetVersion};
use crate::ids::WorkerId;
use crate::table::{AttributeValue, Condition, Item, Update};
use std::collections::BTreeMap;

const VERSION: &str = "cv";
const BY: &str = "mb";
const AT: &str = "mts";
const BEFORE: &str = "h";

/// The contents of the row; absent: the row names no version. Earlier states in another form than KCL's are left out.
pub(super) fn decode(item: &Item) -> Option<FleetState> {
    let version = FleetVersion::of(item.get(VERSION)?.as_s()?);
    let written = step(|name| item.get(name)).map(|step| (step.by, step.at));
    let before = match item.get(BEFORE) {
        Some(AttributeValue::L(steps)) => steps.iter().filter_map(earlier).collect(),
        _ => Vec::new(),
    };
    Some(FleetState { version, written, before })
}

fn earlier(value: &AttributeValue) -> Option<FleetStep> {
    match value {
        AttributeValue::M(map) => step(|name| map.get(name)),
        _ => None,
    }
}

/// A state that has all three attributes.
fn step<'a>(get: impl Fn(&str) -> Option<&'a AttributeValue>) -> Option<FleetStep> {
    Some(FleetStep {
        version: get(VERSION)?.as_s()?.to_owned(),
        by: get(BY)?.as_s()?.to_owned(),
        at: get(AT)?.as_n()?.parse().ok()?,
    })
}

/// The row is as it was read. KCL looks at the version alone; a rollback and a new beginning in between would not show in that.
pub(super) fn shows(seen: &FleetState) -> Condition {
    let is = |name: &'static str, value| Condition::Equals(name.into(), value);
    let mut all = vec![is(VERSION, AttributeValue::s(seen.version.as_str()))];
    if let Some((by, at)) = &seen.written {
        all.push(is(BY, AttributeValue::s(by.as_str())));
        all.push(is(AT, AttributeValue::n(at)));
    }
    Condition::All(all)
}

/// The update by the leader of a migration at its end.
pub(super) fn migrated(worker: &WorkerId, at: i64, seen: &FleetState) -> Update {
    let before: Vec<_> = seen.history().iter().map(spelled).collect();
    let update = Update::default()
        .set(VERSION, AttributeValue::s(FleetVersion::Version3xWithRollback.as_str()))
        .set(BY, AttributeValue::s(worker.clone()))
        .set(AT, AttributeValue::n(at));
    match before.is_empty() {
        true => update,
        false => update.set(BEFORE, AttributeValue::L(before)),
    }
}

fn spelled(step: &FleetStep) -> AttributeValue {
    AttributeValue::M(BTreeMap::from([
        (VERSION.to_owned(), AttributeValue::s(step.version.as_str())),
        (BY.to_owned(), AttributeValue::s(step.by.as_str())),
        (AT.to_owned(), AttributeValue::n(step.at)),
    ]))
}
