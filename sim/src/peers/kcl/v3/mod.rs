//! What version 3 has more: a leader, which holds a lock, assigns the leases to all workers that report that they live, and an
//! owner is asked to hand over what another is to have.
//!
//! All of it is in the one table, or the rows by which workers know each other are in two beside it, as in 3.0 to 3.4: the world makes
//! these before it begins. Left out: the way from there, loads of hosts, which no worker measures, and the index by owners, in whose place
//! the table is scanned.

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
use super::super::sdk::{COORDINATOR, Failure, METRICS, Sdk, key_only};
use super::Worker;
use super::lease::{ENTITY, KEY, s, text};
use super::table::{Table, held};
use leasehold_engine::table::AttributeValue;
use leasehold_local_aws::dynamo::expr::Condition;
use lock::Lock;
use std::cell::Cell;
use std::rc::Rc;

const VERSION: &str = "Migration3.0";
const VERSION_3: &str = "CLIENT_VERSION_3X";

/// A table with rows by which workers know each other, and the name of its key.
#[derive(Clone)]
struct Place {
    sdk: Sdk,
    key: &'static str,
    /// Whether there is nothing but such rows.
    beside: bool,
}

pub(super) struct Member {
    /// Where workers report.
    reports: Place,
    /// Where the version and the lock are.
    states: Place,
    me: String,
    pub lock: Lock,
    /// How it assigns leases when it leads.
    assignment: Assignment,
    /// Owners forget hand-overs.
    pub forgets: bool,
    /// It is started as in a fleet of version 2: for how long all must have reported before the fleet goes over to version 3, in µs.
    migrates_after: Option<u64>,
    /// Until the fleet has gone over, it takes leases as version 2 does.
    like_version_2: Cell<bool>,
    /// It could not say which version it is, and never will.
    is_broken: Cell<bool>,
}

impl Member {
    /// `wait_us`: in a fleet that migrates, for how long all must have reported.
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

    /// Says in the table that the fleet is of version 3, unless it says so. Who is overtaken by another at that has to be
    /// started again.
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
        let written = sdk.put_plain(row, Some(Condition::not_exists(*key)));
        let done = held(written.await);
        self.is_broken.set(done != Ok(true));
        match done? {
            true => Ok(()),
            false => Err(Failure::Condition),
        }
    }
}

impl Member {
    /// Whether it takes leases as version 2 does, for now.
    pub(super) fn is_like_version_2(&self) -> bool {
        self.like_version_2.get()
    }
}

impl Worker {
    /// Says in the table of which version the fleet is, unless it says so.
    pub(super) async fn declare(&self) -> Result<(), Failure> {
        match &self.fleet {
            Some(fleet) if fleet.migrates_after.is_some() => self.declare_migration().await,
            Some(fleet) => fleet.declare_version(&self.host).await,
            None => Ok(()),
        }
    }

    /// Starts the threads that make it a member of the fleet.
    pub(super) fn join(self: &Rc<Self>) {
        self.host.spawn(self.clone().report());
        let fleet = self.fleet.as_ref().filter(|fleet| fleet.is_like_version_2());
        if let Some(wait_us) = fleet.and_then(|fleet| fleet.migrates_after) {
            self.host.spawn(self.clone().follow());
            self.host.spawn(self.clone().lead_migration(wait_us));
            return;
        }
        self.host.spawn(self.clone().discover());
        self.host.spawn(self.clone().watch_hand_overs());
        self.host.spawn(assign::Assigner::new(self.clone()).run());
    }
}
