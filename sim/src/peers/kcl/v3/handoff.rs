//! The hand-over of a lease by its owner, after the leader's promise to another worker.

use super::super::super::sdk::{Failure, held};
use super::super::Worker;
use super::super::consumer::Reason;
use super::super::lease::{CHECKPOINT_OWNER, COUNTER, KEY, Lease, OWNER, SWITCHES, s};
use super::super::renewer::{Held, Renewer};
use super::super::table::{Table, key};
use crate::oracles::fact::Verb;
use leasehold_engine::table::AttributeValue;
use leasehold_local_aws::dynamo::expr::{Condition, Update};
use std::rc::Rc;

const LOOK_US: u64 = 2_000_000;

/// The condition that an attribute is unchanged since its read.
fn same(name: &'static str, value: Option<&str>) -> Condition {
    value.map_or_else(|| Condition::not_exists(name), |value| Condition::equals(name, s(value)))
}

impl Table {
    /// Promises a lease to another worker. The counter stays unchanged, and the owner keeps its right to write.
    pub(super) async fn promise(&self, lease: &mut Lease, to: &str) -> Result<bool, Failure> {
        let from = lease.owner.clone().unwrap_or_default();
        let condition = Condition::equals(OWNER, s(&from))
            .and(Condition::not_exists(CHECKPOINT_OWNER))
            .and(Condition::equals(KEY, s(lease.key.as_str())));
        let update = Update::new().set(OWNER, s(to)).set(CHECKPOINT_OWNER, s(&from));
        let written = self.sdk.update(Verb::BeginHandOver, key(&lease.key), update, Some(condition));
        let done = held(written.await)?;
        if done {
            lease.owner = Some(to.to_owned());
            lease.checkpoint_owner = Some(from);
        }
        Ok(done)
    }

    /// Assigns a lease to a worker. The write does not check the counter.
    pub(super) async fn assign(&self, verb: Verb, lease: &mut Lease, to: &str) -> Result<bool, Failure> {
        let condition = same(OWNER, lease.owner.as_deref())
            .and(same(CHECKPOINT_OWNER, lease.checkpoint_owner.as_deref()))
            .and(Condition::equals(KEY, s(lease.key.as_str())));
        let changes = lease.owner.as_deref().is_some_and(|owner| owner != to)
            || lease.checkpoint_owner.as_deref() == Some(to);
        let mut update =
            Update::new().set(OWNER, s(to)).remove(CHECKPOINT_OWNER).add(COUNTER, AttributeValue::n(1));
        if changes {
            update = update.add(SWITCHES, AttributeValue::n(1));
        }
        let written = self.sdk.update(verb, key(&lease.key), update, Some(condition));
        let done = held(written.await)?;
        if done {
            lease.owner = Some(to.to_owned());
            lease.checkpoint_owner = None;
            lease.counter += 1;
            lease.switches += u64::from(changes);
        }
        Ok(done)
    }
}

impl Worker {
    /// Tells consumers of leases promised to other workers, and hands over leases of slow consumers.
    pub(super) async fn watch_hand_overs(self: Rc<Self>) {
        loop {
            let asked: Vec<_> = self.renewer.held();
            let forgets = self.fleet.as_ref().is_some_and(|fleet| fleet.forgets);
            let is_due = |held: &Rc<Held>| {
                let forgotten = forgets && held.token.is_multiple_of(2);
                held.hand_over_by.get().is_some() && !forgotten
            };
            for held in asked.into_iter().filter(is_due) {
                let id = (held.lease.borrow().key.clone(), held.token);
                let consumer = self.consumers.borrow().get(&id).cloned();
                let Some(consumer) = consumer.filter(|consumer| !consumer.over.get()) else {
                    continue;
                };
                consumer.end(Reason::Requested);
                let is_late = held.hand_over_by.get().is_some_and(|by| self.host.wall_ns() >= by);
                if is_late {
                    self.hand_over(&held).await;
                }
            }
            self.host.sleep(LOOK_US).await;
        }
    }

    /// A single attempt, without another after a failure. The worker then holds the lease until a renewal shows the
    /// loss.
    pub(in super::super) async fn hand_over(&self, held: &Held) {
        if held.hand_over_by.get().is_none() || held.handed_over.replace(true) {
            return;
        }
        self.renewer.lock(held).await;
        let mut lease = held.lease.borrow().clone();
        if let Some(next) = lease.owner.clone() {
            // A failure is logged.
            let _ = self.table.assign(Verb::HandOver, &mut lease, &next).await;
        }
        Renewer::unlock(held);
    }
}
