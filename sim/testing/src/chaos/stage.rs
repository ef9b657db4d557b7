//! What all processes of a world share: the clock, the services, and the judge.

use super::fault::{Secs, Time};
use super::judge::Judge;
use super::process::Clock;
use super::services::Services;
use leasehold::{Notice, Severity};
use leasehold_engine::internals::Digest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was found wrong with a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The property that does not hold.
    pub(crate) property: &'static str,
    pub(crate) what: String,
    pub(crate) at: Time,
}

/// A handle on what a world's processes share.
#[derive(Clone, Debug)]
pub(crate) struct Stage(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    scene: Mutex<Scene>,
}

/// All that changes.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) services: Services,
    pub(crate) judge: Judge,
    pub(crate) failure: Option<Failure>,
    /// What a handler failed with last.
    pub(crate) last_error: Option<String>,
    /// How many batches each worker's handlers were given.
    pub(crate) batches: BTreeMap<usize, u64>,
    digest: Digest,
    /// What happened, in lines; absent: it is not to be told.
    story: Option<Vec<String>>,
}

impl Stage {
    pub(crate) fn new(clock: Clock, services: Services, tell: bool) -> Self {
        let scene = Scene {
            services,
            judge: Judge::default(),
            failure: None,
            last_error: None,
            batches: BTreeMap::new(),
            digest: Digest::new(),
            story: tell.then(Vec::new),
        };
        Self(Arc::new(Inner { clock, scene: Mutex::new(scene) }))
    }

    pub(crate) fn now(&self) -> Time {
        self.0.clock.now()
    }

    /// A panic of a handler spoils nothing: each change of the scene is whole.
    pub(crate) fn scene(&self) -> MutexGuard<'_, Scene> {
        self.0.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something does not hold. The first finding counts.
    pub(crate) fn fail(&self, property: &'static str, what: String) {
        let at = self.now();
        self.tell(|| format!("{property}: {what}"));
        self.scene().failure.get_or_insert(Failure { property, what, at });
    }

    /// Adds something that happened to the digest.
    pub(crate) fn note(&self, what: &impl Serialize) {
        let now = self.now();
        let mut scene = self.scene();
        scene.digest.absorb(&now);
        scene.digest.absorb(what);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.scene().digest.value()
    }

    /// A worker says what happens to it.
    pub(crate) fn hears(&self, worker: usize, notice: &Notice) {
        if let Notice::HandlerFailed { detail, .. } = notice {
            self.scene().last_error = Some(detail.clone());
        }
        if notice.severity() >= Severity::Info {
            self.tell(|| format!("worker-{worker}: {notice}"));
        }
    }

    /// Tells something that happened, if it is to be told.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        let now = self.now();
        if let Some(story) = &mut self.scene().story {
            story.push(format!("{:>10}  {}", Secs(now).to_string(), line()));
        }
    }

    pub(crate) fn story(&self) -> Vec<String> {
        self.scene().story.clone().unwrap_or_default()
    }
}
