//! A lease table and a stream in memory, as the ports of one worker.

use super::FnPort;
use crate::ports::{StreamPort, TablePort};
use crate::record::Record;
use crate::store::{Answer, Store};
use bytes::Bytes;
use leasehold_engine::input::{Cause, Outcome, Reply};
use leasehold_engine::output::{StreamOp, TableOp};
use leasehold_engine::position::Position;
use leasehold_engine::row::Change;
use leasehold_engine::testkit::Services;
use std::sync::{Arc, Mutex, MutexGuard};

/// How operations on the table go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum How {
    /// They are executed and answered.
    #[default]
    Well,
    /// They are not executed.
    Fail,
    /// Releases are not executed; all else is.
    ReleasesFail,
    /// The answers of checkpoints get lost.
    CheckpointsUnanswered,
}

/// A table and a stream. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct Memory {
    services: Arc<Mutex<Services>>,
    how: Arc<Mutex<How>>,
}

impl Memory {
    pub(crate) fn with_shards(shards: u32) -> Self {
        Self { services: Arc::new(Mutex::new(Services::with_shards(shards))), how: Arc::default() }
    }

    pub(crate) fn services(&self) -> MutexGuard<'_, Services> {
        self.services.lock().unwrap()
    }

    /// From now on, operations on the table take this course.
    pub(crate) fn table_goes(&self, how: How) {
        *self.how.lock().unwrap() = how;
    }

    pub(crate) fn table_port(&self) -> TablePort {
        let this = self.clone();
        Arc::new(FnPort::new(move |_, op| {
            let outcome = this.table(&op);
            Box::pin(async move { outcome })
        }))
    }

    fn table(&self, op: &TableOp) -> Outcome {
        let how = *self.how.lock().unwrap();
        let release = matches!(op, TableOp::Write(Change::Release { .. }));
        let checkpoint = matches!(op, TableOp::Write(Change::Checkpoint { .. }));
        if how == How::Fail || (how == How::ReleasesFail && release) {
            return Outcome::NotSent(Cause::Network);
        }
        let outcome = self.services().table.execute(op);
        match how == How::CheckpointsUnanswered && checkpoint {
            true => Outcome::Unknown(Cause::Timeout),
            false => outcome,
        }
    }

    pub(crate) fn stream_port(&self, store: Store) -> StreamPort {
        let this = self.clone();
        Arc::new(FnPort::new(move |id, op: StreamOp| {
            let services = &mut *this.services();
            let outcome = services.stream.execute(&mut services.reading, id, &op);
            let outcome = match (op, outcome) {
                (StreamOp::GetRecords { shard, .. }, Outcome::Applied(Reply::Records(fetched))) => {
                    let first = fetched.first.map_or(0, |first| first.sequence.words()[2]);
                    let record = |n: u64| Record {
                        shard: shard.clone(),
                        position: Position::of(n.into()),
                        partition_key: "k".into(),
                        explicit_hash_key: None,
                        data: Bytes::from_static(b"data"),
                        arrival: None,
                        aggregated: false,
                    };
                    let answer = Answer {
                        records: (first..first + u64::from(fetched.count)).map(record).collect(),
                        behind_ms: fetched.behind_ms,
                        next: fetched.end.is_none().then(|| "next".into()),
                        children: fetched.end.unwrap_or_default(),
                        is_pushed: false,
                    };
                    Outcome::Applied(Reply::Records(store.take_in(&shard, id, answer)))
                }
                (_, outcome) => outcome,
            };
            Box::pin(async move { outcome })
        }))
    }
}
