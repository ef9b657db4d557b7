//! Failures of the services as few lines of the log.
//!
//! A failed service fails every request of every lease. The first failure of a cause is a line; later failures are
//! counted, and told with the next line, a minute later at the earliest. One more line tells the end of the trouble.

mod repeats;

use crate::ports::{Failure, Kind};
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::{Cause, Outcome, Why};
use leasehold_engine::notice::Fatal;
use leasehold_engine::time::{Mono, Span};
use repeats::Repeats;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The shortest time between two lines of one cause.
const PAUSE: Span = Span::from_secs(60);
/// A service counts as working again after this time without a failure: a failing service still gives single answers.
const CALM: Span = Span::from_secs(2);

/// The cause of a failed request, as far as lines differ by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Network,
    Timeout,
    Credentials,
    Client,
    Cancelled,
    Server,
    Throttled,
    Garbled,
    Denied,
    Clock,
    Refused,
}

impl Class {
    fn of(outcome: &Outcome) -> Option<Self> {
        Some(match outcome {
            Outcome::Applied(_) => return None,
            Outcome::Refused(refusal) if refusal.why == Why::Denied => Class::Denied,
            Outcome::Refused(refusal) if refusal.why == Why::WrongClock => Class::Clock,
            Outcome::Refused(_) => Class::Refused,
            Outcome::NotSent(cause) | Outcome::Unknown(cause) => match cause {
                Cause::Network => Class::Network,
                Cause::Timeout => Class::Timeout,
                Cause::Credentials => Class::Credentials,
                Cause::Client => Class::Client,
                Cause::Cancelled => Class::Cancelled,
                Cause::Server => Class::Server,
                Cause::Throttled => Class::Throttled,
                Cause::Garbled => Class::Garbled,
            },
        })
    }

    /// Whether it shows that the service answers.
    fn is_answer(self) -> bool {
        use Class::{Clock, Denied, Garbled, Refused, Server, Throttled};
        matches!(self, Server | Throttled | Garbled | Denied | Clock | Refused)
    }

    /// The predicate of a sentence after the name of the service.
    fn predicate(self) -> &'static str {
        match self {
            Class::Network => "cannot be reached",
            Class::Timeout => "does not answer in time",
            Class::Credentials => "cannot be called without usable credentials",
            Class::Client => "cannot be called by this client",
            Class::Cancelled => "did not answer before the call was cancelled",
            Class::Server => "fails",
            Class::Throttled => "throttles requests",
            Class::Garbled => "sends answers that cannot be read",
            Class::Denied => "denies access",
            Class::Clock => "takes no request, as the clock of this host is wrong",
            Class::Refused => "refuses a request",
        }
    }
}

impl Class {
    /// What a person can do about it.
    fn remedy(self) -> Option<&'static str> {
        match self {
            Class::Denied => Some("grant the permission or renew the credentials"),
            Class::Clock => Some("set the clock of this host right"),
            _ => None,
        }
    }
}

/// A failed request, until the engine's notice about the request.
#[derive(Debug)]
struct Failed {
    op: OpId,
    kind: Kind,
    class: Class,
    failure: Option<Failure>,
}

/// The failures of one service by one cause.
#[derive(Debug, Default)]
struct Group {
    /// Since when, if it is not over.
    since: Option<Mono>,
    /// When the last of them was.
    last: Mono,
    /// The first answer since then.
    answered: Option<Mono>,
    /// When a line last told of them.
    told: Option<Mono>,
    /// Whether a line told of the present failures: then a line must tell their end too.
    loud: bool,
    /// How many no line has told of yet, and the leases they are about.
    more: u64,
    leases: BTreeSet<LeaseKey>,
}

/// Trouble as the engine tells it.
pub(crate) struct Trouble<'a> {
    pub op: OpId,
    pub lease: Option<&'a LeaseKey>,
    pub what: &'a str,
    pub how: &'a str,
}

/// Groups failures by service and cause.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    groups: BTreeMap<(Kind, Class), Group>,
    /// Trouble that no failed request explains.
    repeats: Repeats,
    failed: Option<Failed>,
    /// The worker's leases, and the time of a lease's hold without a renewal.
    held: BTreeSet<LeaseKey>,
    hold: Span,
}

impl Troubles {
    /// A life begins.
    pub(crate) fn begin(&mut self, hold: Span) {
        self.hold = hold;
    }

    pub(crate) fn took(&mut self, lease: &LeaseKey) {
        self.held.insert(lease.clone());
    }

    pub(crate) fn gave_up(&mut self, lease: &LeaseKey) {
        self.held.remove(lease);
    }

    /// The outcome of a request of a service. Lines that say what is over.
    pub(crate) fn outcome(
        &mut self, now: Mono, kind: Kind, op: OpId, outcome: &Outcome, failure: Option<Failure>,
    ) -> Vec<String> {
        let class = Class::of(outcome);
        self.failed = class.map(|class| Failed { op, kind, class, failure });
        let mut lines = Vec::new();
        if class.is_none_or(Class::is_answer) {
            lines.extend(self.answered(now, kind));
        }
        lines.extend(self.calm(now, kind));
        lines.extend(self.repeats.over(now));
        lines
    }

    /// The engine's reason of a failed request, completed with the service's words. Only the port knows these words.
    pub(crate) fn how_in_full(&self, op: OpId, how: String) -> String {
        let failure = self.failed.as_ref().filter(|failed| failed.op == op);
        match failure.and_then(|failed| failed.failure.as_ref()) {
            Some(failure) if !how.contains(failure.why.as_str()) => format!("{how} ({})", failure.why),
            _ => how,
        }
    }

    /// The engine's fatal error, completed with the reason known to the port.
    pub(crate) fn in_full(&self, fatal: Fatal) -> Fatal {
        let Some(Failed { kind, failure: Some(failure), .. }) = &self.failed else {
            return fatal;
        };
        let at = failure.at.as_ref();
        let at = at.map_or(String::new(), |at| format!(" at {at}"));
        let reason = format!("{}{at}: {}", service(*kind), failure.why);
        match fatal {
            Fatal::Denied { what, .. } => Fatal::Denied { what, detail: reason },
            Fatal::WrongClock { what, .. } => Fatal::WrongClock { what, detail: reason },
            Fatal::Client { what, .. } => Fatal::Client { what, detail: reason },
            Fatal::StreamMissing { stream, .. } => Fatal::StreamMissing { stream, detail: reason },
            other => other,
        }
    }

    /// The engine reports a failed request. Gives a line, unless a recent line has told of this cause.
    pub(crate) fn trouble(&mut self, now: Mono, trouble: &Trouble<'_>) -> Option<String> {
        let failed = self.failed.take().filter(|failed| failed.op == trouble.op);
        let Some(Failed { kind, class, failure, .. }) = failed else {
            return self.repeats.trouble(now, trouble);
        };
        let held = self.held.len();
        let group = self.groups.entry((kind, class)).or_default();
        group.since.get_or_insert(now);
        (group.last, group.answered) = (now, None);
        if group.told.is_some_and(|told| now.since(told) < PAUSE) {
            group.more += 1;
            group.leases.extend(trouble.lease.cloned());
            return None;
        }
        let at = failure.as_ref().and_then(|failure| failure.at.as_ref());
        let at = at.map_or(String::new(), |at| format!(" at {at}"));
        let why = match &failure {
            // The engine knows the consequence of a refusal.
            Some(failure) if class != Class::Refused => failure.why.as_str(),
            _ => trouble.how,
        };
        let mut line = format!("{}{at} {}: {why}", service(kind), class.predicate());
        match (group.more, group.told) {
            (more @ 1.., Some(told)) => {
                line += &format!(
                    "; {more} more of these in the last {}{}",
                    now.since(told),
                    Leases(group.leases.len())
                );
            }
            _ => line += &format!("; could not {}", trouble.what),
        }
        if let Some(remedy) = class.remedy().filter(|_| failure.is_some()) {
            line += &format!("; {remedy}");
        }
        line += "; retrying";
        line += &match (kind, class.is_answer(), held) {
            (Kind::Table, false, 0) => "; no lease is held until it answers".to_owned(),
            (Kind::Table, ..) if held > 0 => {
                format!("; a lease that is not renewed for {} is paused", self.hold)
            }
            _ => String::new(),
        };
        (group.told, group.loud, group.more) = (Some(now), true, 0);
        group.leases.clear();
        Some(line)
    }

    /// The service answers: is it that again after it did not?
    fn answered(&mut self, now: Mono, kind: Kind) -> Option<String> {
        let mut since: Option<Mono> = None;
        let (mut answered, mut more) = (now, 0);
        for ((of, class), group) in &mut self.groups {
            let Some(began) = group.since.filter(|_| *of == kind && !class.is_answer()) else {
                continue;
            };
            let first = *group.answered.get_or_insert(now);
            if now.since(group.last) < CALM {
                continue;
            }
            group.since = None;
            if std::mem::take(&mut group.loud) {
                since = Some(since.map_or(began, |since| since.min(began)));
                answered = answered.min(first);
                more += std::mem::take(&mut group.more);
                group.leases.clear();
            }
        }
        let after = answered.since(since?);
        Some(format!("{} answers again after {after}{}", service(kind), More(more)))
    }

    /// Lines about complaints of a service that stopped a while ago.
    fn calm(&mut self, now: Mono, kind: Kind) -> Vec<String> {
        let mut lines = Vec::new();
        for ((of, class), group) in &mut self.groups {
            let since_last = now.since(group.last);
            if *of != kind || !class.is_answer() || group.since.is_none() || since_last < PAUSE {
                continue;
            }
            (group.since, group.loud) = (None, false);
            group.leases.clear();
            let more = More(std::mem::take(&mut group.more));
            let (service, said) = (service(kind), class.predicate());
            lines.push(format!("{service} no longer {said}: the last time was {since_last} ago{more}"));
        }
        lines
    }
}

fn service(kind: Kind) -> &'static str {
    match kind {
        Kind::Table => "DynamoDB",
        Kind::Stream => "Kinesis",
        Kind::Consumer => "the application",
    }
}

/// How many leases a number of failures is about.
struct Leases(usize);

impl fmt::Display for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(", of 1 lease"),
            n => write!(f, ", of {n} leases"),
        }
    }
}

/// How many failures no line told of.
struct More(u64);

impl fmt::Display for More {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str("; 1 more request had failed"),
            n => write!(f, "; {n} more requests had failed"),
        }
    }
}

#[cfg(test)]
#[path = "troubles_tests.rs"]
mod tests;
