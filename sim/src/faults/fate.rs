//! The whole way of one request: where it gets to, and what its sender is told.

use super::Chance;

/// Where a request gets to, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nowhere.
    Never,
    /// The service executes it at this time.
    Once(u64),
    /// The service executes it at both times.
    Twice(u64, u64),
}

/// What the worker is told, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// The service's answer to the first or the second execution.
    Answer {
        /// When.
        at: u64,
        /// Whether the second execution's.
        second: bool,
    },
    /// Certainly not executed, by throttling.
    Throttled(u64),
    /// Certainly not executed, for want of a connection.
    NotSent(u64),
    /// A 5xx.
    ServerError(u64),
    /// The connection broke.
    Broken(u64),
    /// An answer that cannot be read.
    Garbled(u64),
    /// Nothing, until it gives up.
    Silence,
}

/// The whole way of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The request.
    pub reach: Reach,
    /// The answer.
    pub landing: Landing,
}

impl Fate {
    /// There and back at these times.
    pub fn plain(there: u64, back: u64) -> Self {
        Self { reach: Reach::Once(there), landing: Landing::Answer { at: back, second: false } }
    }

    /// Nobody ever hears of it.
    pub fn silent(reach: Reach) -> Self {
        Self { reach, landing: Landing::Silence }
    }

    /// What chance makes of a way that would lead there and back at these times; its sender gives up at `give_up`.
    /// None: this chance is not about the way.
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
