//! The runtime of the handlers runs nothing, or runs again.

use super::kind::Severity;
use super::stop::Count;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// News of the runtime of the handlers, and of the leases as a consequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum RuntimeNews {
    /// The runtime has run nothing for the time `idle`. The worker releases its leases after the further time
    /// `let_go_in`; absent: the leases are kept. `said`: the handlers that block its threads. The engine does not know
    /// the handlers, so no trace and no digest names them: a worker adds the names.
    Blocked {
        idle: Span,
        let_go_in: Option<Span>,
        #[serde(skip)]
        said: Option<String>,
    },
    /// The runtime has run nothing for the time `idle`, so the worker releases `leases` leases, and wants none until
    /// the runtime runs.
    LetsGo { idle: Span, leases: u32 },
    /// The runtime runs again after the time `after`. `let_go`: leases were released, and are wanted again.
    Runs { after: Span, let_go: bool },
}

impl RuntimeNews {
    /// The name and severity of the news.
    pub(super) fn kind(&self) -> (&'static str, Severity) {
        match self {
            RuntimeNews::Blocked { .. } => ("runtime-blocked", Severity::Warning),
            RuntimeNews::LetsGo { .. } => ("lets-go", Severity::Error),
            RuntimeNews::Runs { .. } => ("runtime-runs", Severity::Info),
        }
    }
}

impl fmt::Display for RuntimeNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuntimeNews::Blocked { idle, let_go_in, said } => {
                write!(f, "the runtime that runs the handlers has run no task for {idle}: ")?;
                said.as_ref().map_or(Ok(()), |said| write!(f, "{said}; "))?;
                f.write_str("move work that blocks off the threads of that runtime, or the handlers wait and their shards fall behind")?;
                match let_go_in {
                    Some(left) => write!(
                        f,
                        "; in {left} the leases are let go of, unless a task runs or a handler says what it has processed"
                    ),
                    None => Ok(()),
                }
            }
            RuntimeNews::LetsGo { idle, leases } => write!(
                f,
                "the runtime that runs the handlers has run no task for {idle}: letting go of {}, so that other workers read the shards, and \
                 taking none until a task runs; a longer `give_up_after` leaves handlers more time",
                Count(*leases, "lease", "leases")
            ),
            RuntimeNews::Runs { after, let_go } => {
                write!(f, "the runtime that runs the handlers runs tasks again after {after}")?;
                f.write_str(if *let_go { ": taking leases again" } else { "" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_who_blocks_what_follows_and_what_to_do() {
        let blocked = |let_go_in, said: Option<&str>| {
            let news =
                RuntimeNews::Blocked { idle: Span::from_secs(6), let_go_in, said: said.map(str::to_owned) };
            news.to_string()
        };
        assert_eq!(
            blocked(None, Some("the handler of shardId-1 has blocked a thread for 6.500s")),
            "the runtime that runs the handlers has run no task for 6.000s: the handler of shardId-1 has blocked a thread for 6.500s; \
             move work that blocks off the threads of that runtime, or the handlers wait and their shards fall behind"
        );
        let left = blocked(Some(Span::from_secs(24)), None);
        assert!(
            left.contains("6.000s: move work that blocks off")
                && left.contains("; in 24.000s the leases are let go of"),
            "{left}"
        );
        let lets_go = RuntimeNews::LetsGo { idle: Span::from_secs(30), leases: 1 };
        assert!(lets_go.to_string().contains("letting go of 1 lease, so that"), "{lets_go}");
        let runs = |let_go| RuntimeNews::Runs { after: Span::from_secs(9), let_go }.to_string();
        assert_eq!(runs(false), "the runtime that runs the handlers runs tasks again after 9.000s");
        assert!(runs(true).ends_with("after 9.000s: taking leases again"));
    }
}
