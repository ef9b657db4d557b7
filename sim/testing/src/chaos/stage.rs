//! The parts shared by all processes of a world: the clock, the services, and the judge.

use super::fault::{Secs, Time};
use super::judge::Judge;
use super::process::Clock;
use super::services::Services;
use leasehold::{Notice, Severity};
use leasehold_engine::internals::Digest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A failure of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The broken property.
    pub(crate) property: &'static str,
    pub(crate) what: String,
    pub(crate) at: Time,
}

/// A handle on the shared parts of a world's processes.
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
    /// The last error of a handler.
    pub(crate) last_error: Option<String>,
    /// How many batches each worker's handlers were given.
    pub(crate) batches: BTreeMap<usize, u64>,
    digest: Digest,
    /// The story, in lines; absent: no story is kept.
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

    /// A panic of a handler does no harm: each change of the scene is whole.
    pub(crate) fn scene(&self) -> MutexGuard<'_, Scene> {
        self.0.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something does not hold. The first finding counts.
    pub(crate) fn fail(&self, property: &'static str, what: String) {
        let at = self.now();
        self.tell(|| format!("{property}: {what}"));
        self.scene().failure.get_or_insert(Failure { property, what, at });
    }

    /// Adds an event to the digest.
    pub(crate) fn note(&self, what: &impl Serialize) {
        let now = self.now();
        let mut scene = self.scene();
        scene.digest.absorb(&now);
        scene.digest.absorb(what);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.scene().digest.value()
    }

    /// Takes in a worker's notice.
    pub(crate) fn hears(&self, worker: usize, notice: &Notice) {
        if let Notice::HandlerFailed { detail, .. } = notice {
            self.scene().last_error = Some(detail.clone());
        }
        if notice.severity() >= Severity::Info {
            self.tell(|| format!("worker-{worker}: {notice}"));
        }
    }

    /// Adds a line to the story, if a story is kept.
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
