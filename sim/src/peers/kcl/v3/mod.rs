//! The additions of version 3: a leader with a lock assigns the leases to all workers that report their life, and
//! owners hand leases over on request.
//!
//! All rows are in the one table; or, as in 3.0 to 3.4, the workers' own rows are in two tables beside the lease table,
//! and the world creates both tables before its beginning. Left out: the migration from two tables to one, hosts' loads
//! (measured by no worker), and the index of owners, replaced by a scan of the table.

mod assign;
mod count;
mod discover;
mod handoff;
mod lock;
mod migrate;
mod report;
mod variance;

use super::super::fleet::{Assignment, Fleet};
use super::super::host::Host;
use super::super::sdk::{COORDINATOR, Failure, METRICS, Sdk, held, key_only};
use super::Worker;
use super::lease::{ENTITY, KEY, s, text};
use super::table::Table;
use leasehold_engine::table::AttributeValue;
use leasehold_local_aws::dynamo::expr::Condition;
use lock::Lock;
use std::cell::Cell;
use std::rc::Rc;

const VERSION: &str = "Migration3.0";
const VERSION_3: &str = "CLIENT_VERSION_3X";

/// A table with the workers' own rows, and the name of its key.
#[derive(Clone)]
struct Place {
    sdk: Sdk,
    key: &'static str,
    /// Whether the table holds no other rows.
    beside: bool,
}

pub(super) struct Member {
    /// The place of the workers' reports.
    reports: Place,
    /// The place of the version and of the lock.
    states: Place,
    me: String,
    pub lock: Lock,
    /// The strategy of the worker as a leader.
    assignment: Assignment,
    /// Owners forget hand-overs.
    pub forgets: bool,
    /// In a worker started as in a fleet of version 2: the time for which all workers must have reported before the
    /// fleet changes to version 3, in µs.
    migrates_after: Option<u64>,
    /// Until the fleet's change, the worker takes leases like version 2.
    like_version_2: Cell<bool>,
    /// The worker lost the race to write the version, and never recovers.
    is_broken: Cell<bool>,
}

impl Member {
    /// `wait_us`: in a fleet that migrates, the time for which all workers must have reported.
    pub(super) fn new(table: &Table, me: &str, fleet: &Fleet, wait_us: u64) -> Self {
        let place = |name, key| match fleet.tables_beside {
            true => Place { sdk: table.sdk.on(name), key, beside: true },
            false => Place { sdk: table.sdk.clone(), key: KEY, beside: false },
        };
        let states = place(COORDINATOR, "key");
        Self {
            reports: place(METRICS, "wid"),
            me: me.to_owned(),
            lock: Lock::new(states.clone(), me),
            states,
            assignment: fleet.assignment,
            forgets: fleet.forgets,
            migrates_after: fleet.migrates.then_some(wait_us),
            like_version_2: Cell::new(false),
            is_broken: Cell::new(false),
        }
    }

    /// Writes version 3 of the fleet into the table, unless the table says version 3 already. A worker that loses the
    /// race for this write needs a restart.
    pub(super) async fn declare_version(&self, host: &Host) -> Result<(), Failure> {
        if self.is_broken.get() {
            return Err(Failure::Other);
        }
        let Place { sdk, key, .. } = &self.states;
        if let Some(row) = sdk.get(key_only(key, VERSION), true).await? {
            return match text(&row, "cv") {
                Some(VERSION_3) => Ok(()),
                _ => Err(Failure::Other),
            };
        }
        let mut row = key_only(key, VERSION);
        if !self.states.beside {
            row.insert(ENTITY.into(), s("CLIENT_VERSION_MIGRATION"));
        }
        row.insert("cv".into(), s(VERSION_3));
        row.insert("mb".into(), s(&self.me));
        row.insert("mts".into(), AttributeValue::n(host.wall_ns() / 1_000_000));
        row.insert("h".into(), AttributeValue::L(Vec::new()));
        let written = sdk.put(None, row, Some(Condition::not_exists(*key)));
        let done = held(written.await);
        self.is_broken.set(done != Ok(true));
        match done? {
            true => Ok(()),
            false => Err(Failure::Condition),
        }
    }
}

impl Member {
    /// Whether the worker takes leases like version 2, for now.
    pub(super) fn is_like_version_2(&self) -> bool {
        self.like_version_2.get()
    }
}

impl Worker {
    /// Writes the version of the fleet into the table, unless the version is there.
    pub(super) async fn declare(&self) -> Result<(), Failure> {
        match &self.fleet {
            Some(fleet) if fleet.migrates_after.is_some() => self.declare_migration().await,
            Some(fleet) => fleet.declare_version(&self.host).await,
            None => Ok(()),
        }
    }

    /// Starts the threads of a member of the fleet.
    pub(super) fn join(self: &Rc<Self>) {
        self.host.spawn(self.clone().report());
        let fleet = self.fleet.as_ref().filter(|fleet| fleet.is_like_version_2());
        if let Some(wait_us) = fleet.and_then(|fleet| fleet.migrates_after) {
            self.host.spawn(self.clone().follow());
            self.host.spawn(self.clone().lead_migration(wait_us));
            return;
        }
        self.begin_version_3();
    }

    fn begin_version_3(self: &Rc<Self>) {
        self.host.spawn(self.clone().discover());
        self.host.spawn(self.clone().watch_hand_overs());
        self.host.spawn(assign::Assigner::new(self.clone()).run());
    }
}
