//! The lock of the leader of a KCL 3.x fleet, as the DynamoDB lock client for Java keeps the lock.
//!
//! The lock is a row whose version changes with every renewal. A worker that has seen the same version for longer than
//! the lock lasts takes the lock, on the condition that the version is still the same. Two rules are safer than in the
//! original. A write of unknown outcome does not cost the leadership: the next write holds for either version that the
//! row may show. And the leader counts the lock's validity from the moment at which it sent the write. Nor does a
//! refused condition cost the leadership: of a write that was executed twice, the second execution finds the version of
//! the first. No other worker takes a lock that is valid, so refusals count from the end of the validity on: the second
//! in a row costs the lock.
//!
//! A leader that stood still for longer than the lock lasts does not lead, but goes on renewing: the version in the row
//! shows whether another worker has taken the lock meanwhile. If no worker has, the leader leads again at once. If the
//! leader stops, it gives the lock up. Otherwise the row would name a leader that does not lead, until the lock runs
//! out.

use super::workers::Kcl3Workers;
use crate::fleet::{FleetWrite, LEADER_BEAT, LEADER_LEASE};
use crate::ids::WorkerId;
use crate::input::{Outcome, Why};
use crate::time::{Mono, Span};
use crate::worker::context::Context;

/// Versions that writes of unknown outcome may have left; beyond that the lock is given up.
const MAX_DOUBTS: usize = 8;
/// The pause before a retry of a failed renewal.
const RETRY: Span = Span::from_secs(2);
/// For how long a lock that is free is left to workers of KCL, which look every 30 s: the application chose them to lead.
pub(super) const COURTESY: Span = Span::from_secs(45);

/// The lock, as this worker has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LeaderLock {
    held: Option<Held>,
    /// The version of a take of unknown outcome, and when it was sent.
    perhaps: Option<(String, Mono)>,
    /// The scan after which a take was last tried.
    tried_after: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held {
    /// The versions that the row may show: the version of the last acknowledged write, and those of later writes.
    versions: Vec<String>,
    valid_until: Mono,
    beat_at: Mono,
    /// The condition of the last renewal did not hold. The renewal may have been executed twice: then the version in the row is its own.
    refused: bool,
}

impl Held {
    /// The row may show this version, too. The next renewal tells.
    fn doubt(&mut self, version: &str, beat_at: Mono) {
        self.versions.push(version.to_owned());
        self.beat_at = beat_at;
    }
}

impl LeaderLock {
    /// Whether this worker leads.
    pub(super) fn leads(&self, now: Mono) -> bool {
        self.held.as_ref().is_some_and(|held| now < held.valid_until)
    }

    /// The monotonic clock did not count so much time: the lock lasts for that much less.
    pub(super) fn on_missed(&mut self, by: Span) {
        if let Some(held) = &mut self.held {
            held.valid_until = held.valid_until - by;
            held.beat_at = held.beat_at - by;
        }
        if let Some((_, sent)) = &mut self.perhaps {
            *sent = *sent - by;
        }
    }

    pub(super) fn wake_at(&self) -> Mono {
        self.held.as_ref().map_or(Mono::NEVER, |held| held.beat_at)
    }

    /// Whether the row may name us: as far as is known, no worker has taken the lock since our last write.
    pub(super) fn may_be_ours(&self) -> bool {
        self.held.is_some() || self.perhaps.is_some()
    }

    /// Gives the lock up. Returns the write of the release.
    pub(super) fn step_down(&mut self, me: &WorkerId) -> Option<FleetWrite> {
        let held = self.held.take().map_or_else(Vec::new, |held| held.versions);
        let perhaps = self.perhaps.take().map(|(version, _)| version);
        let seen: Vec<String> = held.into_iter().chain(perhaps).collect();
        (!seen.is_empty()).then(|| FleetWrite::StepDown { worker: me.clone(), seen })
    }

    /// The next write, if one is due. `scan`: the number of the last whole scan.
    pub(super) fn due(&mut self, cx: &Context, workers: &Kcl3Workers, scan: u64) -> Option<FleetWrite> {
        let now = cx.now();
        self.adopt(cx, workers);
        if let Some(held) = &self.held {
            return (now >= held.beat_at).then(|| FleetWrite::Beat {
                worker: cx.me().clone(),
                version: version(cx),
                seen: held.versions.clone(),
            });
        }
        if self.tried_after >= scan || self.perhaps.is_some() {
            return None;
        }
        let seen = match workers.leader() {
            Some((lock, stood)) if !lock.released => {
                (stood > lock.lasts()).then(|| Some(lock.version.clone()))
            }
            other => {
                let free = workers.leaderless_since().is_some_and(|since| now.since(since) >= COURTESY);
                free.then(|| other.map(|(lock, _)| lock.version.clone()))
            }
        }?;
        self.tried_after = scan;
        Some(FleetWrite::Lead { worker: cx.me().clone(), version: version(cx), seen })
    }

    /// A take of unknown outcome was applied after all, as a scan shows; or it was not.
    fn adopt(&mut self, cx: &Context, workers: &Kcl3Workers) {
        let Some((version, sent)) = &self.perhaps else {
            // No take of unknown outcome is left to judge.
            return;
        };
        let shown = workers.leader().is_some_and(|(lock, _)| lock.version == *version);
        if shown && cx.now().since(*sent) < LEADER_LEASE {
            self.hold(version.clone(), *sent);
            self.perhaps = None;
        } else if cx.now().since(*sent) > cx.config().scan_interval.times(2) {
            self.perhaps = None;
        }
    }

    fn hold(&mut self, version: String, sent: Mono) {
        self.held = Some(Held {
            versions: vec![version],
            valid_until: sent + LEADER_LEASE,
            beat_at: sent + LEADER_BEAT,
            refused: false,
        });
    }

    /// The outcome of a take or a renewal. `sent`: when the write was emitted.
    pub(super) fn on_outcome(&mut self, now: Mono, write: &FleetWrite, sent: Mono, outcome: &Outcome) {
        let (FleetWrite::Lead { version, .. } | FleetWrite::Beat { version, .. }) = write else {
            // The write released the lock, or concerns another row.
            return;
        };
        let renews = matches!(write, FleetWrite::Beat { .. });
        match outcome {
            Outcome::Applied(_) => self.hold(version.clone(), sent),
            Outcome::Refused(refusal) if renews && refusal.why == Why::ConditionFailed => {
                self.held.take_if(|held| held.refused && now >= held.valid_until);
                if let Some(held) = &mut self.held {
                    let pause = if held.refused { RETRY } else { Span::ZERO };
                    held.refused = true;
                    held.doubt(version, now + pause);
                }
                self.held.take_if(|held| held.versions.len() > MAX_DOUBTS);
            }
            Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed => {
                self.perhaps = Some((version.clone(), sent));
            }
            Outcome::Unknown(_) if !renews => self.perhaps = Some((version.clone(), sent)),
            Outcome::Unknown(_) => {
                if let Some(held) = &mut self.held {
                    held.doubt(version, now + RETRY);
                }
                self.held.take_if(|held| held.versions.len() > MAX_DOUBTS);
            }
            Outcome::Refused(_) | Outcome::NotSent(_) => {
                if let Some(held) = &mut self.held {
                    held.beat_at = now + RETRY;
                }
            }
        }
    }
}

/// A version never left by another write, in the form of a random UUID.
fn version(cx: &Context) -> String {
    let half =
        |part: u64| cx.draw_below("leader version", cx.now().0.wrapping_mul(2).wrapping_add(part), u64::MAX);
    let (high, low) = (half(0), half(1));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}
