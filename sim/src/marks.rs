//! The catalogue of marks: marks required in every run, rare marks, and pairs of marks never seen in one world.
//!
//! A simulation without findings proves little unless faults occurred. Faults must occur, and the engine must reach
//! rare states under each family of faults.

use crate::report::Marks;
use leasehold_engine::notice::{LossReason, Notice, TakeReason};
use serde::Serialize;

/// The subject of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A family of faults was at work.
    Fault,
    /// An event required in at least one of a hundred worlds.
    Common,
    /// A rare event, and the reason.
    Rare(&'static str),
    /// An event of worlds where little else can occur, and the reason.
    Alone(&'static str),
}

use Kind::{Alone, Common, Fault, Rare};

/// All marks, in the order of their names.
pub const CATALOGUE: &[(&str, Kind)] = &[
    ("aggregate", Fault),
    ("aggregate-left-out", Common),
    ("aggregate-sent-again", Common),
    ("another-fleet", Fault),
    ("answer-too-long", Rare("a line must be narrow, and its proxy hold answers back")),
    ("begun-again", Common),
    ("border-moved", Fault),
    ("checkpoint-in-aggregate", Common),
    ("child-again", Fault),
    ("child-misnamed", Fault),
    ("child-twice", Fault),
    ("consumer-gone", Fault),
    ("crash", Fault),
    ("crash-loop", Fault),
    ("crash-on-write", Fault),
    ("cut-off", Fault),
    ("delete-row", Fault),
    ("empty-read", Fault),
    ("end-claimed", Fault),
    ("end-claimed-again", Fault),
    ("end-claimed-named", Fault),
    ("ended-by-hand", Fault),
    ("engine/adopted", Common),
    ("engine/bad-listing", Common),
    ("engine/blocked", Common),
    ("engine/claimed", Rare("a worker of KCL's format takes what it wants")),
    ("engine/continued", Common),
    ("engine/created", Common),
    ("engine/ended", Common),
    ("engine/fatal", Common),
    ("engine/fenced", Common),
    ("engine/found-own", Common),
    ("engine/handler-failed", Common),
    ("engine/hole", Common),
    ("engine/lets-go", Common),
    ("engine/lost-other", Common),
    ("engine/lost-row-gone", Rare("a row must be removed by hand and then not be put back")),
    ("engine/lost-taken", Common),
    ("engine/mending", Common),
    ("engine/missed-take", Common),
    ("engine/moving", Common),
    ("engine/not-parents", Common),
    ("engine/parent-unlisted", Common),
    ("engine/pause-ended", Common),
    ("engine/paused", Common),
    ("engine/released", Common),
    ("engine/removed", Common),
    ("engine/restoring", Common),
    ("engine/resumed", Common),
    ("engine/runtime-blocked", Common),
    ("engine/runtime-runs", Common),
    ("engine/set-aside", Common),
    ("engine/set-aside-failed", Common),
    ("engine/shard-stopped", Common),
    ("engine/spared", Common),
    ("engine/spoiled", Common),
    ("engine/stalled", Common),
    ("engine/stole", Common),
    ("engine/stray", Rare("drivers send one outcome for every command")),
    ("engine/time-missed", Common),
    ("engine/took-expired", Common),
    ("engine/took-from-former-life", Common),
    (
        "engine/took-left-lying",
        Rare("a worker must die between its wish for a lease and the moment at which it is handed over"),
    ),
    ("engine/took-unowned", Common),
    ("engine/unreadable", Common),
    ("engine/wall-ignored", Rare("a wall clock must jump forward many times within a few beliefs")),
    ("engine/was-given", Common),
    ("engine/yields", Rare("a worker of KCL's format has no turns")),
    ("explicit-checkpoint", Fault),
    ("failing-writes", Fault),
    ("first-look-wrong", Fault),
    ("foreign-row", Fault),
    ("future-start", Common),
    ("garbled", Fault),
    ("gives-batch-back", Fault),
    ("guard-removed", Fault),
    ("hand-over-begun", Fault),
    ("hand-over-on-take", Fault),
    ("handler-aborted", Common),
    ("handler-deaf", Fault),
    ("handler-fails", Fault),
    ("handler-hangs", Fault),
    ("handler-slow", Fault),
    ("handler-timed-out", Common),
    ("handler-waits", Fault),
    ("hung-lease", Fault),
    ("keeps-batch", Fault),
    ("late", Fault),
    ("later-iterator", Fault),
    ("list-partial", Fault),
    ("lost-answer", Fault),
    ("lost-request", Fault),
    ("mass-reshard", Fault),
    ("merge", Fault),
    ("misplaced-by-hand", Fault),
    ("name-removed", Fault),
    ("narrow-line", Fault),
    ("not-sent", Fault),
    ("null-attribute", Fault),
    ("number-low", Fault),
    ("one-stream-deleted", Rare("the worlds of several streams are few")),
    ("other-after-polled", Rare("programs of others stand beside ours in mixed worlds only")),
    ("other-after-subscribed", Rare("programs of others stand beside ours in mixed worlds only")),
    ("other-dawdles", Rare("programs of others stand beside ours in mixed worlds only")),
    ("other-iterator", Fault),
    ("other-merge-pushed", Rare("programs of others stand beside ours in mixed worlds only")),
    ("other-moves", Rare("programs of others stand beside ours in mixed worlds only")),
    ("other-split-pushed", Rare("programs of others stand beside ours in mixed worlds only")),
    ("other-subscribes", Rare("programs of others stand beside ours in mixed worlds only")),
    ("outage-answers", Fault),
    ("outage-now", Fault),
    ("outage-refused", Fault),
    ("outage-requests", Fault),
    ("owner-null", Fault),
    ("parents-by-hand", Fault),
    ("partial-ack", Fault),
    ("pause", Fault),
    ("pause-on-answer", Fault),
    ("place-stolen", Fault),
    ("place-taken", Fault),
    ("poison", Fault),
    ("polled-after-other", Rare("programs of others stand beside ours in mixed worlds only")),
    ("put-refused", Rare("a shard must get more than it takes")),
    ("record-set-aside", Common),
    ("refused-lease", Fault),
    ("replace", Fault),
    ("replica-behind", Fault),
    ("replica-empty", Fault),
    ("replica-lacks-shard", Fault),
    ("replica-partial", Fault),
    ("rows-name-another", Alone("every worker refuses the table and stops")),
    ("runtime-blocked", Fault),
    ("said-another", Fault),
    ("said-deleting", Fault),
    ("said-denied", Fault),
    ("said-missing", Fault),
    ("says-again", Fault),
    ("server-error", Fault),
    ("shard-paused", Fault),
    ("silence", Fault),
    ("slow", Fault),
    ("split", Fault),
    ("split-at-once", Fault),
    ("stale", Fault),
    ("stale-call", Fault),
    ("stop-on-take", Fault),
    ("strange-checkpoints", Alone("no shard can be read, and every worker stops")),
    ("stream-deleted", Fault),
    ("stream-error", Rare("the worlds of several streams are few")),
    ("stream-in-use", Common),
    ("stream-remade", Fault),
    ("stream-silent", Rare("the worlds of several streams are few")),
    ("stream-taken-away", Fault),
    ("stream-throttled", Rare("the worlds of several streams are few")),
    ("stream/applied", Common),
    ("stream/not-sent", Common),
    ("stream/refused/expired", Common),
    ("stream/refused/gone", Rare("an iterator or token must be asked for after its worker has dropped it")),
    ("stream/refused/other", Common),
    ("stream/unknown", Common),
    ("streams-2", Common),
    ("streams-4", Common),
    ("subscribed-after-other", Rare("programs of others stand beside ours in mixed worlds only")),
    ("subscription-broken", Fault),
    ("subscription-denied", Fault),
    ("subscription-over", Fault),
    ("subscription-silent", Fault),
    ("suspended", Fault),
    ("suspended-wall-late", Common),
    ("suspended-wall-wrong", Common),
    ("table-deleted", Fault),
    ("table-of-another", Alone("every worker refuses the table and stops")),
    ("table/applied", Common),
    ("table/not-sent", Common),
    ("table/refused/condition", Common),
    ("table/refused/condition-with-row", Common),
    ("table/refused/other", Rare("a table that is there refuses nothing else")),
    ("table/unknown", Common),
    ("throttle-storm", Fault),
    ("throttled", Fault),
    ("trim", Fault),
    ("trim-unread", Common),
    ("twice", Fault),
    ("two-fleets", Alone("every worker refuses the table and stops")),
    ("unknown-attribute", Fault),
    ("unparsable-row", Fault),
    ("upgrade", Fault),
    ("wall-freeze", Fault),
    ("wall-step", Fault),
];

/// The mark of a notice. Some notices have no mark.
pub(crate) fn mark_of(notice: &Notice) -> Option<&'static str> {
    match notice {
        Notice::Took { why, .. } => mark_of_take(why),
        Notice::Lost { why: LossReason::Taken { .. }, .. } => Some("engine/lost-taken"),
        Notice::Lost { why: LossReason::RowGone, .. } => Some("engine/lost-row-gone"),
        Notice::Lost { .. } => Some("engine/lost-other"),
        Notice::InvariantBroken { .. } => Some("engine/invariant-broken"),
        _ => of_engine(notice.name()),
    }
}

fn mark_of_take(why: &TakeReason) -> Option<&'static str> {
    Some(match why {
        TakeReason::Unowned => "engine/took-unowned",
        TakeReason::Expired { .. } => "engine/took-expired",
        TakeReason::Stolen { .. } => "engine/stole",
        TakeReason::Ours => "engine/found-own",
        TakeReason::Given => "engine/was-given",
        TakeReason::LeftLying { .. } => "engine/took-left-lying",
        TakeReason::FormerLife { .. } => "engine/took-from-former-life",
        _ => return None,
    })
}

/// The mark of an engine's notice with this name, if such notices have a mark.
fn of_engine(name: &str) -> Option<&'static str> {
    let mark = |mark: &str| mark.bytes().cmp("engine/".bytes().chain(name.bytes()));
    let found = CATALOGUE.binary_search_by(|(known, _)| mark(known));
    found.ok().map(|at| CATALOGUE[at].0)
}

/// How often each pair of marks occurred in one world.
#[derive(Clone, Debug)]
pub struct Together {
    worlds: u64,
    single: Vec<u64>,
    pairs: Vec<u64>,
}

impl Default for Together {
    fn default() -> Self {
        let n = CATALOGUE.len();
        Self { worlds: 0, single: vec![0; n], pairs: vec![0; n * n] }
    }
}

/// A mark never seen beside a fault, though both are frequent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlindSpot {
    /// The mark.
    pub mark: &'static str,
    /// The family of faults.
    pub fault: &'static str,
}

/// With this many common occurrences expected, an absence is a finding.
const TELLING: u64 = 8;

impl Together {
    /// Counts the marks of one world.
    pub fn add(&mut self, marks: &Marks) {
        self.worlds += 1;
        let here: Vec<usize> = marks
            .iter()
            .filter_map(|mark| CATALOGUE.binary_search_by_key(&mark, |(name, _)| name).ok())
            .collect();
        for &one in &here {
            self.single[one] += 1;
            for &other in &here {
                self.pairs[one * CATALOGUE.len() + other] += 1;
            }
        }
    }

    /// The number of worlds with a mark and a fault.
    pub fn count(&self, mark: &str, fault: &str) -> u64 {
        let place = |name: &str| CATALOGUE.binary_search_by_key(&name, |(name, _)| name).ok();
        match (place(mark), place(fault)) {
            (Some(one), Some(other)) => self.pairs[one * CATALOGUE.len() + other],
            _ => 0,
        }
    }

    /// Frequent marks and faults never seen in one world.
    pub fn blind_spots(&self) -> Vec<BlindSpot> {
        let mut found = Vec::new();
        for (one, &(mark, kind)) in CATALOGUE.iter().enumerate() {
            for (other, &(fault, of)) in CATALOGUE.iter().enumerate() {
                let expected = self.single[one] * self.single[other] / self.worlds.max(1);
                if !matches!(kind, Fault | Alone(_))
                    && of == Fault
                    && expected >= TELLING
                    && self.pairs[one * CATALOGUE.len() + other] == 0
                {
                    found.push(BlindSpot { mark, fault });
                }
            }
        }
        found
    }

    /// Marks required in one of a hundred worlds but seen in fewer, with the number of worlds.
    pub fn too_rare(&self) -> Vec<(&'static str, u64)> {
        CATALOGUE
            .iter()
            .zip(&self.single)
            .filter(|((_, kind), count)| !matches!(kind, Rare(_)) && **count * 100 < self.worlds)
            .map(|((name, _), count)| (*name, *count))
            .collect()
    }

    /// The table of marks (lines) and faults (columns, by number), in percent of the worlds with the fault.
    pub fn table(&self) -> String {
        use std::fmt::Write as _;
        let faults: Vec<usize> = (0..CATALOGUE.len()).filter(|&n| CATALOGUE[n].1 == Fault).collect();
        let mut text = String::new();
        for (column, &fault) in faults.iter().enumerate() {
            let _ = writeln!(text, "{column:>4} {} ({} worlds)", CATALOGUE[fault].0, self.single[fault]);
        }
        let _ = write!(text, "{:<34}", "mark, in % of worlds with the fault");
        for column in 0..faults.len() {
            let _ = write!(text, "{column:>4}");
        }
        for (one, (mark, kind)) in CATALOGUE.iter().enumerate() {
            if *kind == Fault || self.single[one] == 0 {
                continue;
            }
            let _ = write!(text, "\n{mark:<35}");
            for &fault in &faults {
                let share = self.pairs[one * CATALOGUE.len() + fault] * 100 / self.single[fault].max(1);
                let _ = write!(text, "{share:>4}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Options, run_seed};

    #[test]
    fn the_catalogue_is_in_order_and_has_every_mark_that_occurs() {
        assert!(CATALOGUE.is_sorted_by(|one, other| one.0 < other.0));
        for seed in 0..20 {
            for mark in run_seed(seed, &Options::default()).found.marks.iter() {
                let known = CATALOGUE.iter().any(|(name, _)| *name == mark);
                assert!(known, "{mark:?} is missing in the catalogue");
            }
        }
    }

    fn marks(names: &[&'static str]) -> Marks {
        let mut marks = Marks::default();
        for name in names {
            marks.set(name);
        }
        marks
    }

    #[test]
    fn frequent_marks_never_together_are_a_blind_spot() {
        let mut together = Together::default();
        for _ in 0..50 {
            together.add(&marks(&["engine/stole", "late"]));
            together.add(&marks(&["engine/stole"]));
            together.add(&marks(&["crash"]));
        }
        let spots = together.blind_spots();
        let spot = |mark, fault| BlindSpot { mark, fault };
        assert!(spots.contains(&spot("engine/stole", "crash")), "{spots:?}");
        assert!(!spots.contains(&spot("engine/stole", "late")), "{spots:?}");
        assert_eq!(together.count("engine/stole", "late"), 50);
    }

    #[test]
    fn a_missing_required_mark_is_named() {
        let mut together = Together::default();
        for _ in 0..200 {
            together.add(&marks(&["engine/stole"]));
        }
        together.add(&marks(&["engine/ended"]));
        let rare = together.too_rare();
        assert!(rare.contains(&("engine/ended", 1)) && rare.contains(&("late", 0)), "{rare:?}");
        assert!(!rare.iter().any(|(name, _)| *name == "engine/stole" || *name == "engine/stray"));
        assert!(together.table().contains("engine/stole"));
    }
}
