//! Workers with several streams: a worker stops reading a stream for a while, or a single stream has trouble.

use super::{Fate, Landing, Reach, Setting, each};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use crate::streams::StreamNo;
use serde::{Deserialize, Serialize};

/// An application takes a stream away from one of its workers, and gives the stream back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absence {
    /// The time of the removal, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The time of the return, in µs; the end of the faults, if earlier.
    #[serde(with = "micros")]
    pub until: u64,
    /// The worker without the stream.
    pub worker: u32,
    /// The stream.
    pub stream: u32,
}

/// The kinds of a stream's trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TroubleKind {
    /// The service throttles the stream's requests.
    Throttled,
    /// The service executes the stream's requests without an answer.
    Silent,
    /// The stream's requests end with an error of the service.
    ServerError,
    /// The stream is deleted, and never comes back.
    Deleted,
}

/// Trouble of one stream alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// The beginning, in µs.
    #[serde(with = "micros")]
    pub from: u64,
    /// The end, in µs.
    #[serde(with = "micros")]
    pub until: u64,
    /// The stream.
    pub stream: u32,
    /// The kind of the trouble.
    pub kind: TroubleKind,
    /// The trouble does not end, not even with the faults: all else must come right without this stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasts: bool,
}

/// All absences and troubles of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeveralFaults {
    /// In the order of their beginning.
    pub absences: Vec<Absence>,
    /// In the order of their beginning.
    pub troubles: Vec<Trouble>,
}

impl SeveralFaults {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        if setting.streams < 2 {
            return Self::default();
        }
        let length =
            |roll: &mut Roll| roll.magnitude(setting.lease_us / 8, setting.lease_us.saturating_mul(6));
        let mut absences = each(draws, "stream-absence", 6, |roll| {
            let at = roll.below(setting.length_us);
            Absence {
                at,
                until: at + length(roll),
                worker: roll.below(setting.workers) as u32,
                stream: roll.below(setting.streams) as u32,
            }
        });
        absences.sort_by_key(|absence| absence.at);
        let mut troubles = each(draws, "stream-trouble", 4, |roll| {
            let from = roll.below(setting.length_us);
            Trouble {
                from,
                until: from + length(roll),
                stream: roll.below(setting.streams) as u32,
                kind: match roll.below(3) {
                    0 => TroubleKind::Silent,
                    1 => TroubleKind::ServerError,
                    _ => TroubleKind::Throttled,
                },
                lasts: false,
            }
        });
        if let Some(first) = troubles.first_mut() {
            match draws.below("stream-trouble", 2, 4) {
                0 => first.lasts = true,
                1 => (first.kind, first.lasts) = (TroubleKind::Deleted, true),
                _ => {}
            }
        }
        troubles.sort_by_key(|trouble| trouble.from);
        Self { absences, troubles }
    }

    /// The trouble of a stream at a time. `healed`: the faults are over.
    pub(crate) fn trouble(&self, stream: StreamNo, now: u64, healed: bool) -> Option<&Trouble> {
        self.troubles.iter().find(|trouble| {
            let during = now < trouble.until && !healed;
            trouble.stream == stream && trouble.from <= now && (during || trouble.lasts)
        })
    }

    /// Whether the trouble of a stream does not end with the faults.
    pub(crate) fn lasts(&self, stream: StreamNo) -> bool {
        let mut troubles = self.troubles.iter();
        troubles.any(|trouble| trouble.stream == stream && trouble.lasts)
    }

    /// Whether some stream is deleted.
    pub(crate) fn any_is_deleted(&self) -> bool {
        let mut troubles = self.troubles.iter();
        troubles.any(|trouble| trouble.kind == TroubleKind::Deleted)
    }

    /// Whether the trouble of some stream does not end with the faults.
    pub(crate) fn any_lasts(&self) -> bool {
        self.troubles.iter().any(|trouble| trouble.lasts)
    }

    /// Whether requests to some stream are never answered again, so that no worker learns the fate of that stream.
    pub(crate) fn any_is_unanswered(&self) -> bool {
        let mut lasting = self.troubles.iter().filter(|trouble| trouble.lasts);
        lasting.any(|trouble| trouble.kind != TroubleKind::Deleted)
    }
}

impl Trouble {
    /// The family's name, for marks.
    pub(crate) fn family(&self) -> &'static str {
        match self.kind {
            TroubleKind::Throttled => "stream-throttled",
            TroubleKind::Silent => "stream-silent",
            TroubleKind::ServerError => "stream-error",
            TroubleKind::Deleted => "one-stream-deleted",
        }
    }

    /// The way of a request to the stream. Without the trouble, the request arrives at `there` and its answer at
    /// `back`. Absent: the stream itself answers.
    pub(crate) fn fate(&self, there: u64, back: u64) -> Option<Fate> {
        Some(match self.kind {
            TroubleKind::Throttled => Fate { reach: Reach::Never, landing: Landing::Throttled(back) },
            TroubleKind::Silent => Fate::silent(Reach::Once(there)),
            TroubleKind::ServerError => Fate { reach: Reach::Never, landing: Landing::ServerError(back) },
            TroubleKind::Deleted => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_of_one_stream_and_ends_unless_it_lasts() {
        let trouble =
            |stream, lasts| Trouble { from: 10, until: 20, stream, kind: TroubleKind::Throttled, lasts };
        let faults =
            SeveralFaults { absences: Vec::new(), troubles: vec![trouble(0, false), trouble(1, true)] };
        let now = |stream, at, healed| faults.trouble(stream, at, healed).is_some();
        assert_eq!([9, 10, 19, 20].map(|at| now(0, at, false)), [false, true, true, false]);
        assert!(!now(0, 15, true) && now(1, 15, true) && now(1, 99, true) && !now(2, 15, false));
        assert!(faults.lasts(1) && !faults.lasts(0) && faults.any_lasts());
    }
}
