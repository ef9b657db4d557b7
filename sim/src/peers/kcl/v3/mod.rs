//! What version 3 has more: a leader, which holds a lock, assigns the leases to all workers that report that they live, and an
//! owner is asked to hand over what another is to have.
//!
//! All of it is in the one table. Left out: loads of hosts, which no worker measures, and the index by owners, in whose place
//! the table is scanned.

mod assign;
mod count;
mod discover;
mod handoff;
mod lock;
mod report;
mod variance;

use super::super::fleet::Assignment;
use super::super::host::Host;
use super::super::sdk::{Failure, key_only};
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

pub(super) struct Member {
    table: Table,
    me: String,
    pub lock: Lock,
    /// How it assigns leases when it leads.
    assignment: Assignment,
    /// It could not say which version it is, and never will.
    is_broken: Cell<bool>,
}

impl Member {
    pub(super) fn new(table: &Table, me: &str, assignment: Assignment) -> Self {
        Self {
            table: table.clone(),
            me: me.to_owned(),
            lock: Lock::new(table.sdk.clone(), me),
            assignment,
            is_broken: Cell::new(false),
        }
    }

    /// Says in the table that the fleet is of version 3, unless it says so. Who is overtaken by another at that has to be
    /// started again.
    pub(super) async fn declare_version(&self, host: &Host) -> Result<(), Failure> {
        if self.is_broken.get() {
            return Err(Failure::Other);
        }
        if let Some(row) = self.table.sdk.get(key_only(KEY, VERSION), true).await? {
            return match text(&row, "cv") {
                Some(VERSION_3) => Ok(()),
                _ => Err(Failure::Other),
            };
        }
        let mut row = key_only(KEY, VERSION);
        row.insert(ENTITY.into(), s("CLIENT_VERSION_MIGRATION"));
        row.insert("cv".into(), s(VERSION_3));
        row.insert("mb".into(), s(&self.me));
        row.insert("mts".into(), AttributeValue::n(host.wall_ns() / 1_000_000));
        row.insert("h".into(), AttributeValue::L(Vec::new()));
        let written = self.table.sdk.put_plain(row, Some(Condition::not_exists(KEY)));
        let done = held(written.await);
        self.is_broken.set(done != Ok(true));
        match done? {
            true => Ok(()),
            false => Err(Failure::Condition),
        }
    }
}

impl Worker {
    /// Starts the threads that make it a member of the fleet.
    pub(super) fn join(self: &Rc<Self>) {
        self.host.spawn(self.clone().report());
        self.host.spawn(self.clone().discover());
        self.host.spawn(self.clone().watch_hand_overs());
        self.host.spawn(assign::Assigner::new(self.clone()).run());
    }
}
