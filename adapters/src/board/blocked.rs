//! The board's knowledge of the runtime of the handlers.

use leasehold_engine::notice::RuntimeNews;
use leasehold_engine::shown::Shown;
use leasehold_engine::time::{Mono, Span};

/// Whether the runtime of the handlers runs nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocked(Option<Standstill>);

#[derive(Clone, Debug)]
struct Standstill {
    since: Mono,
    /// Who blocks its threads.
    by: Option<String>,
    /// The leases were let go of.
    let_go: bool,
}

impl Blocked {
    /// The engine says something of it.
    pub(super) fn hear(&mut self, at: Mono, news: &RuntimeNews) {
        match (news, &mut self.0) {
            (RuntimeNews::Blocked { idle, said, .. }, blocked) => {
                *blocked = Some(Standstill {
                    since: at - *idle,
                    by: said.as_ref().map(|said| Shown(said).to_string()),
                    let_go: false,
                });
            }
            (RuntimeNews::LetsGo { .. }, Some(blocked)) => blocked.let_go = true,
            (_, blocked) => *blocked = None,
        }
    }

    /// The moment since which the runtime runs no task; absent: the runtime runs tasks.
    pub(super) fn since(&self) -> Option<Mono> {
        self.0.as_ref().map(|blocked| blocked.since)
    }

    /// The reason why the worker is unhealthy, if the runtime has run no task for longer than `patience`.
    pub(super) fn reason(&self, patience: Span, now: Mono) -> Option<String> {
        let blocked = self.0.as_ref()?;
        let idle = now.since(blocked.since);
        if idle <= patience {
            return None;
        }
        let by = blocked.by.as_deref().map_or(String::new(), |by| format!(": {by}"));
        let let_go = match blocked.let_go {
            true => "; the leases were let go of, so that other workers read the shards",
            false => "",
        };
        Some(format!("the runtime that runs the handlers has run no task for {idle}{by}{let_go}"))
    }
}
