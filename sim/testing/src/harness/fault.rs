//! The faults of a world, as data: a plan can be printed, and a run can leave faults out.

use super::draws::Draws;
use std::fmt;
use std::ops::RangeInclusive;

/// Milliseconds since a world began.
pub type Time = u64;

/// Microseconds: since a world began, or on the way of a request.
pub type Micros = u64;

/// The service of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    Table,
    Stream,
}

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The request is certainly not executed, and the worker knows.
    NotSent,
    /// The service refuses: too many requests.
    Throttled,
    /// The request is lost on the way; the worker does not know whether it was executed.
    LostRequest,
    /// The request is executed, and the answer is lost.
    LostAnswer,
    /// The request is executed and answered after this time, perhaps too late.
    Slow(Time),
    /// The connection breaks at once, and the request is executed after so long.
    Late(Time),
}

/// The families of faults of requests.
pub const FAMILIES: [&str; 10] = [
    "lost-request",
    "lost-answer",
    "silence",
    "read-timeout",
    "slow",
    "throttled",
    "server-error",
    "refused",
    "late",
    "cut",
];

/// Families that cost a worker the most time: half as often.
const RARE: [&str; 3] = ["silence", "read-timeout", "late"];

impl How {
    /// The name of its family.
    pub(super) fn family(self) -> &'static str {
        match self {
            Self::NotSent => "refused",
            Self::Throttled => "throttled",
            Self::LostRequest => "lost-request",
            Self::LostAnswer => "lost-answer",
            Self::Slow(_) => "slow",
            Self::Late(_) => "late",
        }
    }
}

/// A fault of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A fault of a worker's request. Requests are counted over all lives of the worker from 0.
    Request { worker: usize, service: Service, nth: u64, how: How },
    /// For a while, every request of one worker or of all workers has the same fault.
    Spell { worker: Option<usize>, service: Service, from: Time, lasts: Time, how: How },
    /// For a while, a share of the requests of one worker or of all workers is hit by a family of faults: `often` of
    /// 1,000.
    Weather { worker: Option<usize>, family: &'static str, often: u64, from: Time, lasts: Time },
    /// The process dies, and is started again after a while.
    Crash { worker: usize, at: Time, back: Time },
    /// The process dies when its nth write of progress has come to the table, before the worker knows.
    CrashAtCheckpoint { worker: usize, nth: u64, back: Time },
    /// The process stands still, and goes on.
    Pause { worker: usize, at: Time, lasts: Time },
    /// The process dies while a handler works, so long after its nth batch was handed over, counted over all lives from 1.
    CrashInBatch { worker: usize, nth: u64, after: Time, back: Time },
    /// The process stands still while a handler works.
    PauseInBatch { worker: usize, nth: u64, after: Time, lasts: Time },
    /// The worker is asked to shut down, and is started again after a while.
    ShutDown { worker: usize, at: Time, back: Time },
    /// A shard is split. The number picks it.
    Split { at: Time, pick: u64 },
    /// Two shards are merged. The number picks them.
    Merge { at: Time, pick: u64 },
}

impl Fault {
    /// What kind it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::Spell { .. } => "spell",
            Self::Weather { family: "cut", .. } => "cut",
            Self::Weather { .. } => "weather",
            Self::Crash { .. } => "crash",
            Self::CrashAtCheckpoint { .. } => "crash-at-checkpoint",
            Self::Pause { .. } => "pause",
            Self::CrashInBatch { .. } => "crash-in-batch",
            Self::PauseInBatch { .. } => "pause-in-batch",
            Self::ShutDown { .. } => "shutdown",
            Self::Split { .. } => "split",
            Self::Merge { .. } => "merge",
        }
    }
}

/// Draws faults. Each draw has the name of its kind and a number.
#[derive(Clone, Copy)]
pub(super) struct Dice {
    pub(super) draws: Draws,
    pub(super) workers: usize,
    /// How long a lease lasts.
    pub(super) lease: Time,
    /// When the last fault is over.
    pub(super) healed: Time,
}

/// The drawn faults of a world.
pub(super) fn faults(dice: Dice) -> Vec<Fault> {
    let mut faults = Vec::new();
    faults.extend(dice.each("crash", 0..=2, Dice::crash));
    faults.extend(dice.each("crash-at-checkpoint", 0..=2, Dice::crash_at_checkpoint));
    faults.extend(dice.each("pause", 0..=2, Dice::pause));
    faults.extend(dice.each("in-batch", 0..=3, Dice::in_batch));
    faults.extend(dice.each("shutdown", 0..=1, Dice::shut_down));
    faults.extend(dice.each("reshard", 0..=3, Dice::reshard));
    faults.extend(dice.each("spell", 0..=2, Dice::spell));
    faults.extend(dice.each("request", 0..=12, Dice::request));
    faults
}

/// The drawn weather of a world, with a split and a merge at least. Some worlds lack a family, and so no
/// family hides the failures of a second family.
pub(super) fn weather(dice: Dice) -> Vec<Fault> {
    let Dice { draws, healed, .. } = dice;
    let family = |(n, family): (u64, &'static str)| {
        let often = draws.magnitude("often", n, 2, 60);
        let often = if RARE.contains(&family) { often / 2 } else { often };
        let weather = Fault::Weather { worker: None, family, often, from: 0, lasts: healed };
        draws.percent("family", n, 50).then_some(weather)
    };
    let families = FAMILIES.into_iter().filter(|family| *family != "cut");
    let mut weather: Vec<Fault> = (0..).zip(families).filter_map(family).collect();
    weather.extend(dice.each("cut", 0..=2, Dice::cut));
    weather.extend(dice.each("split", 1..=2, Dice::split));
    weather.extend(dice.each("merge", 1..=2, Dice::merge));
    weather
}

impl Dice {
    /// So many faults.
    fn each(
        self, kind: &'static str, many: RangeInclusive<u64>, draw: fn(Self, &'static str, u64) -> Fault,
    ) -> impl Iterator<Item = Fault> {
        let count = self.draws.between(kind, 1_000, *many.start(), *many.end());
        (0..count).map(move |n| draw(self, kind, n))
    }

    fn worker(self, kind: &str, n: u64) -> usize {
        self.draws.between(kind, 4 * n, 0, self.workers as u64 - 1) as usize
    }

    fn at(self, kind: &str, n: u64) -> Time {
        self.draws.between(kind, 4 * n + 1, 1_000, self.healed - 2_000)
    }

    fn lasting(self, kind: &str, n: u64, low: Time, high: Time) -> Time {
        self.draws.magnitude(kind, 4 * n + 2, low, high)
    }

    fn crash(self, kind: &'static str, n: u64) -> Fault {
        Fault::Crash {
            worker: self.worker(kind, n),
            at: self.at(kind, n),
            back: self.lasting(kind, n, 20, 2 * self.lease),
        }
    }

    fn crash_at_checkpoint(self, kind: &'static str, n: u64) -> Fault {
        Fault::CrashAtCheckpoint {
            worker: self.worker(kind, n),
            nth: self.draws.magnitude("nth-checkpoint", n, 1, 40),
            back: self.lasting(kind, n, 20, 2 * self.lease),
        }
    }

    fn pause(self, kind: &'static str, n: u64) -> Fault {
        let at = self.at(kind, n);
        let lasts = self.lasting(kind, n, self.lease / 8, 3 * self.lease);
        Fault::Pause { worker: self.worker(kind, n), at, lasts: lasts.min(self.healed - at) }
    }

    fn in_batch(self, kind: &'static str, n: u64) -> Fault {
        let (worker, nth) = (self.worker(kind, n), self.draws.magnitude("nth-batch", n, 1, 40));
        let after = self.draws.magnitude("in-batch-after", n, 1, 60);
        match self.draws.percent("pause-in-batch", n, 65) {
            true => Fault::PauseInBatch {
                worker,
                nth,
                after,
                lasts: self.lasting(kind, n, self.lease / 4, 3 * self.lease),
            },
            false => {
                Fault::CrashInBatch { worker, nth, after, back: self.lasting(kind, n, 20, 2 * self.lease) }
            }
        }
    }

    fn shut_down(self, kind: &'static str, n: u64) -> Fault {
        Fault::ShutDown {
            worker: self.worker(kind, n),
            at: self.at(kind, n),
            back: self.lasting(kind, n, 100, self.lease) + 1_000,
        }
    }

    fn reshard(self, kind: &'static str, n: u64) -> Fault {
        match self.draws.percent("split", n, 60) {
            true => self.split(kind, n),
            false => self.merge(kind, n),
        }
    }

    fn split(self, kind: &'static str, n: u64) -> Fault {
        Fault::Split { at: self.at(kind, n), pick: self.draws.bits("reshard-pick", n) }
    }

    fn merge(self, kind: &'static str, n: u64) -> Fault {
        Fault::Merge { at: self.at(kind, n), pick: self.draws.bits("reshard-pick", n) }
    }

    fn spell(self, kind: &'static str, n: u64) -> Fault {
        let from = self.at(kind, n);
        let of_one = self.draws.percent("spell-of-one", n, 60);
        Fault::Spell {
            worker: of_one.then(|| self.worker(kind, n)),
            service: service(self.draws, "spell-service", n),
            from,
            lasts: self.lasting(kind, n, 200, 2 * self.lease).min(self.healed - from),
            how: how(self.draws, "spell-how", n, self.lease),
        }
    }

    fn cut(self, kind: &'static str, n: u64) -> Fault {
        let from = self.at(kind, n);
        let lasts = self.lasting(kind, n, 50, 3 * self.lease).min(self.healed - from);
        Fault::Weather { worker: Some(self.worker(kind, n)), family: "cut", often: 1_000, from, lasts }
    }

    fn request(self, kind: &'static str, n: u64) -> Fault {
        Fault::Request {
            worker: self.worker(kind, n),
            service: service(self.draws, "request-service", n),
            nth: self.draws.magnitude("request-nth", n, 1, 150) - 1,
            how: how(self.draws, "request-how", n, self.lease),
        }
    }
}

fn service(draws: Draws, what: &str, n: u64) -> Service {
    match draws.percent(what, n, 60) {
        true => Service::Table,
        false => Service::Stream,
    }
}

fn how(draws: Draws, what: &str, n: u64, lease: Time) -> How {
    let long = draws.magnitude(what, 1_000 + n, 100, 2 * lease);
    match draws.between(what, n, 0, 5) {
        0 => How::NotSent,
        1 => How::Throttled,
        2 => How::LostRequest,
        3 => How::LostAnswer,
        4 => How::Slow(long),
        _ => How::Late(long),
    }
}

/// A time in seconds.
pub(super) struct Secs(pub(super) Time);

impl fmt::Display for Secs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1_000, self.0 % 1_000)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "table",
            Self::Stream => "stream",
        })
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent => f.write_str("not sent"),
            Self::Throttled => f.write_str("throttled"),
            Self::LostRequest => f.write_str("lost on the way"),
            Self::LostAnswer => f.write_str("executed, and the answer lost"),
            Self::Slow(long) => write!(f, "answered after {}", Secs(*long)),
            Self::Late(long) => write!(f, "cut off, and executed after {}", Secs(*long)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Request { worker, service, nth, how } => {
                write!(f, "request {nth} of worker-{worker} to the {service} is {how}")
            }
            Self::Spell { worker, service, from, lasts, how } => {
                write!(f, "from {} to {} ", Secs(from), Secs(from + lasts))?;
                match worker {
                    Some(worker) => write!(f, "requests of worker-{worker} to the {service} are {how}"),
                    None => write!(f, "all requests to the {service} are {how}"),
                }
            }
            Self::Weather { worker, family, often, from, lasts } => {
                write!(
                    f,
                    "from {} to {}: {family}, {often} of 1,000 requests",
                    Secs(from),
                    Secs(from + lasts)
                )?;
                worker.map_or(Ok(()), |worker| write!(f, " of worker-{worker}"))
            }
            Self::Crash { worker, at, back } => {
                write!(f, "at {} worker-{worker} dies{}", Secs(at), Again(back))
            }
            Self::CrashAtCheckpoint { worker, nth, back } => {
                let again = Again(back);
                write!(
                    f,
                    "worker-{worker} dies when its checkpoint number {nth} has come to the table{again}"
                )
            }
            Self::Pause { worker, at, lasts } => {
                write!(f, "at {} worker-{worker} stands still for {}", Secs(at), Secs(lasts))
            }
            Self::CrashInBatch { worker, nth, after, back } => {
                let (after, again) = (Secs(after), Again(back));
                write!(f, "worker-{worker} dies {after} after its batch number {nth} was handed over{again}")
            }
            Self::PauseInBatch { worker, nth, after, lasts } => {
                let (after, lasts) = (Secs(after), Secs(lasts));
                write!(
                    f,
                    "worker-{worker} stands still for {lasts}, {after} after its batch number {nth} was handed over"
                )
            }
            Self::ShutDown { worker, at, back } => {
                write!(f, "at {} worker-{worker} is shut down{}", Secs(at), Again(back))
            }
            Self::Split { at, .. } => write!(f, "at {} a shard is split", Secs(at)),
            Self::Merge { at, .. } => write!(f, "at {} two shards are merged", Secs(at)),
        }
    }
}

/// When a worker is started again.
struct Again(Time);

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ", and is started {} later", Secs(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_kind_is_drawn_and_all_are_over_in_time() {
        let mut kinds = BTreeMap::new();
        for seed in 0..300 {
            let dice = Dice { draws: Draws::new(seed), workers: 3, lease: 4_000, healed: 20_000 };
            for fault in faults(dice).into_iter().chain(weather(dice)) {
                *kinds.entry(fault.kind()).or_insert(0) += 1;
                if let Fault::Pause { at, lasts, .. }
                | Fault::Spell { from: at, lasts, .. }
                | Fault::Weather { from: at, lasts, .. } = fault
                {
                    assert!(at + lasts <= dice.healed, "{fault}");
                }
                assert!(!fault.to_string().is_empty());
            }
        }
        assert_eq!(kinds.len(), 12, "{kinds:?}");
    }
}
