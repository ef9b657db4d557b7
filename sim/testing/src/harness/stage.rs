//! The parts shared by all processes of a world: the clock, the stream, and the judge.

use super::fault::{Secs, Time};
use super::judge::{Finding, Judge};
use super::source::{Source, index, place};
use leasehold::{Notice, Record, Severity};
use leasehold_engine::internals::Digest;
use leasehold_local_aws::kinesis::Stream;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A failure of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The broken property.
    pub property: &'static str,
    pub what: String,
    pub at: Time,
}

/// A handle on the shared parts of a world's processes.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Inner>);

/// The clock of a world.
type Now = Box<dyn Fn() -> Time + Send + Sync>;

struct Inner {
    clock: Now,
    scene: Mutex<Scene>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("scene", &self.scene).finish_non_exhaustive()
    }
}

/// All that changes.
#[derive(Debug)]
pub struct Scene {
    pub source: Source,
    pub judge: Judge,
    pub failure: Option<Failure>,
    /// The last error of a handler.
    pub last_error: Option<String>,
    /// How many batches each worker's handlers were given.
    pub batches: BTreeMap<usize, u64>,
    /// How often each kind of event took place.
    pub events: BTreeMap<&'static str, u64>,
    /// How many requests each family of faults hit.
    pub requests: BTreeMap<&'static str, u64>,
    digest: Digest,
    /// The story, in lines; absent: no story is kept.
    story: Option<Vec<String>>,
}

impl Stage {
    pub fn new(
        clock: impl Fn() -> Time + Send + Sync + 'static, source: Source, judge: Judge, tell: bool,
    ) -> Self {
        let scene = Scene {
            source,
            judge,
            failure: None,
            last_error: None,
            batches: BTreeMap::new(),
            events: BTreeMap::new(),
            requests: BTreeMap::new(),
            digest: Digest::new(),
            story: tell.then(Vec::new),
        };
        Self(Arc::new(Inner { clock: Box::new(clock), scene: Mutex::new(scene) }))
    }

    pub fn now(&self) -> Time {
        (self.0.clock)()
    }

    /// A panic of a handler does no harm: each change of the scene is whole.
    pub fn scene(&self) -> MutexGuard<'_, Scene> {
        self.0.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something does not hold. The first finding counts.
    pub fn fail(&self, property: &'static str, what: String) {
        let at = self.now();
        self.tell(|| format!("{property}: {what}"));
        self.scene().failure.get_or_insert(Failure { property, what, at });
    }

    /// Adds an event to the digest.
    pub fn note(&self, what: &impl Serialize) {
        let now = self.now();
        let mut scene = self.scene();
        scene.digest.absorb(&now);
        scene.digest.absorb(what);
    }

    /// An event took place at a worker or a shard.
    pub(super) fn happens(&self, event: &'static str, of: &impl Serialize) {
        self.note(&(event, of));
        *self.scene().events.entry(event).or_default() += 1;
    }

    /// A handler has processed records.
    pub fn processed(&self, worker: usize, records: &[Record]) {
        let Some(first) = records.first() else {
            return;
        };
        let places: Vec<u64> = records.iter().filter_map(|record| place(record.position)).collect();
        let found = self.scene().judge.does(index(&first.shard), &places);
        self.finds(worker, found);
    }

    /// The judge looks at the world.
    pub(super) fn judges<T>(&self, look: impl FnOnce(&mut Judge, &Stream) -> T) -> T {
        let now = self.now();
        let Scene { source, judge, .. } = &mut *self.scene();
        look(judge, source.truth(now))
    }

    /// Findings about a worker.
    pub(super) fn finds(&self, worker: usize, found: impl IntoIterator<Item = Finding>) {
        for (property, what) in found {
            self.fail(property, format!("worker-{worker}: {what}"));
        }
    }

    /// The digest until now.
    pub fn digest(&self) -> u64 {
        self.scene().digest.value()
    }

    /// Takes in a worker's notice.
    pub(super) fn hears(&self, worker: usize, notice: &Notice) {
        if let Notice::HandlerFailed { detail, .. } = notice {
            self.scene().last_error = Some(detail.clone());
        }
        if notice.severity() >= Severity::Info {
            self.tell(|| format!("worker-{worker}: {notice}"));
        }
    }

    /// Adds a line to the story, if a story is kept.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let now = self.now();
        if let Some(story) = &mut self.scene().story {
            story.push(format!("{:>10}  {}", Secs(now).to_string(), line()));
        }
    }

    pub(super) fn story(&self) -> Vec<String> {
        self.scene().story.clone().unwrap_or_default()
    }
}
