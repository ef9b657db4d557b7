//! The base of the tests of a room: a context, a lease table, and rows and outcomes for the room. No other room takes
//! part. Tests read the room's requests from the context.

use super::context::{Context, Request};
use super::lease::HeldLeases;
use super::lease_table::{LeaseTable, Scan, Scanned};
use super::stream_set::StreamIx;
use crate::config::Config;
use crate::format::{Format, LeaseFormat};
use crate::ids::{LeaseIx, OpId, WorkerId};
use crate::input::{Cause, Outcome, Refusal, Reply, ScanPage, Why};
use crate::notice::{Notice, TakeReason};
use crate::output::{Effect, Output};
use crate::position::{Checkpoint, Position};
use crate::row::{LeaseRow, RowRead};
use crate::shard::{HashKey, HashRange, Shard};
use crate::testkit;
use crate::time::{Mono, Span, Wall};

/// A valid configuration for tables of this format.
pub(super) fn config(kind: Format) -> Config {
    let mut config = Config {
        table: "leases".into(),
        stream: "stream".into(),
        policies: kind.policies(),
        fleet_tables: false,
        ..Config::default()
    };
    config.quick_scan_interval = config.scan_interval;
    if kind == Format::Kinsumer {
        config.lease_duration = config.members.expiry();
    }
    assert_eq!(config.check(), Ok(()));
    config
}

/// The context of a worker that has just begun, at 1,000 s of its clock.
pub(super) fn starting(config: Config) -> Context {
    let me = WorkerId::from("me");
    let now = Mono(0) + Span::from_secs(1_000);
    Context::new(config, me, 1, 7, now, Wall(1_700_000_000_000))
}

/// The context of a worker that has found its table and stream, and recognised the leases as this stream's.
pub(super) fn running(config: Config) -> Context {
    let mut cx = starting(config);
    cx.set_booted();
    cx.set_recognised(StreamIx::ONLY);
    cx
}

/// The context of a running worker with KCL's table and the default options.
pub(super) fn context() -> Context {
    running(config(Format::Kcl))
}

/// A worker that runs, and its empty lease table.
pub(super) fn stage() -> (Context, LeaseTable) {
    let cx = context();
    let leases = table(&cx);
    (cx, leases)
}

/// The same, and a room.
pub(super) fn stage_of<R>(room: R) -> (Context, LeaseTable, R) {
    let (cx, leases) = stage();
    (cx, leases, room)
}

/// The lease table of a worker before its first scan.
pub(super) fn table(cx: &Context) -> LeaseTable {
    LeaseTable::new(cx.needs_listings())
}

/// The commands, notices and requests of rooms since the last reading.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Did {
    commands: Vec<(OpId, Effect)>,
    notices: Vec<Notice>,
    requests: Vec<Request>,
}

impl Did {
    pub(super) fn commands(&self) -> Vec<(OpId, Effect)> {
        self.commands.clone()
    }

    pub(super) fn effects(&self) -> Vec<Effect> {
        self.commands.iter().map(|(_, effect)| effect.clone()).collect()
    }

    pub(super) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The names of the notices.
    pub(super) fn told(&self) -> Vec<&'static str> {
        self.notices.iter().map(Notice::name).collect()
    }

    pub(super) fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The only command.
    #[track_caller]
    pub(super) fn command(&self) -> (OpId, Effect) {
        assert_eq!(self.commands.len(), 1, "expected one command: {self:?}");
        self.commands[0].clone()
    }

    /// The name of the one command.
    #[track_caller]
    pub(super) fn op(&self) -> OpId {
        self.command().0
    }

    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Context {
    /// Moves out what rooms asked for.
    pub(super) fn did(&mut self) -> Did {
        let mut did = Did::default();
        did.requests.extend(std::iter::from_fn(|| self.next_request()));
        for output in self.outputs() {
            match output {
                Output::Do(command) => did.commands.push((command.op, command.effect)),
                Output::Tell(notice) => did.notices.push(notice),
            }
        }
        did
    }

    /// So much time passes.
    pub(super) fn later(&mut self, span: Span) {
        let wall = Wall(self.wall().0 + span.as_millis() as i64);
        self.clock(self.now() + span, wall);
    }
}

pub(super) fn seconds(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

/// An unfinished lease of the whole hash space that no worker has had.
pub(super) fn row(key: &str) -> LeaseRow {
    LeaseRow { range: Some(HashRange::ALL), ..LeaseRow::new(key.into(), Checkpoint::TrimHorizon) }
}

pub(super) fn owned(key: &str, owner: &str, counter: u64) -> LeaseRow {
    LeaseRow { owner: Some(owner.into()), counter, ..row(key) }
}

pub(super) fn ended(key: &str, children: &[&str]) -> LeaseRow {
    LeaseRow {
        counter: 9,
        checkpoint: Checkpoint::ShardEnd,
        children: children.iter().map(|child| (*child).into()).collect(),
        ..row(key)
    }
}

pub(super) fn at(number: u64) -> Position {
    Position::of(number.into())
}

/// The part of the hash space from `start` to `end`, in tenths.
pub(super) fn tenths(start: u64, end: u64) -> HashRange {
    let tenth = u128::MAX / 10;
    HashRange {
        start: HashKey(tenth * u128::from(start)),
        end: match end {
            10 => HashKey::MAX,
            end => HashKey(tenth * u128::from(end) - 1),
        },
    }
}

/// An open shard of the whole hash space.
pub(super) fn shard(id: &str, parents: &[&str]) -> Shard {
    testkit::shard(id, parents.iter().copied(), HashRange::ALL, 0, None)
}

pub(super) fn closed(shard: Shard) -> Shard {
    Shard { ending: Some(1_000.into()), ..shard }
}

/// A consistent read shows a row.
pub(super) fn shows(cx: &Context, leases: &mut LeaseTable, row: LeaseRow) -> LeaseIx {
    let key = row.key.clone();
    leases.observe_now(cx, row);
    leases.find(key.as_str()).expect("it was shown")
}

/// A scan, now, shows exactly these rows.
pub(super) fn whole_scan(
    cx: &mut Context, leases: &mut LeaseTable, scan: &mut Scan, rows: Vec<LeaseRow>,
) -> Scanned {
    scan.schedule_by(Mono(0));
    scan.step(cx, leases);
    let op = cx.did().op();
    scan.on_page(cx, leases, op, page(rows, None)).expect("the only page")
}

/// Begins to take a lease by its row, unless this worker is about the lease already. `answered`: the take is applied.
pub(super) fn takes(cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, answered: bool) {
    let (mut held, emitted) = (HeldLeases::default(), cx.now());
    held.take(cx, leases, ix, TakeReason::Unowned);
    if let Some((op, _)) = cx.did().commands().first().filter(|_| answered) {
        held.on_lane(cx, leases, ix, *op, emitted, done());
        cx.did();
    }
}

/// Notes in the table that this worker holds the lease of this row, as after a take a moment ago.
pub(super) fn hold(cx: &mut Context, leases: &mut LeaseTable, row: LeaseRow) -> LeaseIx {
    hold_in(&mut HeldLeases::default(), cx, leases, row)
}

/// Takes a lease by this row. The application is told to open the shard, unless the shard has parents.
pub(super) fn hold_in(
    held: &mut HeldLeases, cx: &mut Context, leases: &mut LeaseTable, row: LeaseRow,
) -> LeaseIx {
    let ix = shows(cx, leases, row);
    held.take(cx, leases, ix, TakeReason::Unowned);
    let (op, emitted) = (cx.did().op(), cx.now());
    held.on_lane(cx, leases, ix, op, emitted, done());
    ix
}

pub(super) fn done() -> Outcome {
    Outcome::Applied(Reply::Done)
}

pub(super) fn page(rows: Vec<LeaseRow>, next: Option<&str>) -> Outcome {
    Outcome::Applied(Reply::Page(ScanPage {
        rows: rows.into_iter().map(RowRead::Lease).collect(),
        next: next.map(Into::into),
    }))
}

pub(super) fn shown(row: Option<LeaseRow>) -> Outcome {
    Outcome::Applied(Reply::Row(row.map(|row| Box::new(RowRead::Lease(row)))))
}

pub(super) fn refused(why: Why) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail: String::new() })
}

/// A guard did not hold, and the answer shows the row.
pub(super) fn refused_by(row: LeaseRow) -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::ConditionFailed,
        current: Some(Box::new(RowRead::Lease(row))),
        detail: String::new(),
    })
}

pub(super) fn throttled() -> Outcome {
    Outcome::NotSent(Cause::Throttled)
}

pub(super) fn unknown() -> Outcome {
    Outcome::Unknown(Cause::Timeout)
}

/// The leases that are to be taken.
pub(super) fn taken(did: &Did, leases: &LeaseTable) -> Vec<String> {
    let key = |request: &Request| match request {
        Request::Take(ix, _) => Some(leases.get(*ix)?.key().to_string()),
        _ => None,
    };
    did.requests().iter().filter_map(key).collect()
}
