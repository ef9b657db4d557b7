//! Assignment by rank: the live members, the turn of each shard, and the shards shared out.
//!
//! The rule comes from kinsumer, so that a mixed fleet agrees: the shards and the live members are sorted by name, byte
//! by byte, and the shard at index `i` belongs to member `i mod N`. No member asks any other member. While members see
//! different lists, two may think that a shard is theirs, or none may: the guarded take of its lease decides, so
//! different lists cost time and no records.

use crate::ids::{ShardId, WorkerId};
use crate::members::{Leader, Member};
use crate::time::{Mono, Span, Wall};
use std::collections::{BTreeMap, BTreeSet};

/// Rows of members older than this are removed (kinsumer's 48 h).
const REAP_AGE: Span = Span::from_secs(48 * 3_600);

/// The members that have rows, and when each was seen to change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Roster {
    known: BTreeMap<WorkerId, Seen>,
}

/// When a row with a time was seen with its present time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Seen {
    at: u64,
    /// When the first answer with this time was received.
    since: Mono,
    /// The row was seen to change: its writer lived, whatever the writer's clock shows.
    moved: bool,
}

impl Seen {
    /// The knowledge after an answer with `at`, received at `now`.
    fn next(before: Option<Self>, at: u64, now: Mono) -> Self {
        match before {
            Some(before) if before.at == at => before,
            before => Seen { at, since: now, moved: before.is_some() },
        }
    }

    /// Whether the writer lived when the request at `asked` was sent. A change of the row, on our own clock, proves
    /// life; the row's time proves life only if we never saw the row change, as other members may have seen more
    /// changes.
    fn lives(&self, asked: Mono, wall: Wall, expiry: Span) -> bool {
        asked.since(self.since) < expiry && (self.moved || age(self.at, wall) < expiry)
    }
}

/// How old a time is by our wall clock; one in the future is no age.
fn age(at: u64, wall: Wall) -> Span {
    let now = (wall.0.max(0) as u64).saturating_mul(1_000_000);
    Span(now.saturating_sub(at) / 1_000)
}

impl Roster {
    /// Takes note of all rows of a listing. `received`: when the last page of the listing came.
    pub(crate) fn see(&mut self, members: impl IntoIterator<Item = Member>, received: Mono) {
        let before = std::mem::take(&mut self.known);
        self.known = members
            .into_iter()
            .map(|Member { id, at }| {
                let seen = Seen::next(before.get(&id).copied(), at, received);
                (id, seen)
            })
            .collect();
    }

    /// Whether a member has a row.
    pub(crate) fn knows(&self, member: &WorkerId) -> bool {
        self.known.contains_key(member)
    }

    /// The live members, in the order of their names. `asked`: when the last listing was begun, so a late listing makes
    /// no member look dead. `me` lives.
    pub(crate) fn alive(&self, me: &WorkerId, asked: Mono, wall: Wall, expiry: Span) -> Vec<WorkerId> {
        let lives = |(id, seen): &(&WorkerId, &Seen)| *id == me || seen.lives(asked, wall, expiry);
        self.known.iter().filter(lives).map(|(id, _)| id.clone()).collect()
    }

    /// The members dead for so long that their rows can go: dead by the time in their rows, and not seen alive lately.
    pub(crate) fn forgotten(&self, me: &WorkerId, asked: Mono, wall: Wall, expiry: Span) -> Vec<Member> {
        let dead = |(id, seen): &(&WorkerId, &Seen)| {
            *id != me && age(seen.at, wall) > REAP_AGE && asked.since(seen.since) >= expiry
        };
        let member = |(id, seen): (&WorkerId, &Seen)| Member { id: id.clone(), at: seen.at };
        self.known.iter().filter(dead).map(member).collect()
    }
}

/// The leader, as named in the row at the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Lead {
    row: Option<Leader>,
    seen: Option<Seen>,
}

impl Lead {
    /// Takes note of the row.
    pub(crate) fn see(&mut self, row: Option<Leader>, received: Mono) {
        let same = self.row.as_ref().map(|row| &row.id) == row.as_ref().map(|row| &row.id);
        let before = self.seen.filter(|_| same);
        self.seen = row.as_ref().map(|row| Seen::next(before, row.at, received));
        self.row = row;
    }

    /// The row.
    pub(crate) fn row(&self) -> Option<&Leader> {
        self.row.as_ref()
    }

    /// Whether `me` may lead: no member leads, or `me` leads, or the leader died.
    pub(crate) fn is_open(&self, me: &WorkerId, asked: Mono, wall: Wall, expiry: Span) -> bool {
        let leader = self.row.as_ref().and_then(|row| row.id.as_ref());
        match (leader, self.seen) {
            (Some(leader), Some(seen)) => leader == me || !seen.lives(asked, wall, expiry),
            _ => true,
        }
    }
}

/// The assignment that follows from a list of members and a list of shards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Turns {
    rank: usize,
    members: Vec<WorkerId>,
    shards: Vec<ShardId>,
}

impl Turns {
    /// The turns of `me`, a member. Both lists are sorted here, and each name counts once.
    pub(crate) fn new(me: &WorkerId, mut members: Vec<WorkerId>, mut shards: Vec<ShardId>) -> Self {
        members.push(me.clone());
        members.sort();
        members.dedup();
        shards.sort();
        shards.dedup();
        let rank = members.iter().position(|member| member == me).unwrap_or(0);
        Self { rank, members, shards }
    }

    /// Our place among the members: 0 leads.
    pub(crate) fn rank(&self) -> u32 {
        self.rank as u32
    }

    /// The number of members.
    pub(crate) fn count(&self) -> u32 {
        self.members.len() as u32
    }

    /// Whether a member is counted.
    pub(crate) fn counts(&self, member: &WorkerId) -> bool {
        self.members.binary_search(member).is_ok()
    }

    /// The shards that are shared out.
    pub(crate) fn shards(&self) -> &[ShardId] {
        &self.shards
    }

    /// Whether the place of this number in a list is ours.
    pub(crate) fn is_ours(&self, place: usize) -> bool {
        place % self.members.len().max(1) == self.rank
    }

    /// Whether a shard is ours; absent if it is not shared out.
    pub(crate) fn has(&self, shard: &str) -> Option<bool> {
        let place = self.shards.binary_search_by(|known| known.as_str().cmp(shard));
        place.ok().map(|place| self.is_ours(place))
    }
}

/// The shards to share out instead of `shared`, given the stream's listed shards and the shards read to their end.
/// Absent if the list would not change, or would be empty: an empty list means that no leader has made a list yet.
pub(crate) fn share_out<'a>(
    shared: &[ShardId], listed: impl IntoIterator<Item = &'a ShardId>, finished: impl Fn(&ShardId) -> bool,
) -> Option<Vec<ShardId>> {
    let left: BTreeSet<&ShardId> = listed.into_iter().filter(|shard| !finished(shard)).collect();
    let changed = !left.iter().copied().eq(shared);
    (changed && !left.is_empty()).then(|| left.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Span = Span::from_secs(60);
    const EXPIRY: Span = Span::from_secs(300);
    const NOW: Wall = Wall(1_700_000_000_000);

    fn secs(n: u64) -> Mono {
        Mono(0) + Span::from_secs(n)
    }

    /// So many seconds before [`NOW`], in nanoseconds.
    fn ago(seconds: i64) -> u64 {
        ((NOW.0 - seconds * 1_000) * 1_000_000) as u64
    }

    fn ids<T: for<'a> From<&'a str>>(names: &str) -> Vec<T> {
        names.split_whitespace().map(T::from).collect()
    }

    fn member(id: &str, at: u64) -> Member {
        Member { id: id.into(), at }
    }

    #[test]
    fn shards_go_round_by_name() {
        let shards = "s4 s0 s9 s1 s2 s3 s5 s6 s7 s8";
        for (me, expected) in [("a", "s0 s3 s6 s9"), ("b", "s1 s4 s7"), ("c", "s2 s5 s8")] {
            let turns = Turns::new(&me.into(), ids("c a b"), ids(shards));
            let ours = |shard: &&ShardId| turns.has(shard.as_str()) == Some(true);
            let ours: Vec<ShardId> = turns.shards().iter().filter(ours).cloned().collect();
            assert_eq!(ours, ids::<ShardId>(expected), "{me}");
            assert_eq!(turns.has("s10"), None);
        }
    }

    #[test]
    fn a_member_without_a_shard_is_idle() {
        let turns = Turns::new(&"b".into(), ids("a b"), ids("s0"));
        assert_eq!((turns.rank(), turns.count(), turns.has("s0")), (1, 2, Some(false)));
        assert!(turns.counts(&"a".into()) && !turns.counts(&"c".into()));
    }

    #[test]
    fn names_are_compared_by_their_bytes() {
        let turns = Turns::new(&"Z".into(), ids("\u{e9} a 0 Z"), Vec::new());
        assert_eq!(turns.members, ids::<WorkerId>("0 Z a \u{e9}"));
    }

    proptest! {
        #[test]
        fn every_shard_is_one_members(
            members in prop::collection::btree_set("[a-f]{1,4}", 1..12),
            shards in prop::collection::btree_set("s[0-9]{1,4}", 0..60),
        ) {
            let all: Vec<WorkerId> = members.iter().map(|id| id.as_str().into()).collect();
            let shards: Vec<ShardId> = shards.iter().map(|id| id.as_str().into()).collect();
            let turns: Vec<Turns> = all.iter().map(|me| Turns::new(me, all.clone(), shards.clone())).collect();
            for shard in &shards {
                let takers = turns.iter().filter(|turns| turns.has(shard.as_str()) == Some(true));
                prop_assert_eq!(takers.count(), 1);
            }
            for turns in &turns {
                let ours = shards.iter().filter(|shard| turns.has(shard.as_str()) == Some(true)).count();
                prop_assert!((shards.len() / all.len()..=shards.len().div_ceil(all.len())).contains(&ours));
            }
        }

        /// The listed and unfinished shards are shared out, whatever was shared out before.
        #[test]
        fn sharing_out_settles_at_once(
            before in prop::collection::btree_set(0u32..12, 0..12),
            listed in prop::collection::btree_set(0u32..12, 0..12),
            finished in prop::collection::btree_set(0u32..12, 0..12),
        ) {
            let named = |numbers: &BTreeSet<u32>| -> Vec<ShardId> {
                numbers.iter().map(|n| format!("s{n:02}").into()).collect()
            };
            let (before, listed, finished) = (named(&before), named(&listed), named(&finished));
            let next = share_out(&before, &listed, |shard| finished.contains(shard));
            if let Some(next) = &next {
                prop_assert!(next.iter().all(|shard| listed.contains(shard) && !finished.contains(shard)));
                prop_assert_eq!(share_out(next, &listed, |shard| finished.contains(shard)), None);
            }
        }

        /// A member that writes its row in time is never taken for dead, whatever the clocks show.
        #[test]
        fn who_writes_in_time_lives(
            writes in prop::collection::vec((1u64..60, any::<u64>()), 2..20),
            wall: i64,
        ) {
            let me = WorkerId::from("me");
            let (mut roster, mut now) = (Roster::default(), secs(1_000));
            for (n, (pause, at)) in writes.into_iter().enumerate() {
                now += Span::from_secs(pause);
                // No two times are the same.
                roster.see([member("other", at << 8 | n as u64)], now);
                let alive = roster.alive(&me, now, Wall(wall), EXPIRY);
                prop_assert!(n == 0 || alive == [WorkerId::from("other")]);
            }
        }
    }

    #[test]
    fn who_was_never_seen_to_change_is_judged_by_its_time() {
        let me = WorkerId::from("me");
        for (at, lives) in [(ago(299), true), (ago(300), false), (ago(-3_600), true), (0, false)] {
            let mut roster = Roster::default();
            roster.see([member("other", at), member("me", ago(0))], secs(10));
            let alive = roster.alive(&me, secs(10), NOW, EXPIRY);
            assert_eq!(alive.contains(&"other".into()), lives, "{at}");
            assert!(alive.contains(&me));
        }
    }

    #[test]
    fn who_changes_lives_though_its_clock_is_wrong() {
        let me = WorkerId::from("me");
        let mut roster = Roster::default();
        let alive = |roster: &Roster, now| roster.alive(&me, now, NOW, EXPIRY).len();
        roster.see([member("slow", ago(4_000)), member("fast", ago(-4_000))], secs(10));
        assert_eq!(alive(&roster, secs(10)), 1, "the fast one looks alive");
        roster.see([member("slow", ago(3_940)), member("fast", ago(-4_000))], secs(70));
        assert_eq!(alive(&roster, secs(70)), 2);
        assert_eq!(alive(&roster, secs(310)), 1, "the fast one was silent for 300 s");
        assert_eq!(alive(&roster, secs(370)), 0);
    }

    #[test]
    fn a_listing_that_came_late_makes_nobody_look_dead() {
        let me = WorkerId::from("me");
        let mut roster = Roster::default();
        for (now, at) in [(10, ago(60)), (70, ago(0))] {
            roster.see([member("other", at)], secs(now));
        }
        // Asked for before a pause of ours, and read after it.
        roster.see([member("other", ago(0))], secs(1_000));
        assert_eq!(roster.alive(&me, secs(80), NOW, EXPIRY).len(), 1);
        assert_eq!(roster.alive(&me, secs(1_000), NOW, EXPIRY).len(), 0);
    }

    #[test]
    fn only_rows_of_the_long_dead_go() {
        let me = WorkerId::from("me");
        let rows = || {
            [
                member("week", ago(7 * 86_400)),
                member("day", ago(86_400)),
                member("two days", ago(2 * 86_400)),
                member("me", 0),
            ]
        };
        let mut roster = Roster::default();
        roster.see(rows(), secs(0));
        assert_eq!(roster.forgotten(&me, secs(0), NOW, EXPIRY), [], "it may live, and its clock be wrong");
        roster.see(rows(), secs(300));
        assert!(roster.knows(&"day".into()) && !roster.knows(&"month".into()));
        assert_eq!(roster.forgotten(&me, secs(300), NOW, EXPIRY), [member("week", ago(7 * 86_400))]);
    }

    #[test]
    fn a_leader_leads_until_it_was_silent_for_long() {
        let me = WorkerId::from("b");
        let row = |id: Option<&str>, at| Some(Leader { id: id.map(WorkerId::from), at });
        for (seen, open) in [
            (None, true),
            (row(None, ago(0)), true),
            (row(Some("b"), ago(0)), true),
            (row(Some("a"), ago(299)), false),
            (row(Some("a"), ago(300)), true),
        ] {
            let mut lead = Lead::default();
            lead.see(seen.clone(), secs(10));
            assert_eq!(lead.is_open(&me, secs(10), NOW, EXPIRY), open, "{seen:?}");
        }
        // After the first seen change of the row, only silence counts.
        let mut lead = Lead::default();
        lead.see(row(Some("a"), ago(9_000)), secs(10));
        lead.see(row(Some("a"), ago(8_940)), secs(70));
        assert!(!lead.is_open(&me, secs(70) + MINUTE, NOW, EXPIRY));
        assert!(lead.is_open(&me, secs(370), NOW, EXPIRY));
    }

    #[test]
    fn the_shared_shards_follow_the_listed_and_finished_ones() {
        for (shared, listed, finished, expected) in [
            ("p1 p2 x", "p1 p2 c x", "p1 p2", Some("c x")),
            ("x", "x", "", None),
            ("x y", "y", "", Some("y")),
            ("p x", "p x", "p x", None),
            ("", "p x", "", Some("p x")),
            ("", "p x", "p", Some("x")),
        ] {
            let (listed, finished) = (ids::<ShardId>(listed), ids::<ShardId>(finished));
            let next = share_out(&ids(shared), &listed, |shard| finished.contains(shard));
            assert_eq!(next, expected.map(ids::<ShardId>), "{shared} -> {expected:?}");
        }
    }
}
