//! Answers that the reader doubts: an answer that cannot come from the requested place, and an answer that claims the
//! end of the shard.

use super::Reader;
use crate::input::Fetched;
use crate::output::IteratorFrom;
use crate::position::Position;
use crate::reader::{Ctx, Doubtful, Event};
use crate::shard::{ChildShard, names_all, of_another_shard};
use crate::time::{Mono, Span};

/// The reader takes a doubtful answer if so many answers in a row are doubtful for the same reason, and `stream_lag` lies between the first
/// one and the last one.
const DOUBTFUL_ANSWERS: u32 = 3;
/// The reader believes that records before a record are missing only after two answers in a row begin with this record.
/// While the stream forgets records all the time, each answer begins with a later record. Then twice as many answers
/// over twice the time suffice.
const MOVING_BEGIN: u32 = 2;
/// This many records show whether an answer is doubtful.
const DOUBTED_LIMIT: u32 = 10;

/// The doubtful answers since the last fitting answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Doubts {
    /// The answers that began with a later record than the checkpoint's record. Answers with a different doubt neither
    /// confirm nor deny this gap.
    gap: Option<Doubt>,
    /// The last answers, if their reason is different.
    other: Option<Doubt>,
}

/// Answers that are doubtful for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Doubt {
    reason: Reason,
    /// When the first of these answers came.
    since: Mono,
    answers: u32,
    /// The answers are enough: their claim is true.
    believed: bool,
    /// The first record of the last of these answers.
    first: Option<Position>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reason {
    Foreign,
    Disorder,
    /// The record of the checkpoint is missing, and a later one comes first.
    Gap,
    /// No record follows the place, not even the record of the checkpoint.
    Tip,
}

impl Doubt {
    fn is_believed_tip(&self) -> bool {
        self.believed && self.reason == Reason::Tip
    }
}

impl Doubts {
    /// The doubt, where an answer is doubtful for this reason, and begins with this record.
    fn of(&self, reason: Reason, first: Option<Position>) -> Option<Doubt> {
        match reason {
            // A gap before one record proves no gap before a later record.
            Reason::Gap if self.gap.is_some_and(|gap| gap.believed && gap.first != first) => None,
            // Where the stream has forgotten all records, later records follow.
            Reason::Gap => self.gap.or(self.other.filter(Doubt::is_believed_tip)),
            _ => self.other.filter(|doubt| doubt.reason == reason),
        }
    }

    fn remember(&mut self, doubt: Doubt) {
        let gap = match doubt.reason {
            Reason::Gap => Some(doubt),
            _ => self.gap.filter(|_| !doubt.believed),
        };
        let other = Some(doubt).filter(|doubt| doubt.reason != Reason::Gap);
        *self = Self { gap, other };
    }
}

/// This many answers with the shard open take the claim of an end back. A closed shard may give one or two answers with
/// an iterator before its last answer.
const OPEN_ANSWERS: u32 = 3;

/// While a weak claim stands, the reader asks for the end so often: an open shard denies the claim.
const WEAK_CLAIM_PAUSE: Span = Span::from_secs(1);

/// Answers claim the end of the shard, and prove nothing yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EndClaim {
    /// When the first of these answers came.
    since: Mono,
    /// No command before this moment.
    pub(super) again_at: Mono,
    /// Absent: none of these answers names children.
    named: Option<Named>,
    /// The answers with the shard open since the last claim.
    open: u32,
    /// The least distance from the tip among the answers since the last claim, in ms, and the time of that answer.
    nearest: (u64, Mono),
    /// A weak claim among these answers was told.
    is_weak_told: bool,
}

impl EndClaim {
    fn begin(now: Mono, is_weak_told: bool) -> Self {
        Self { since: now, again_at: now, named: None, open: 0, nearest: (u64::MAX, now), is_weak_told }
    }
}

/// The children named by answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Named {
    /// When an answer first named children.
    since: Mono,
    /// As the last answer with children names them: each child once, in the order of their names.
    children: Vec<ChildShard>,
}

impl Reader {
    /// Refuses an answer that cannot come from the requested place: the iterator or the answer belongs to another
    /// request. No record of the answer is taken, and the reader asks for a new iterator. Absent: the answer is not
    /// doubtful, or enough answers agree over enough time that the service has no better answer.
    pub(super) fn refuse_doubtful(&mut self, now: Mono, answer: &Fetched, ctx: &Ctx<'_>) -> Option<Event> {
        let Some((reason, why)) = self.suspicion(answer, ctx.subject) else {
            // An empty answer on the way to the tip says nothing of the place.
            if answer.count > 0 || answer.behind_ms == 0 {
                self.doubts = Doubts::default();
            }
            return None;
        };
        let first = answer.first.filter(|_| answer.count > 0);
        let known = self.doubts.of(reason, first);
        let (since, before) = known.map_or((now, 0), |doubt| (doubt.since, doubt.answers));
        let answers = before.saturating_add(1);
        let enough = |times: u32| {
            let lag = ctx.stream_lag.times(u64::from(times));
            answers >= DOUBTFUL_ANSWERS * times && now.since(since) >= lag
        };
        let believed = match (reason, known) {
            (Reason::Gap, Some(before)) if before.first == first => enough(1),
            (Reason::Gap, Some(before)) => {
                before.first.is_some() && before.first < first && enough(MOVING_BEGIN)
            }
            (Reason::Gap, None) => false,
            _ => enough(1),
        };
        self.doubts.remember(Doubt { reason, since, answers, believed, first });
        if believed {
            return None;
        }
        self.cursor = None;
        self.failures = 0;
        Some(Event::Doubted { why, answers })
    }

    /// Whether the last answers are doubtful.
    pub fn doubts(&self) -> bool {
        let doubts = [self.doubts.gap, self.doubts.other];
        doubts.into_iter().flatten().any(|doubt| !doubt.believed)
    }

    /// While answers are doubtful, few records are asked for.
    pub(super) fn doubted_limit(&self, limit: u32) -> u32 {
        match self.doubts() {
            true => limit.min(DOUBTED_LIMIT),
            false => limit,
        }
    }

    /// What speaks against an answer.
    fn suspicion(&self, answer: &Fetched, shard: &str) -> Option<(Reason, Doubtful)> {
        let positions = [answer.first, answer.last].into_iter().flatten();
        let number = of_another_shard(shard, positions.map(|position| position.sequence));
        if number.is_some() || names_children_of_another(answer, shard) {
            let of = number.map(|(_, of)| of);
            return Some((Reason::Foreign, Doubtful::Foreign { of }));
        }
        if let Some(at) = self.misses_all_records(answer) {
            return Some((Reason::Tip, Doubtful::Gap { at, first: None }));
        }
        match self.out_of_place(answer)? {
            Event::Trimmed { at, first } => {
                let first = Some(first);
                Some((Reason::Gap, Doubtful::Gap { at, first }))
            }
            Event::Disorder { before, first, last, inside } => {
                let why = Doubtful::Disorder { before, first, last, inside };
                Some((Reason::Disorder, why))
            }
            _ => None,
        }
    }

    /// The record to start at, if an answer says that the place is at the tip of the shard, or at its end: that record is before both.
    fn misses_all_records(&self, answer: &Fetched) -> Option<Position> {
        let after_all = answer.behind_ms == 0 || answer.end.is_some();
        match (self.fetched, self.origin) {
            (None, IteratorFrom::At(at)) if answer.count == 0 && after_all => Some(at),
            _ => None,
        }
    }

    pub(super) fn disorder(&self, answer: &Fetched) -> Event {
        Event::Disorder {
            before: self.fetched,
            first: answer.first,
            last: answer.last,
            inside: answer.unordered,
        }
    }

    /// The event for records that do not follow the requested place, or do not follow each other. Absent: the records
    /// are in order.
    pub(super) fn out_of_place(&self, answer: &Fetched) -> Option<Event> {
        let last = answer.last.filter(|_| answer.count > 0)?;
        let first = answer.first.unwrap_or(last);
        match (self.fetched, self.place()) {
            _ if answer.unordered || last < first => Some(self.disorder(answer)),
            (Some(before), _) if first <= before => Some(self.disorder(answer)),
            (None, IteratorFrom::At(at)) if first.sequence < at.sequence => Some(self.disorder(answer)),
            (None, IteratorFrom::At(at)) if first.sequence > at.sequence => {
                Some(Event::Trimmed { at, first })
            }
            _ => None,
        }
    }

    /// An answer with an iterator. At the tip of the shard, it contradicts the claim of an end. On the way to the tip,
    /// the answer tells nothing of the end. An iterator that comes no nearer to the tip for `stream_lag` proves nothing:
    /// the claim is dropped, so that a shard with a subscription is read by subscription again. An iterator on its way through
    /// a long stretch without records keeps the claim, however long the way.
    pub(super) fn weigh_claim(&mut self, answer: &Fetched, now: Mono, ctx: &Ctx<'_>) {
        let Some(claim) = &mut self.end_claim else {
            return;
        };
        let is_at_tip = answer.behind_ms == 0;
        claim.open += u32::from(is_at_tip);
        if answer.behind_ms < claim.nearest.0 {
            claim.nearest = (answer.behind_ms, now);
        }
        let is_stuck = !is_at_tip && now.since(claim.nearest.1) >= ctx.stream_lag;
        if claim.open >= OPEN_ANSWERS || is_stuck {
            self.end_claim = None;
        }
    }

    /// A listing shows the shard closed, after answers without children proved the end. These answers may be older than
    /// the last records of the shard, and an answer just after the listing may be, too: an answer `stream_lag` after the
    /// listing, from a new iterator after the last record, must claim the end.
    pub fn confirm_end(&mut self, now: Mono) {
        self.read_on(now);
        self.end_claim = Some(EndClaim::begin(now, true));
    }

    /// Whether an answer without an iterator proves the end of the shard. One answer is no proof: a second answer, from
    /// a new iterator after the last record, must claim the end and bring no record. An answer without children is a
    /// weak claim: between the first claim and a weak second claim, `stream_lag` passes. The reader asks each second in
    /// between: an open shard takes the claim back.
    ///
    /// One answer proves no children either: two answers must name the same children. If the children are not all, or answers
    /// name different children for `stream_lag`, the end is proved, and a listing must show the children.
    ///
    /// `sent`, `now`: the times of the request and of its answer. An answer may come long after the service gave the
    /// answer: so the time between two answers ends with the request of the second one.
    pub(super) fn judge_end(
        &mut self, (sent, now): (Mono, Mono), answer: &Fetched, ctx: &Ctx<'_>,
    ) -> Verdict {
        let earlier = self.end_claim.take().filter(|_| answer.count == 0);
        let is_first = earlier.is_none();
        let mut claim = earlier.unwrap_or_else(|| EndClaim::begin(now, false));
        (claim.open, claim.nearest) = (0, (u64::MAX, now));
        let apart = ctx.stream_lag;
        let is_long_ago = |since: Mono| sent.since(since) >= apart;
        let children = answer.end.clone().unwrap_or_default();
        if children.is_empty() {
            if !is_first && is_long_ago(claim.since) {
                return Verdict::Proved(Vec::new());
            }
            let enough_at = claim.since + apart;
            // After a late answer, the next request is late enough.
            claim.again_at = enough_at.min(now + WEAK_CLAIM_PAUSE).max(now);
            let again_in = claim.again_at.since(now);
            let is_told = std::mem::replace(&mut claim.is_weak_told, true);
            self.end_claim = Some(claim);
            return match is_told || again_in == Span::ZERO {
                true => Verdict::Claimed,
                false => Verdict::Weak(again_in),
            };
        }
        let named = in_order(&children);
        match claim.named {
            Some(before) if before.children == named => {
                return Verdict::Proved(match names_all(&named) {
                    true => children,
                    false => Vec::new(),
                });
            }
            Some(before) if is_long_ago(before.since) => return Verdict::Proved(Vec::new()),
            before => {
                let since = before.map_or(now, |before| before.since);
                let children = named;
                claim.named = Some(Named { since, children });
            }
        }
        claim.again_at = now;
        self.end_claim = Some(claim);
        Verdict::Claimed
    }
}

/// The consequence of an answer that claims the end.
pub(super) enum Verdict {
    /// The shard has ended with these children. None: a listing must show the children.
    Proved(Vec<ChildShard>),
    /// A second answer is asked for at once.
    Claimed,
    /// A first claim without children: the reader asks for further answers, the first after this pause.
    Weak(Span),
}

/// Each child once, in the order of the names, and so the parents of each child. An answer may name a child twice.
fn in_order(children: &[ChildShard]) -> Vec<ChildShard> {
    let mut children = children.to_vec();
    for child in &mut children {
        child.parents.sort_unstable();
        child.parents.dedup();
    }
    children.sort_by(|one, other| one.id.cmp(&other.id));
    children.dedup();
    children
}

/// Whether an answer names children, and no child names this shard among its parents.
fn names_children_of_another(answer: &Fetched, shard: &str) -> bool {
    let children = answer.end.as_deref().unwrap_or_default();
    let of_another = |child: &ChildShard| {
        !child.parents.is_empty() && child.parents.iter().all(|parent| parent.as_str() != shard)
    };
    !children.is_empty() && children.iter().all(of_another)
}
