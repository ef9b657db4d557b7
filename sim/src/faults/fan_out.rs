//! Subscriptions (enhanced fan-out): cut, silent and ended without a word, stolen places, places that stay taken, consumers
//! that are CREATING for long or deregistered.

use super::family::family;
use super::{Setting, each, rate, size};
use crate::draws::{Draws, Roll};
use crate::span::{micros, millis};
use serde::{Deserialize, Serialize};

/// A time during which every call for a subscription is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusing {
    /// The beginning, in µs.
    #[serde(with = "micros")]
    pub from: u64,
    /// The end, in µs.
    #[serde(with = "micros")]
    pub until: u64,
    /// What is missing.
    pub taken: Taken,
}

/// What a call for a subscription lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Taken {
    /// Another subscriber has the place.
    Place,
    /// The permission was taken away.
    Permission,
}

/// The end of one wait for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The connection breaks, perhaps in the midst of a frame: the event is lost.
    Broken,
    /// The body ends as in good order, and the event is lost.
    Over,
    /// No event comes any more, and no end.
    Silent,
}

family! {
    /// All faults of subscriptions.
    pub struct FanOutFaults by |draws, setting|;

    /// How long a consumer is CREATING.
    #[serde(rename = "creating", with = "millis")]
    creating_ms: i64, size(draws, "consumer-creating", 500, 30_000).unwrap_or(0) as i64;
    /// The life of a subscription.
    #[serde(rename = "life", with = "millis")]
    life_ms: i64 = LIFE_MS as i64, size(draws, "subscription-life", 2_000, 60_000).unwrap_or(LIFE_MS) as i64;
    /// Events that are cut with their connection, in one of a thousand.
    broken: u32, rate(draws, "subscription-broken", 300);
    /// Events that are lost at an end in good order, in one of a thousand.
    over: u32, rate(draws, "subscription-over", 300);
    /// Events that the service never sends, in one of a thousand.
    silent: u32, rate(draws, "subscription-silent", 60);
    /// When a stranger takes the place at some shard, and the number of the shard, modulo.
    stolen: Vec<Theft> = Vec::new(), each(draws, "subscription-stolen", 12, |roll| Theft::draw(roll, setting));
    /// When the consumer is deregistered.
    deregistered: Vec<Deregistration> = Vec::new(),
        each(draws, "consumer-gone", 3, |roll| Deregistration { at: roll.below(setting.length_us) });
    /// When calls are refused.
    refusing: Vec<Refusing> = Vec::new(), each(draws, "place-taken", 3, |roll| {
        let from = roll.below(setting.length_us);
        let until = from + 1_000_000 + roll.below(40_000_000);
        let taken = if roll.below(3) == 0 { Taken::Permission } else { Taken::Place };
        Refusing { from, until, taken }
    });
}

/// The consumer is deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deregistration {
    /// The moment, in µs.
    #[serde(with = "micros")]
    pub at: u64,
}

/// A place that a stranger takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Theft {
    /// The moment, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The number of the shard, modulo the number of shards.
    pub pick: u32,
}

impl Theft {
    fn draw(roll: &mut Roll, setting: Setting) -> Self {
        Self { at: roll.below(setting.length_us), pick: roll.below(1_000) as u32 }
    }
}

/// The life of a subscription, as AWS gives it, in ms.
const LIFE_MS: u64 = 300_000;

impl FanOutFaults {
    /// The fault that cuts a subscription before the next event. Absent: the service sends the event.
    pub(crate) fn cut(&self, roll: &mut Roll) -> Option<Cut> {
        if roll.happens(self.broken) {
            Some(Cut::Broken)
        } else if roll.happens(self.over) {
            Some(Cut::Over)
        } else {
            roll.happens(self.silent).then_some(Cut::Silent)
        }
    }

    /// Why every call for a subscription is refused now, if it is.
    pub(crate) fn refusal(&self, now: u64) -> Option<Taken> {
        let refusing = self.refusing.iter().find(|refusing| refusing.from <= now && now < refusing.until);
        refusing.map(|refusing| refusing.taken)
    }
}
