//! The lane alone: the order of its writes, and its belief against a table with any behaviour that answers allow.

mod answers;

use crate::format::{Format, LeaseFormat};
use crate::ids::LeaseIx;
use crate::input::{Outcome, Reply, Why};
use crate::output::{Effect, TableOp};
use crate::policy::{AtEnd, Policies};
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow, RowRead};
use crate::table::Item;
use crate::testkit::{item_of, take_of};
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::lease::lane::{Answer, Began, From, Lane, Wish, WriteKind};
use crate::worker::lease_table::LeaseTable;
use crate::worker::testing::{
    at, config, context, done, owned, refused, refused_by, running, seconds, shows, table, throttled, unknown,
};
use proptest::prelude::*;

/// Every format reads the item of this name as a lease.
const KEY: &str = "shardId-000000000000";

/// A lane whose last write left counter 5. Later writes are to leave 6.
fn lane(cx: &Context) -> Lane {
    Lane::new(cx, 5, Checkpoint::TrimHorizon, Began::default(), cx.now(), Span::ZERO)
}

fn laned() -> (Context, Lane) {
    let cx = context();
    let lane = lane(&cx);
    (cx, lane)
}

#[test]
fn a_lease_is_renewed_at_its_interval_and_given_up_at_once() {
    let (cx, lane) = laned();
    let now = cx.now();
    assert_eq!(lane.next_write(Wish::Keep, now), None);
    assert_eq!(lane.write_at(Wish::Keep), now + cx.config().renew_interval);
    assert_eq!(lane.next_write(Wish::Keep, now + cx.config().renew_interval), Some(WriteKind::Renew));
    assert_eq!(lane.next_write(Wish::End, now), Some(WriteKind::End));
    assert_eq!(lane.next_write(Wish::GiveUp { handed: true }, now), Some(WriteKind::Release));
    let requested = Lane { next_owner: Some("other".into()), ..lane };
    assert_eq!(requested.next_write(Wish::GiveUp { handed: true }, now), Some(WriteKind::HandOver));
    assert_eq!(requested.next_write(Wish::GiveUp { handed: false }, now), Some(WriteKind::Release));
}

#[test]
fn progress_is_saved_at_its_interval_or_on_request() {
    let (cx, mut lane) = laned();
    let now = cx.now();
    lane.processed.through = Some(at(7));
    let checkpoint = Some(WriteKind::Checkpoint(at(7)));
    assert_eq!(lane.next_write(Wish::Keep, now), None);
    assert_eq!(lane.next_write(Wish::Save, now), checkpoint);
    assert_eq!(lane.next_write(Wish::Keep, now + cx.config().checkpoint_interval), checkpoint);
    lane.processed.wanted = true;
    assert_eq!(lane.next_write(Wish::Keep, now), checkpoint);
    lane.processed.durable = Checkpoint::At(at(7));
    assert_eq!(lane.next_write(Wish::Save, now), None);
}

/// Where the table is to have the last position: the last of this owner, or of a former owner.
#[test]
fn an_end_says_the_last_position_where_the_table_is_to_say_so() {
    let last = |policies: Policies, durable: Checkpoint, processed: Option<u64>| {
        let mut cx = running(config(Format::Kcl).with_policies(policies));
        let mut leases = table(&cx);
        let ix = shows(&cx, &mut leases, owned(KEY, "me", 5));
        let mut lane = lane(&cx);
        (lane.processed.durable, lane.processed.through) = (durable, processed.map(at));
        lane.emit(&mut cx, &leases, ix, WriteKind::End, &[]);
        match &cx.did().effects()[..] {
            [Effect::Table(TableOp::Write(Change::End { last, .. }))] => *last,
            other => panic!("{other:?}"),
        }
    };
    let said = Policies { at_end: AtEnd::Position, ..Policies::default() };
    let before = Checkpoint::At(at(5));
    assert_eq!(last(said, before, Some(7)), Some(at(7)));
    assert_eq!(last(said, before, None), Some(at(5)));
    assert_eq!(last(said, Checkpoint::TrimHorizon, None), None);
    assert_eq!(last(Policies::default(), before, Some(7)), None);
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// The operation is executed, and the answer says so, or why not.
    Answered,
    /// The same, but a refusal does not show the row.
    AnsweredBare,
    NotSent,
    Denied,
    /// It is executed, and the answer gets lost.
    AnswerLost,
    /// It is lost.
    Lost,
    /// The operation is executed before the next operation, or before the one after that. By then, the answer was given
    /// up.
    Late,
}

/// A step: `pause` ms after the last step, an operation that takes `takes` ms has this fate. Meanwhile, records were
/// processed, or another worker looked whether the row has stood still for long enough to be taken.
#[derive(Clone, Copy, Debug)]
struct Step {
    pause: u64,
    takes: u64,
    fate: Fate,
    processed: bool,
    other_looks: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        3 => Just(Fate::Answered),
        1 => Just(Fate::AnsweredBare),
        1 => Just(Fate::NotSent),
        1 => Just(Fate::Denied),
        2 => Just(Fate::AnswerLost),
        2 => Just(Fate::Lost),
        2 => Just(Fate::Late),
    ];
    let step = (0u64..5_000, 0u64..3_000, fate, any::<bool>(), any::<bool>());
    let step = step.prop_map(|(pause, takes, fate, processed, other_looks)| Step {
        pause,
        takes,
        fate,
        processed,
        other_looks,
    });
    proptest::collection::vec(step, 1..40)
}

/// A lane, and the item of its row.
struct Duel {
    kind: Format,
    cx: Context,
    leases: LeaseTable,
    ix: LeaseIx,
    lane: Lane,
    item: Option<Item>,
    /// Given up on our side, and not executed yet.
    late: Vec<(Mono, Change)>,
    /// When our last executed write was emitted, and when the write was executed.
    proof: (Mono, Mono),
}

impl Duel {
    fn new(kind: Format) -> Self {
        let cx = running(config(kind));
        let mut leases = table(&cx);
        let row = owned(KEY, cx.me().as_str(), 5);
        let ix = shows(&cx, &mut leases, row.clone());
        let item = Some(item_of(&kind, &row));
        let (lane, proof) = (lane(&cx), (cx.now(), cx.now()));
        let late = Vec::new();
        Self { kind, cx, leases, ix, lane, item, late, proof }
    }

    fn row(&self) -> LeaseRow {
        let read = self.item.as_ref().map(|item| self.kind.decode(item));
        read.as_ref().and_then(RowRead::lease).expect("nothing removes it").clone()
    }

    /// Whether a write emitted at this moment is executed.
    fn execute(&mut self, emitted: Mono, change: &Change) -> bool {
        let write = self.kind.encode(change);
        let applied = write.carry_out(&mut self.item).is_ok();
        if applied {
            self.proof = (self.proof.0.max(emitted), self.cx.now());
        }
        applied
    }

    fn execute_late(&mut self) {
        for (emitted, change) in std::mem::take(&mut self.late) {
            self.execute(emitted, &change);
        }
    }

    /// Another worker takes the lease if no write was executed for a lease duration.
    fn other_looks(&mut self) {
        if self.cx.now().since(self.proof.1) < self.cx.config().lease_duration {
            return;
        }
        let row = self.row();
        let take = take_of(&row, row.counter + 1, "other");
        let taken = self.kind.encode(&take).carry_out(&mut self.item);
        assert!(taken.is_ok(), "it was read just now");
    }

    fn outcome(&mut self, emitted: Mono, change: Change, fate: Fate) -> Outcome {
        match fate {
            Fate::NotSent => throttled(),
            Fate::Denied => refused(Why::Denied),
            Fate::Lost => unknown(),
            Fate::Late => {
                self.late.push((emitted, change));
                unknown()
            }
            Fate::AnswerLost => {
                self.execute(emitted, &change);
                unknown()
            }
            Fate::Answered | Fate::AnsweredBare => match (self.execute(emitted, &change), fate) {
                (true, _) => done(),
                (false, Fate::Answered) => refused_by(self.row()),
                (false, _) => refused(Why::ConditionFailed),
            },
        }
    }

    /// Emits an operation, carries the operation out and takes its answer.
    fn operate(&mut self, kind: WriteKind, step: Step) -> Answer {
        let emitted = self.cx.now();
        self.lane.emit(&mut self.cx, &self.leases, self.ix, kind, &[]);
        for wish in [Wish::Keep, Wish::Save, Wish::End, Wish::GiveUp { handed: false }] {
            assert_eq!(self.lane.next_write(wish, Mono(u64::MAX - 1)), None, "one at a time");
        }
        let (op, effect) = self.cx.did().command();
        self.cx.later(Span::from_millis(step.takes));
        let outcome = match effect {
            Effect::Table(TableOp::Write(change)) => {
                assert!(change.leaves() > change.guard(), "guards grow: {change:?}");
                self.outcome(emitted, change, step.fate)
            }
            Effect::Table(TableOp::Read { .. }) if matches!(step.fate, Fate::NotSent | Fate::Lost) => {
                unknown()
            }
            _ => Outcome::Applied(Reply::Row(Some(Box::new(RowRead::Lease(self.row()))))),
        };
        assert_eq!(self.lane.settle(op), Some(kind));
        let key = KEY.into();
        let from = From { key: &key, kind, emitted };
        self.lane.on_answer(&mut self.cx, &from, op, outcome)
    }

    /// Whether it is held still.
    fn step(&mut self, number: u64, step: Step) -> bool {
        self.cx.later(Span::from_millis(step.pause));
        if step.other_looks {
            self.other_looks();
        }
        if step.processed {
            self.lane.processed.through = Some(at(number));
        }
        let counter = self.lane.counter;
        let Some(kind) = self.lane.next_write(Wish::Keep, self.cx.now()) else {
            return true;
        };
        if number.is_multiple_of(2) {
            self.execute_late();
        }
        let mut answer = self.operate(kind, step);
        if answer == Answer::LookAtRow {
            answer = self.operate(WriteKind::Read, step);
        }
        assert!(self.lane.counter >= counter, "counters grow");
        self.cx.did();
        assert_ne!(answer, Answer::Restore, "the row is there");
        !matches!(answer, Answer::Lost(..))
    }

    fn check(&self) {
        let latest = self.proof.0 + self.cx.hold();
        assert!(self.lane.valid_until <= latest, "{:?} is after {latest:?}", self.lane.valid_until);
        let ours = self.row().actual_owner() == Some(self.cx.me());
        assert!(ours || !self.lane.believes(self.cx.now()), "two believe: {:?}", self.row());
        assert!(self.lane.processed.durable <= self.row().checkpoint, "what is durable is in the row");
    }
}

proptest! {
    /// A lane believes for no longer than the hold after the emission of an executed write, and not while another
    /// worker has the lease. The fate of its writes changes nothing here.
    #[test]
    fn no_belief_is_longer_than_the_hold_after_an_applied_write(steps in steps()) {
        for kind in Format::ALL {
            let mut duel = Duel::new(kind);
            for (number, step) in (1..).zip(&steps) {
                let held = duel.step(number, *step);
                duel.check();
                if !held {
                    break;
                }
            }
        }
    }

    /// Where every answer comes and no other worker interferes, a lease is never lost.
    #[test]
    fn a_lane_whose_answers_come_keeps_its_lease(pauses in proptest::collection::vec(0u64..4_000, 1..40)) {
        for kind in Format::ALL {
            let mut duel = Duel::new(kind);
            for (number, pause) in (1..).zip(&pauses) {
                let fate = Fate::Answered;
                let step = Step { pause: *pause, takes: 10, fate, processed: true, other_looks: true };
                assert!(duel.step(number, step));
                duel.check();
                assert!(duel.lane.believes(duel.cx.now()));
            }
        }
    }
}

#[test]
fn after_an_early_first_renewal_belief_counts_from_the_take() {
    let mut cx = context();
    let took = cx.now();
    cx.later(seconds(2));
    let lane = Lane::new(&cx, 5, Checkpoint::TrimHorizon, Began::default(), took, seconds(1));
    assert_eq!(lane.renew_at, took + Span(cx.config().renew_interval.0 - seconds(1).0));
    assert!(lane.believes(took + Span(cx.hold().0 - 1)));
    assert!(!lane.believes(took + cx.hold()));
}
