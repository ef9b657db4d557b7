//! The whole way of one request: the place of its arrival, and the sender's outcome.

use super::Chance;

/// The arrivals of a request at the service, with their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The request does not arrive.
    Never,
    /// The service executes the request at this time.
    Once(u64),
    /// The service executes the request at both times.
    Twice(u64, u64),
}

/// The worker's outcome, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// The service's answer to the first or the second execution.
    Answer {
        /// The time of the answer.
        at: u64,
        /// Whether the answer is of the second execution.
        second: bool,
    },
    /// Throttled: certainly not executed.
    Throttled(u64),
    /// No connection: certainly not executed.
    NotSent(u64),
    /// A 5xx.
    ServerError(u64),
    /// The connection broke.
    Broken(u64),
    /// An unreadable answer.
    Garbled(u64),
    /// No answer until the worker gives up.
    Silence,
}

/// The whole way of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The way of the request.
    pub reach: Reach,
    /// The way of the answer.
    pub landing: Landing,
}

impl Fate {
    /// The way of an ordinary call, with its times of arrival and answer.
    pub fn plain(there: u64, back: u64) -> Self {
        Self { reach: Reach::Once(there), landing: Landing::Answer { at: back, second: false } }
    }

    /// The way of a call whose sender hears no answer.
    pub fn silent(reach: Reach) -> Self {
        Self { reach, landing: Landing::Silence }
    }

    /// The way of a call after a fault. Without the fault, the request arrives at `there` and its answer at `back`; the
    /// sender gives up at `give_up`. `None`: the fault does not concern the way.
    pub fn by(chance: Chance, there: u64, back: u64, give_up: u64) -> Option<Self> {
        let fate = |reach, landing| Some(Self { reach, landing });
        let reach = |executed| {
            if executed { Reach::Once(there) } else { Reach::Never }
        };
        let silence = |broken| {
            if broken { Landing::Broken(back) } else { Landing::Silence }
        };
        match chance {
            Chance::Slow { request_us, answer_us } => {
                let late = there.saturating_add(request_us);
                let way = back - there;
                Some(Self::plain(late, late.saturating_add(way).saturating_add(answer_us)))
            }
            Chance::LostRequest { broken } => fate(Reach::Never, silence(broken)),
            Chance::LostAnswer { broken } => fate(Reach::Once(there), silence(broken)),
            Chance::Late { by_us, broken } => {
                fate(Reach::Once(give_up.max(there).saturating_add(by_us.max(1))), silence(broken))
            }
            Chance::Throttled => fate(Reach::Never, Landing::Throttled(back)),
            Chance::ServerError { executed } => fate(reach(executed), Landing::ServerError(back)),
            Chance::Twice { after_us, second } => {
                let again = there.saturating_add(after_us);
                let at = if second { again.max(back) } else { back };
                fate(Reach::Twice(there, again), Landing::Answer { at, second })
            }
            Chance::NotSent => fate(Reach::Never, Landing::NotSent(there)),
            Chance::Garbled => fate(Reach::Once(there), Landing::Garbled(back)),
            Chance::Hung { executed } => Some(Self::silent(reach(executed))),
            _ => None,
        }
    }
}
