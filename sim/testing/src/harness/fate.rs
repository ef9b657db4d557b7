//! The fate of one request: a function of the plan, of the faults left in it, and of the request's number.

use super::draws::Draws;
use super::fault::{Fault, How, Micros, Service, Time};

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    /// The family of the fault; `fair` without a fault.
    pub(super) family: &'static str,
    /// The fault; absent: the fair fate, or a fault without a name in plans.
    pub(super) how: Option<How>,
    /// The time from the request's sending to its execution; absent: never executed.
    pub(super) lands: Option<Micros>,
    /// The worker's view.
    pub(super) seen: Seen,
}

/// A worker's view of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The answer, this long after the execution.
    Answer(Micros),
    /// A failure, this long after the sending.
    Failure(Micros, Failing),
    /// Nothing.
    Nothing,
}

/// The failure of a request, in the worker's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// Nobody listens.
    Refused,
    /// The service refuses: too many requests.
    Throttled,
    /// The connection broke.
    Reset,
    /// No byte came for as long as the client waits.
    ReadTimeout,
    /// The service reports an error of its own, with this status.
    Status(u16),
}

/// The shortest and the longest time of a request in bad weather.
const LONG: [Micros; 2] = [20_000, 6_000_000];

impl Fate {
    /// The fate of a request with this fault. `there`, `back`: the times of the request's and the answer's way.
    fn new(how: Option<How>, [there, back]: [Micros; 2]) -> Self {
        let failure = |after, failing| Seen::Failure(after, failing);
        let (lands, seen) = match how {
            None => (Some(there), Seen::Answer(back)),
            Some(How::Slow(long)) => (Some(there), Seen::Answer(long * 1_000)),
            Some(How::NotSent) => (None, failure(there, Failing::Refused)),
            Some(How::Throttled) => (None, failure(there + back, Failing::Throttled)),
            Some(How::LostRequest) => (None, failure(there + back, Failing::Reset)),
            Some(How::LostAnswer) => (Some(there), failure(there + back, Failing::Reset)),
            Some(How::Late(long)) => (Some(long * 1_000), failure(there, Failing::Reset)),
        };
        Self { family: how.map_or("fair", How::family), how, lands, seen }
    }

    /// A drawn fate of a request that a family of faults hits. The key names the request.
    fn drawn(family: &'static str, draws: Draws, key: u64, way: [Micros; 2]) -> Self {
        let [there, back] = way;
        let executed = draws.percent("executed", key, 50);
        let long = draws.magnitude("long", key, LONG[0], LONG[1]);
        let status = if long.is_multiple_of(3) { 503 } else { 500 };
        let landed = executed.then_some(there);
        let of = |how| Self { family, ..Self::new(Some(how), way) };
        let (lands, seen) = match family {
            "lost-request" => return of(How::LostRequest),
            "lost-answer" => return of(How::LostAnswer),
            "throttled" => return of(How::Throttled),
            "refused" => return of(How::NotSent),
            "late" => (Some(there + long), Seen::Failure(there, Failing::Reset)),
            "slow" if executed => (Some(long), Seen::Answer(back)),
            "slow" => (Some(there), Seen::Answer(long)),
            "silence" => (landed, Seen::Nothing),
            "read-timeout" => (landed, Seen::Failure(long, Failing::ReadTimeout)),
            "server-error" => (landed, Seen::Failure(there + back, Failing::Status(status))),
            // The connections of a cut-off worker are refused, silent or broken; a request sent before the cut may have
            // gone through.
            _ => match draws.between("cut-off", key, 0, 3) {
                0 => return of(How::NotSent),
                1 => (None, Seen::Nothing),
                2 => return of(How::LostAnswer),
                _ => return of(How::LostRequest),
            },
        };
        Self { family, how: None, lands, seen }
    }
}

/// A request of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    /// When it is sent.
    pub(super) now: Time,
    /// The worker.
    pub(super) worker: usize,
    /// Its service.
    pub(super) service: Service,
    /// The request's number among the worker's requests to this service.
    pub(super) number: u64,
    /// The request's key in draws.
    pub(super) key: u64,
}

impl Asking {
    /// The fate of the request under the faults in force, on a way that takes so long there and back.
    pub(super) fn fate(self, draws: Draws, faults: &[Fault], way: [Micros; 2]) -> Fate {
        let single = faults.iter().find_map(|fault| match fault {
            Fault::Request { worker, service, nth, how }
                if (*worker, *service, *nth) == (self.worker, self.service, self.number) =>
            {
                Some(Fate::new(Some(*how), way))
            }
            _ => None,
        });
        let fate = single.or_else(|| faults.iter().find_map(|fault| self.spell(draws, fault, way)));
        fate.unwrap_or_else(|| Fate::new(None, way))
    }

    fn spell(self, draws: Draws, fault: &Fault, way: [Micros; 2]) -> Option<Fate> {
        let reaches = |worker: Option<usize>, from: Time, lasts: Time| {
            worker.is_none_or(|worker| worker == self.worker) && (from..from + lasts).contains(&self.now)
        };
        match *fault {
            Fault::Spell { worker, service, from, lasts, how }
                if service == self.service && reaches(worker, from, lasts) =>
            {
                Some(Fate::new(Some(how), way))
            }
            Fault::Weather { worker, family, often, from, lasts }
                if reaches(worker, from, lasts) && draws.between(family, self.key, 0, 999) < often =>
            {
                Some(Fate::drawn(family, draws, self.key, way))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::FAMILIES;
    use super::*;

    fn asking(number: u64) -> Asking {
        Asking { now: 500, worker: 1, service: Service::Table, number, key: number }
    }

    #[test]
    fn every_family_strikes_and_fair_weather_is_fair() {
        for family in FAMILIES {
            let weather = Fault::Weather { worker: None, family, often: 500, from: 0, lasts: 1_000 };
            let fates = (0..1_000).map(|n| asking(n).fate(Draws::new(1), &[weather], [3, 5]));
            let (struck, fair): (Vec<Fate>, Vec<Fate>) = fates.partition(|fate| fate.family == family);
            assert!((300..700).contains(&struck.len()), "{family} strikes half of the requests");
            assert!(fair.iter().all(|fate| *fate == Fate::new(None, [3, 5])), "{family}");
            let executed = struck.iter().filter(|fate| fate.lands.is_some()).count();
            let answered = struck.iter().any(|fate| matches!(fate.seen, Seen::Answer(_)));
            assert_eq!(answered, family == "slow", "{family}");
            match family {
                "throttled" | "lost-request" | "refused" => assert_eq!(executed, 0, "{family}"),
                "lost-answer" | "late" | "slow" => assert_eq!(executed, struck.len(), "{family}"),
                _ => assert!(executed > 0 && executed < struck.len(), "{family}"),
            }
        }
        let fair = asking(0).fate(Draws::new(1), &[], [3, 5]);
        assert_eq!(fair, Fate { family: "fair", how: None, lands: Some(3), seen: Seen::Answer(5) });
    }

    #[test]
    fn a_spell_strikes_its_worker_in_its_time() {
        let cut = |worker, from| Fault::Weather { worker, family: "cut", often: 1_000, from, lasts: 100 };
        let spell =
            |service| Fault::Spell { worker: None, service, from: 500, lasts: 1, how: How::Throttled };
        for (name, fault, struck) in [
            ("all workers", cut(None, 450), true),
            ("this worker", cut(Some(1), 450), true),
            ("another worker", cut(Some(0), 450), false),
            ("before", cut(None, 400), false),
            ("after", cut(None, 501), false),
            ("its service", spell(Service::Table), true),
            ("another service", spell(Service::Stream), false),
        ] {
            let fate = asking(7).fate(Draws::new(1), &[fault], [3, 5]);
            assert_eq!(fate.family != "fair", struck, "{name}");
        }
    }
}
