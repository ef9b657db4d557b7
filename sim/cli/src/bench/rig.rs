//! An engine that holds many leases and has nothing to do but renew them.

use leasehold_engine::Engine;
use leasehold_engine::config::Config;
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::*;
use leasehold_engine::notice::Notice;
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::shard::{HashKey, HashRange, Shard};
use leasehold_engine::time::{Mono, Span, Wall};
use std::collections::VecDeque;

/// An engine and the commands it waits for.
pub(crate) struct Bench {
    engine: Engine,
    now: Mono,
    wake_at: Mono,
    renewals: VecDeque<OpId>,
    others: VecDeque<Command>,
    rows: Vec<RowRead>,
    taken: u32,
}

/// `count` unowned rows that cover the hash space.
pub(crate) fn rows(count: u32) -> Vec<RowRead> {
    let step = u128::MAX / u128::from(count);
    (0..count)
        .map(|n| {
            let mut row = LeaseRow::new(
                LeaseKey::from(format!("shardId-{n:012}")),
                Checkpoint::TrimHorizon,
            );
            let start = step * u128::from(n);
            let end = if n + 1 == count {
                u128::MAX
            } else {
                step * u128::from(n + 1) - 1
            };
            row.range = Some(HashRange {
                start: HashKey(start),
                end: HashKey(end),
            });
            RowRead::Lease(row)
        })
        .collect()
}

/// The open shard that a row is of.
fn shard_of(row: &RowRead) -> Option<Shard> {
    let row = row.lease()?;
    Some(Shard {
        id: row.key.to_shard(),
        parent: None,
        adjacent_parent: None,
        range: row.range?,
        starting: 1.into(),
        ending: None,
    })
}

impl Bench {
    /// Boots an engine and lets it take `count` leases. Its handlers never finish opening, so that only renewals remain.
    pub(crate) fn holding(count: u32) -> Bench {
        let config = Config::default()
            .with_table("app")
            .with_stream("orders")
            .with_scan_interval(Span::from_secs(80_000))
            .with_cleanup_delay(Span::ZERO);
        let mut bench = Bench {
            engine: Engine::new(),
            now: Mono(1_000_000),
            wake_at: Mono(0),
            renewals: VecDeque::new(),
            others: VecDeque::new(),
            rows: rows(count),
            taken: 0,
        };
        let boot = Boot {
            worker: "w".into(),
            incarnation: 1,
            seed: 1,
            config,
        };
        bench.feed(Body::Boot(Box::new(boot)));
        while bench.taken < count {
            bench.settle();
            bench.now = bench.wake_at.max(bench.now);
            bench.feed(Body::Tick);
        }
        bench.settle();
        // Some rounds of renewals bring every buffer to its size.
        for _ in 0..u64::from(count) * 12 {
            bench.renew_or_tick();
        }
        bench
    }

    fn feed(&mut self, body: Body) {
        let outbox = self.engine.handle(Input {
            at: self.now,
            wall: Wall(0),
            body,
        });
        self.wake_at = outbox.wake_at();
        for output in outbox {
            let command = match output {
                Output::Do(command) => command,
                Output::Tell(notice) => {
                    self.taken += u32::from(matches!(notice, Notice::Took { .. }));
                    continue;
                }
            };
            match command.effect {
                Effect::Table(TableOp::Write(leasehold_engine::row::Change::Renew { .. })) => {
                    self.renewals.push_back(command.op);
                }
                Effect::Consumer(_) => {}
                _ => self.others.push_back(command),
            }
        }
    }

    fn settle(&mut self) {
        while let Some(command) = self.others.pop_front() {
            let reply = match command.effect {
                Effect::Table(TableOp::Describe) => Reply::Table(TableState::Usable),
                Effect::Table(TableOp::Scan { .. }) => {
                    let mut held: Vec<_> = self.engine.held().map(|held| held.lease.clone()).collect();
                    held.sort_unstable();
                    let free = self
                        .rows
                        .iter()
                        .filter(|row| held.binary_search(row.key()).is_err())
                        .cloned()
                        .collect();
                    Reply::Page(ScanPage {
                        rows: free,
                        next: None,
                    })
                }
                Effect::Stream(StreamOp::Describe) => Reply::Stream(StreamState {
                    readable: true,
                    created: Wall(1),
                }),
                Effect::Stream(StreamOp::ListShards { .. }) => Reply::Shards(ShardPage {
                    shards: self.rows.iter().filter_map(shard_of).collect(),
                    more: false,
                }),
                _ => Reply::Done,
            };
            self.feed(Body::Done {
                op: command.op,
                outcome: Outcome::Applied(reply),
            });
        }
    }

    /// One input: the answer to a renewal if one is out, a tick at the next deadline if not.
    pub(crate) fn renew_or_tick(&mut self) {
        match self.renewals.pop_front() {
            Some(op) => self.feed(Body::Done {
                op,
                outcome: Outcome::Applied(Reply::Done),
            }),
            None => {
                self.now = self.now.max(self.wake_at);
                self.feed(Body::Tick);
            }
        }
    }
}
