//! Workers started as in a fleet of version 2: they report, take leases like version 2, and change to the rules of
//! version 3 on a sign in the row of the version. Their leader, the first of the shuffle of all owners, writes the sign
//! when the index of owners exists and all owners have reported for long enough.
//!
//! Left out: a worker's order to go back, and the interval of five minutes between elections of the leader.

use super::super::super::sdk::{Failure, held, key_only};
use super::super::Worker;
use super::super::lease::{ENTITY, KEY, number, s, text};
use super::super::{leader, table::Table};
use super::{VERSION, report};
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::dynamo::expr::{Condition, Update};
use std::collections::BTreeMap;
use std::rc::Rc;

const INIT: &str = "CLIENT_VERSION_INIT";
const UPGRADE: &str = "CLIENT_VERSION_UPGRADE_FROM_2X";
const ROLLBACK: &str = "CLIENT_VERSION_3X_WITH_ROLLBACK";
const KNOWN: [&str; 5] = [INIT, UPGRADE, "CLIENT_VERSION_2X", ROLLBACK, super::VERSION_3];

const MINUTE_US: u64 = 60_000_000;
/// The most delay of the first look at the version.
const LATE_US: u64 = 30_000_000;
/// The number of earlier states in the row.
const HISTORY: usize = 10;

/// A state in the form of the row and of its history.
fn state(version: &str, by: &str, at: AttributeValue) -> BTreeMap<String, AttributeValue> {
    BTreeMap::from([("cv".to_owned(), s(version)), ("mb".to_owned(), s(by)), ("mts".to_owned(), at)])
}

/// The version in a row. These workers cannot read a row with any part in an unexpected form.
fn version_of(row: &Item) -> Result<&str, Failure> {
    let is_state = |get: &dyn Fn(&str) -> Option<AttributeValue>| {
        let version = get("cv").is_some_and(|cv| cv.as_s().is_some_and(|cv| KNOWN.contains(&cv)));
        let at = get("mts").is_some_and(|at| at.as_n().is_some_and(|at| at.parse::<i64>().is_ok()));
        version && at && get("mb").is_some_and(|by| by.as_s().is_some())
    };
    let history = match row.get("h") {
        None => true,
        Some(AttributeValue::L(steps)) => steps.iter().all(|step| match step {
            AttributeValue::M(step) => is_state(&|name| step.get(name).cloned()),
            _ => false,
        }),
        Some(_) => false,
    };
    match text(row, "cv").filter(|_| history && is_state(&|name| row.get(name).cloned())) {
        Some(version) => Ok(version),
        None => Err(Failure::Other),
    }
}

impl Worker {
    /// Writes the start of the migration into the table, unless the table has a version already. Sets the rules to
    /// begin with.
    pub(super) async fn declare_migration(&self) -> Result<(), Failure> {
        let Some(fleet) = &self.fleet else { return Ok(()) };
        let sdk = &self.table.sdk;
        if let Some(row) = sdk.get(key_only(KEY, VERSION), true).await? {
            let version = version_of(&row)?;
            fleet.like_version_2.set(version == UPGRADE);
        } else {
            let now = || AttributeValue::n(self.host.wall_ns() / 1_000_000);
            let mut row = key_only(KEY, VERSION);
            row.insert(ENTITY.into(), s("CLIENT_VERSION_MIGRATION"));
            let parts = state(UPGRADE, &self.me, now());
            row.extend(parts.into_iter().map(|(name, value)| (name.into(), value)));
            let before = AttributeValue::M(state(INIT, &self.me, now()));
            row.insert("h".into(), AttributeValue::L(vec![before]));
            let written = sdk.put(None, row, Some(Condition::not_exists(KEY))).await;
            if !held(written)? {
                return Err(Failure::Condition);
            }
            fleet.like_version_2.set(true);
        }
        match fleet.like_version_2.get() {
            // Another worker may be creating the index, or may have created the index.
            true => match sdk.create_owner_index().await {
                Err(Failure::Throttled) => Err(Failure::Throttled),
                _ => Ok(()),
            },
            false => Ok(()),
        }
    }

    /// Looks once a minute for the fleet's change to version 3, and follows the change.
    pub(super) async fn follow(self: Rc<Self>) {
        let Some(fleet) = &self.fleet else { return };
        let late = self.host.below("follow", LATE_US);
        let mut pause = MINUTE_US + late;
        while !self.host.sleep_or_stop(pause).await {
            pause = MINUTE_US;
            let row = self.table.sdk.get(key_only(KEY, VERSION), true).await;
            // An unreadable row is logged.
            if let Ok(Some(row)) = row
                && version_of(&row) == Ok(ROLLBACK)
            {
                fleet.like_version_2.set(false);
                return self.begin_version_3();
            }
        }
    }

    /// The leader looks once a minute whether all workers are ready. A failed look leaves its knowledge unchanged.
    pub(super) async fn lead_migration(self: Rc<Self>, wait_us: u64) {
        let Some(fleet) = &self.fleet else { return };
        let mut since = None;
        while !self.host.sleep_or_stop(MINUTE_US).await && fleet.like_version_2.get() {
            let now = self.host.mono_us();
            match self.is_ready().await {
                Ok(true) => {
                    let since = *since.get_or_insert(now);
                    if now - since >= wait_us && self.go_over().await == Ok(true) {
                        return;
                    }
                }
                Ok(false) => since = None,
                Err(_) => {}
            }
        }
    }

    /// Whether this worker leads, and every owner reports. A lease without an owner counts as a lease of a silent
    /// owner.
    async fn is_ready(&self) -> Result<bool, Failure> {
        let owners: Vec<Option<String>> =
            self.table.leases().await?.into_iter().map(|lease| lease.owner).collect();
        if !leader::leads(owners.iter().flatten().cloned(), &self.me)
            || !self.table.sdk.has_owner_index().await?
        {
            return Ok(false);
        }
        let live = self.live_workers().await?;
        let reports = |owner: &Option<String>| owner.as_ref().is_some_and(|owner| live.contains(owner));
        Ok(owners.iter().all(reports))
    }

    async fn live_workers(&self) -> Result<Vec<String>, Failure> {
        let (mut live, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = self.table.sdk.scan(false, after).await?;
            let now = self.host.wall_ns();
            live.extend(page.iter().filter_map(|item| report::live_worker(item, now)));
            if next.is_none() {
                return Ok(live);
            }
            after = next;
        }
    }

    async fn go_over(&self) -> Result<bool, Failure> {
        let table: &Table = &self.table;
        let Some(row) = table.sdk.get(key_only(KEY, VERSION), true).await? else {
            return Ok(false);
        };
        let before = version_of(&row)?;
        let at = AttributeValue::n(number(&row, "mts").unwrap_or(0));
        let by = text(&row, "mb").unwrap_or_default();
        let mut history = vec![AttributeValue::M(state(before, by, at))];
        if let Some(AttributeValue::L(steps)) = row.get("h") {
            history.extend(steps.iter().cloned());
        }
        history.truncate(HISTORY);
        let now = AttributeValue::n(self.host.wall_ns() / 1_000_000);
        let update = Update::new()
            .set("cv", s(ROLLBACK))
            .set("mb", s(&self.me))
            .set("mts", now)
            .set("h", AttributeValue::L(history));
        let condition = Condition::exists(KEY).and(Condition::equals("cv", s(UPGRADE)));
        let written = table.sdk.update(None, key_only(KEY, VERSION), update, Some(condition));
        held(written.await)
    }
}
