//! The treatment of a record that the handler cannot process.
//!
//! Failed attempts are counted until a record is processed. A batch that failed `failure_attempts` times is handed over
//! one record at a time, so that the failing record becomes known and the records before it get through. When that
//! record has failed as often alone, the shard is stopped or the record is set aside. Behind that record, batches are
//! handed over whole again. A batch kept by the application is no progress: the application may still give it back.
//!
//! ```text
//!            a batch failed N times               a record failed N times alone
//!   whole ────────────────────────► one by one ────────────────────────────────► setting aside, or stopped
//!     ▲                                  │  ▲                                           │            │
//!     └──────────────────────────────────┘  └───────────── read again ──────────────────┤            │
//!     │     the record that failed is past                                              │            │
//!     └─────────────────────────────────────────────────────────────────────────────────┘ ◄──────────┘
//!                                                              the record is past       the application resumes the shard
//! ```

use crate::config::{Config, FailureAction};
use crate::notice::Stall;
use crate::position::Position;
use crate::time::Mono;

/// A record that failed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::worker::lease::processing) struct Poison {
    pub(in crate::worker::lease::processing) at: Position,
    /// How often in a row.
    pub(super) attempts: u32,
}

/// What is handed over next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The front batch, or the rest of the front batch.
    Whole,
    /// The first remaining record of the front batch, until this position is past.
    OneByOne { through: Position },
    /// This record is handed to the store of failed records. The store failed `failures` times.
    SettingAside { poison: Poison, detail: String, failures: u32 },
    /// Nothing, until the application resumes the shard.
    Stopped(Poison),
}

/// What is to be handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Whole,
    OneRecord,
    SetAside(Poison, String),
    Nothing,
}

/// What follows from a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Another attempt after a pause.
    Again,
    /// This record is set aside.
    SetAside,
    /// The shard is stopped because of this record.
    Stop(Poison),
}

/// The attempts at the front batch, and the next step when the attempts fail.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Failure {
    /// Hand-overs of what is in front: the number that the application is told, and the length of the pause.
    attempts: u32,
    /// The earliest moment of the next hand-over.
    not_before: Mono,
    /// Failed attempts since the watermark moved.
    failed: u32,
    /// The last attempts were at this record alone.
    alone: Option<Poison>,
    phase: Phase,
}

impl Failure {
    pub(super) const NEW: Failure =
        Failure { attempts: 0, not_before: Mono(0), failed: 0, alone: None, phase: Phase::Whole };

    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(super) fn not_before(&self) -> Mono {
        self.not_before
    }

    pub(super) fn pause_until(&mut self, at: Mono) {
        self.not_before = at;
    }

    pub(super) fn next(&self) -> Next {
        match &self.phase {
            Phase::Whole => Next::Whole,
            Phase::OneByOne { .. } => Next::OneRecord,
            Phase::SettingAside { poison, detail, .. } => Next::SetAside(*poison, detail.clone()),
            Phase::Stopped(_) => Next::Nothing,
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped(_))
    }

    /// Counts a further attempt. Returns the attempt's number.
    pub(super) fn attempt(&mut self) -> u32 {
        self.attempts = self.attempts.saturating_add(1);
        self.attempts
    }

    /// The application has processed the front batch, or keeps it: the next front batch is new to the application.
    pub(super) fn front_is_new(&mut self) {
        self.attempts = 0;
        self.not_before = Mono(0);
    }

    /// The watermark moved. A running attempt is the first attempt since.
    pub(super) fn progressed(&mut self) {
        self.failed = 0;
        self.attempts = self.attempts.min(1);
    }

    /// Whether it matters how far the front batch has been processed.
    pub(super) fn is_watched(&self) -> bool {
        self.alone.is_some() || self.phase != Phase::Whole
    }

    /// The last processed position of the batch handed over.
    pub(super) fn reached(&mut self, through: Option<Position>) {
        let past = self.alone.is_some_and(|poison| Some(poison.at) <= through);
        if past {
            self.alone = None;
        }
        let over = match &self.phase {
            Phase::Whole | Phase::Stopped(_) => false,
            Phase::OneByOne { through: last } => past || Some(*last) <= through,
            Phase::SettingAside { poison, .. } => Some(poison.at) <= through,
        };
        if over {
            self.phase = Phase::Whole;
        }
    }

    /// An attempt failed. `at`: the record, if it was handed over alone. `last`: the last position of the failed
    /// hand-over.
    pub(super) fn fail(
        &mut self, config: &Config, at: Option<Position>, last: Option<Position>, detail: &str,
    ) -> Verdict {
        self.failed = self.failed.saturating_add(1);
        self.alone = match (at, self.alone, &self.phase) {
            (Some(at), Some(before), _) if before.at == at => {
                Some(Poison { at, attempts: before.attempts.saturating_add(1) })
            }
            (Some(at), ..) => Some(Poison { at, attempts: 1 }),
            // Read again, the record is not in front yet.
            (None, before, Phase::OneByOne { .. }) => before,
            (None, ..) => None,
        };
        let enough = |attempts: u32| config.failure_attempts > 0 && attempts >= config.failure_attempts;
        if let Some(poison) = self.alone.filter(|poison| at.is_some() && enough(poison.attempts)) {
            return self.give_up_on(poison, config.failure_action, detail);
        }
        if let (Phase::Whole, None, Some(through)) = (&self.phase, self.alone, last)
            && enough(self.failed)
        {
            self.attempts = 0;
            self.phase = Phase::OneByOne { through };
        }
        Verdict::Again
    }

    fn give_up_on(&mut self, poison: Poison, action: FailureAction, detail: &str) -> Verdict {
        self.front_is_new();
        match action {
            FailureAction::Stop => {
                self.phase = Phase::Stopped(poison);
                Verdict::Stop(poison)
            }
            FailureAction::SetAside => {
                self.phase = Phase::SettingAside { poison, detail: detail.to_owned(), failures: 0 };
                Verdict::SetAside
            }
        }
    }

    /// The record could not be set aside: how often so far.
    pub(super) fn set_aside_failed(&mut self) -> u32 {
        match &mut self.phase {
            Phase::SettingAside { failures, .. } => {
                *failures = failures.saturating_add(1);
                *failures
            }
            Phase::Whole | Phase::OneByOne { .. } | Phase::Stopped(_) => 1,
        }
    }

    /// How the record that is set aside failed last.
    pub(super) fn detail(&self) -> &str {
        match &self.phase {
            Phase::SettingAside { detail, .. } => detail,
            Phase::Whole | Phase::OneByOne { .. } | Phase::Stopped(_) => "",
        }
    }

    /// All unprocessed records are read again. Records may come before the record to be set aside.
    pub(super) fn read_again(&mut self) {
        if let Phase::SettingAside { poison, .. } = self.phase {
            self.phase = Phase::OneByOne { through: poison.at };
        }
    }

    /// What was in front is not in memory any more.
    pub(super) fn front_is_lost(&mut self) {
        self.attempts = 0;
        self.read_again();
    }

    /// The application resumes the shard: all counts begin anew. Whether it was stopped.
    pub(super) fn resume(&mut self) -> bool {
        let stopped = self.is_stopped();
        if stopped {
            *self = Self::NEW;
        }
        stopped
    }

    /// Why the shard stands still, if because of failures.
    pub(super) fn why(&self) -> Option<Stall> {
        match self.phase {
            Phase::Whole | Phase::OneByOne { .. } => None,
            Phase::SettingAside { poison, failures, .. } => {
                Some(Stall::SettingAside { position: poison.at, failures })
            }
            Phase::Stopped(poison) => Some(Stall::Stopped { position: poison.at, attempts: poison.attempts }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::testing::at;

    fn policy(attempts: u32, action: FailureAction) -> Config {
        Config::default().with_failure_attempts(attempts).with_failure_action(action)
    }

    /// What failed whole so often, up to record 9.
    fn failed_whole(config: &Config, times: u32) -> Failure {
        let mut failure = Failure::NEW;
        for _ in 0..times {
            failure.attempt();
            assert_eq!(failure.fail(config, None, Some(at(9)), "no"), Verdict::Again);
        }
        failure
    }

    #[test]
    fn after_enough_failures_a_batch_is_handed_over_by_records() {
        let config = policy(2, FailureAction::Stop);
        assert_eq!(failed_whole(&config, 1).next(), Next::Whole);
        let mut failure = failed_whole(&config, 2);
        assert_eq!(failure.next(), Next::OneRecord);
        failure.reached(Some(at(8)));
        assert_eq!(failure.next(), Next::OneRecord);
        failure.reached(Some(at(9)));
        assert_eq!(failure.next(), Next::Whole);
    }

    #[test]
    fn without_a_limit_attempts_go_on_for_ever() {
        let config = policy(0, FailureAction::SetAside);
        let mut failure = failed_whole(&config, 100);
        assert_eq!(failure.next(), Next::Whole);
        for _ in 0..100 {
            assert_eq!(failure.fail(&config, Some(at(1)), Some(at(1)), "no"), Verdict::Again);
        }
        assert_eq!(failure.next(), Next::Whole);
    }

    #[test]
    fn progress_begins_the_count_anew() {
        let config = policy(2, FailureAction::Stop);
        let mut failure = failed_whole(&config, 1);
        failure.progressed();
        failure.fail(&config, None, Some(at(9)), "no");
        assert_eq!(failure.next(), Next::Whole);
    }

    #[test]
    fn that_a_batch_is_kept_is_no_progress() {
        let config = policy(2, FailureAction::Stop);
        let mut failure = failed_whole(&config, 1);
        failure.front_is_new();
        assert_eq!(failure.attempts(), 0);
        failure.fail(&config, None, Some(at(9)), "no");
        assert_eq!(failure.next(), Next::OneRecord);
    }

    #[test]
    fn only_a_record_that_failed_alone_and_in_a_row_is_given_up() {
        let config = policy(2, FailureAction::SetAside);
        let mut failure = failed_whole(&config, 2);
        let fail = |failure: &mut Failure, n| failure.fail(&config, Some(at(n)), Some(at(9)), "bad");
        assert_eq!(fail(&mut failure, 3), Verdict::Again);
        assert_eq!(fail(&mut failure, 4), Verdict::Again, "another record");
        assert_eq!(fail(&mut failure, 4), Verdict::SetAside);
        let poison = Poison { at: at(4), attempts: 2 };
        assert_eq!(failure.next(), Next::SetAside(poison, "bad".into()));
        failure.reached(Some(at(3)));
        assert_ne!(failure.next(), Next::Whole);
        failure.reached(Some(at(4)));
        assert_eq!(failure.next(), Next::Whole, "the rest of the batch");
    }

    #[test]
    fn a_batch_of_one_record_needs_no_second_phase() {
        let config = policy(2, FailureAction::Stop);
        let mut failure = Failure::NEW;
        assert_eq!(failure.fail(&config, Some(at(1)), Some(at(1)), "no"), Verdict::Again);
        assert_eq!(failure.next(), Next::Whole);
        let stop = failure.fail(&config, Some(at(1)), Some(at(1)), "no");
        assert!(matches!(stop, Verdict::Stop(poison) if poison.attempts == 2));
    }

    #[test]
    fn a_failed_record_that_succeeds_in_the_end_is_past() {
        let config = policy(2, FailureAction::Stop);
        let mut failure = failed_whole(&config, 2);
        failure.fail(&config, Some(at(4)), Some(at(9)), "no");
        failure.reached(Some(at(4)));
        assert_eq!(failure.next(), Next::Whole);
    }

    #[test]
    fn a_batch_read_again_is_set_aside_only_after_another_failure() {
        let config = policy(1, FailureAction::SetAside);
        let mut failure = failed_whole(&config, 1);
        failure.fail(&config, Some(at(4)), Some(at(9)), "no");
        failure.read_again();
        assert_eq!(failure.next(), Next::OneRecord);
        failure.reached(Some(at(3)));
        assert_eq!(failure.next(), Next::OneRecord);
        assert_eq!(failure.fail(&config, Some(at(4)), Some(at(9)), "no"), Verdict::SetAside);
    }

    #[test]
    fn only_the_application_ends_a_stop() {
        let config = policy(1, FailureAction::Stop);
        let mut failure = failed_whole(&config, 1);
        failure.fail(&config, Some(at(4)), Some(at(9)), "no");
        failure.reached(Some(at(9)));
        failure.read_again();
        failure.progressed();
        assert_eq!(failure.next(), Next::Nothing);
        assert!(failure.resume());
        assert_eq!(failure, Failure::NEW);
        assert!(!failure.resume());
    }
}
