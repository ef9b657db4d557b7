//! The leader's lock: a row with a version that its holder changes again and again. A worker takes the lock after
//! seeing an unchanged version for a whole duration of the lock, by its own clock.

use super::super::super::host::Host;
use super::super::super::sdk::{Failure, key_only};
use super::super::lease::{ENTITY, s, text};
use super::Place;
use crate::peers::{KCL_LOCK_PERIOD_US as PERIOD_US, KCL_LOCK_US as DURATION_US};
use leasehold_engine::table::Item;
use leasehold_local_aws::dynamo::expr::{Condition, Update};
use std::cell::{Cell, RefCell};

const LEADER: &str = "Leader";
const OWNER: &str = "ownerName";
const VERSION: &str = "recordVersionNumber";
const DURATION: &str = "leaseDuration";

/// A version, and its beginning, by the monotonic clock.
#[derive(Clone)]
struct Known {
    version: String,
    since_us: u64,
}

pub(in super::super) struct Lock {
    place: Place,
    me: String,
    mine: RefCell<Option<Known>>,
    another: RefCell<Option<Known>>,
    /// A task asks; other tasks wait as long as necessary.
    busy: Cell<bool>,
    /// The time of the last question, by the wall clock in ns, and its answer.
    last: Cell<(u64, bool)>,
    over: Cell<bool>,
}

impl Lock {
    pub(super) fn new(place: Place, me: &str) -> Self {
        Self {
            place,
            me: me.to_owned(),
            mine: RefCell::default(),
            another: RefCell::default(),
            busy: Cell::new(false),
            last: Cell::new((0, false)),
            over: Cell::new(false),
        }
    }

    fn host(&self) -> &Host {
        &self.place.sdk.host
    }

    fn key(&self) -> Item {
        key_only(self.place.key, LEADER)
    }

    /// Whether this worker leads; without another leader, the worker tries to lead.
    pub(in super::super) async fn is_leader(&self) -> Result<bool, Failure> {
        self.host().until(u64::MAX, || !self.busy.get()).await;
        let (asked, led) = self.last.get();
        let now = self.host().wall_ns();
        // The worker trusts a negative answer for a while.
        if self.over.get() || (!led && asked > 0 && asked + PERIOD_US * 1_000 > now) {
            return Ok(false);
        }
        self.busy.set(true);
        let leads = match self.holds() {
            true => Ok(true),
            false => self.acquire().await,
        };
        self.busy.set(false);
        self.last.set((self.host().wall_ns(), leads?));
        leads
    }

    fn holds(&self) -> bool {
        let now = self.host().mono_us();
        let mine = self.mine.borrow();
        mine.as_ref().is_some_and(|known| now <= known.since_us + DURATION_US)
    }

    async fn acquire(&self) -> Result<bool, Failure> {
        let begun = self.host().mono_us();
        loop {
            let row = self.place.sdk.get(self.key(), true).await?;
            let version = row.as_deref().map(|row| text(row, VERSION).unwrap_or_default());
            let now = self.host().mono_us();
            let condition = match version {
                None => Condition::not_exists(self.place.key),
                Some(version) => {
                    let since = self.seen_since(version, now);
                    // The row says the duration of its lock.
                    let lasts = row.as_deref().and_then(|row| text(row, DURATION)?.parse::<u64>().ok());
                    if now <= since + lasts.map_or(DURATION_US, |ms| ms.saturating_mul(1_000)) {
                        return Ok(false);
                    }
                    Condition::exists(self.place.key).and(Condition::equals(VERSION, s(version)))
                }
            };
            let version = self.new_version();
            let mut item = self.key();
            if !self.place.beside {
                item.insert(ENTITY.into(), s("LEADER"));
            }
            item.insert(OWNER.into(), s(&self.me));
            item.insert(DURATION.into(), s("120000"));
            item.insert(VERSION.into(), s(&version));
            match self.place.sdk.put(None, item, Some(condition)).await {
                Ok(()) => {
                    let since_us = now;
                    self.mine.replace(Some(Known { version, since_us }));
                    return Ok(true);
                }
                // Every task in wait for the answer waits on.
                Err(_) if self.host().mono_us() - begun <= 1_000_000 => self.host().sleep(PERIOD_US).await,
                Err(_) => return Ok(false),
            }
        }
    }

    /// The first sight of this version of another's lock by this worker.
    fn seen_since(&self, version: &str, now: u64) -> u64 {
        let mut another = self.another.borrow_mut();
        match &*another {
            Some(known) if known.version == version => known.since_us,
            _ => {
                let version = version.to_owned();
                *another = Some(Known { version, since_us: now });
                now
            }
        }
    }

    fn new_version(&self) -> String {
        format!("{:016x}", self.host().below("version", u64::MAX))
    }

    fn guard(&self, version: &str) -> Condition {
        Condition::exists(self.place.key)
            .and(Condition::equals(VERSION, s(version)))
            .and(Condition::equals(OWNER, s(&self.me)))
    }

    /// Renews the lock now and then.
    pub(super) async fn beat(&self) {
        while !self.over.get() {
            let mine = self.mine.borrow().clone();
            if let Some(known) = mine {
                let asked = self.host().mono_us();
                if asked > known.since_us + DURATION_US {
                    self.mine.replace(None);
                } else {
                    let version = self.new_version();
                    let update = Update::new().set(DURATION, s("120000")).set(VERSION, s(&version));
                    let guard = self.guard(&known.version);
                    match self.place.sdk.update(None, self.key(), update, Some(guard)).await {
                        Ok(()) => drop(self.mine.replace(Some(Known { version, since_us: asked }))),
                        Err(Failure::Condition) => drop(self.mine.replace(None)),
                        // The next period brings another attempt.
                        Err(_) => {}
                    }
                }
            }
            self.host().until(PERIOD_US, || self.over.get()).await;
        }
    }

    /// Lets another worker lead. This worker may be the next leader again.
    pub(super) async fn resign(&self) {
        if let Some(known) = self.mine.take() {
            // A failure is ignored.
            let _ = self.place.sdk.delete(self.key(), Some(self.guard(&known.version))).await;
        }
    }

    /// Resigns for good.
    pub(in super::super) async fn release(&self) {
        self.over.set(true);
        self.resign().await;
    }
}
