//! The fate of one request: a function of the plan, of the faults left in it, and of the request's number.

use super::draws::Draws;
use super::fault::{Fault, How, Service, Time};

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    /// The time from the request's sending to its execution; absent: never executed.
    pub(super) lands: Option<Time>,
    /// The worker's view.
    pub(super) seen: Seen,
}

/// A worker's view of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The answer, this long after the execution.
    Answer(Time),
    /// A failure, this long after the sending.
    Failure(Time),
    /// Nothing.
    Nothing,
}

impl Fate {
    /// The fate of a request with this fault, on a way that takes so long there and back.
    pub(super) fn new(how: Option<How>, there: Time, back: Time) -> Self {
        let executed = |executed: bool| executed.then_some(there);
        let (lands, seen) = match how {
            None => (Some(there), Seen::Answer(back)),
            Some(How::Slow(long)) => (Some(there), Seen::Answer(long)),
            Some(How::SlowThere(long)) => (Some(long), Seen::Answer(back)),
            Some(How::NotSent) => (None, Seen::Failure(there)),
            Some(How::Throttled | How::LostRequest) => (None, Seen::Failure(there + back)),
            Some(How::LostAnswer) => (Some(there), Seen::Failure(there + back)),
            Some(How::Late(long)) => (Some(long), Seen::Failure(there)),
            Some(How::Silent(done)) => (executed(done), Seen::Nothing),
            Some(How::ReadTimeout(long, done)) => (executed(done), Seen::Failure(long)),
            Some(How::ServerError(_, done)) => (executed(done), Seen::Failure(there + back)),
        };
        Self { lands, seen }
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
    /// The fault of the request under the faults in force, with the name of its family.
    pub(super) fn fault(self, draws: Draws, faults: &[Fault]) -> Option<(&'static str, How)> {
        let single = faults.iter().find_map(|fault| match fault {
            Fault::Request { worker, service, nth, how }
                if (*worker, *service, *nth) == (self.worker, self.service, self.number) =>
            {
                Some((how.family(), *how))
            }
            _ => None,
        });
        single.or_else(|| faults.iter().find_map(|fault| self.spell(draws, fault)))
    }

    fn spell(self, draws: Draws, fault: &Fault) -> Option<(&'static str, How)> {
        let reaches = |worker: Option<usize>, from: Time, lasts: Time| {
            worker.is_none_or(|worker| worker == self.worker) && (from..from + lasts).contains(&self.now)
        };
        match *fault {
            Fault::Spell { worker, service, from, lasts, how }
                if service == self.service && reaches(worker, from, lasts) =>
            {
                Some((how.family(), how))
            }
            Fault::Weather { worker, family, often, from, lasts }
                if reaches(worker, from, lasts) && draws.between(family, self.key, 0, 999) < often =>
            {
                Some((family, How::of_family(family, draws, self.key)))
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

    /// The fates of 500 requests in the weather of a family.
    fn fates(family: &'static str) -> Vec<Fate> {
        let weather = Fault::Weather { worker: None, family, often: 500, from: 0, lasts: 1_000 };
        let struck: Vec<_> = (0..1_000).filter_map(|n| asking(n).fault(Draws::new(1), &[weather])).collect();
        assert!((300..700).contains(&struck.len()), "{family} strikes half of the requests");
        assert!(struck.iter().all(|(name, _)| *name == family), "{family}");
        struck.into_iter().map(|(_, how)| Fate::new(Some(how), 3, 5)).collect()
    }

    #[test]
    fn every_family_strikes_and_fair_weather_is_fair() {
        for family in FAMILIES {
            let fates = fates(family);
            let executed = fates.iter().filter(|fate| fate.lands.is_some()).count();
            let answered = fates.iter().any(|fate| matches!(fate.seen, Seen::Answer(_)));
            assert_eq!(answered, family == "slow", "{family}");
            match family {
                "throttled" | "lost-request" | "refused" => assert_eq!(executed, 0, "{family}"),
                "lost-answer" | "late" | "slow" => assert_eq!(executed, fates.len(), "{family}"),
                _ => assert!(executed > 0 && executed < fates.len(), "{family}"),
            }
        }
        let fair = Fate { lands: Some(3), seen: Seen::Answer(5) };
        assert_eq!(Fate::new(None, 3, 5), fair);
        assert_eq!(asking(0).fault(Draws::new(1), &[]), None);
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
            assert_eq!(asking(7).fault(Draws::new(1), &[fault]).is_some(), struck, "{name}");
        }
    }
}
