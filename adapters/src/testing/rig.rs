//! The port to the application with a handler behind it, and a test in the place of the engine.

use super::op;
use crate::asks::{Ask, Asks, asks};
use crate::consumer::Consumer;
use crate::fence::Fences;
use crate::handler::AnyHandler;
use crate::metrics::Meter;
use crate::ports::Port;
use crate::pulse::Polls;
use crate::record::Record;
use crate::runtime::{BoxFuture, Runtime, TokioRuntime};
use crate::store::{Answer, Store};
use bytes::Bytes;
use leasehold_engine::ids::FencingToken;
use leasehold_engine::input::{Call, Outcome, Why};
use leasehold_engine::output::{ConsumerOp, EndReason, FlushReason};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::{Mono, Span};
use std::sync::Arc;

/// The ownership of the rig's shard.
pub(crate) const TOKEN: FencingToken = FencingToken(3);

/// A handler with one shard.
pub(crate) struct Rig {
    pub(crate) consumer: Consumer,
    pub(crate) store: Store,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) fences: Fences,
    pub(crate) asks: Asks,
}

impl Rig {
    pub(crate) fn new(door: impl FnOnce(&Arc<dyn Runtime>, &Polls) -> Arc<dyn AnyHandler>) -> Self {
        Self::with_store(Store::default(), door)
    }

    pub(crate) fn with_store(
        store: Store, door: impl FnOnce(&Arc<dyn Runtime>, &Polls) -> Arc<dyn AnyHandler>,
    ) -> Self {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
        let fences = Fences::default();
        let (sender, asks) = asks();
        let polls = Polls::new(runtime.clone());
        let consumer = Consumer::new(
            door(&runtime, &polls),
            runtime.clone(),
            store.clone(),
            fences.clone(),
            sender,
            Meter::default(),
            polls,
        );
        Self { consumer, store, runtime, fences, asks }
    }

    /// Three records with this payload were fetched.
    pub(crate) fn keep(&self, id: u64, payload: &'static str) {
        self.fetch(id, &[(5, "k"), (6, "k"), (7, "k")], payload);
    }

    /// Records were fetched: their positions and keys.
    pub(crate) fn fetch(&self, id: u64, records: &[(u64, &str)], payload: &'static str) {
        let record = |(n, key): &(u64, &str)| Record {
            shard: "s".into(),
            position: Position::of((*n).into()),
            partition_key: (*key).into(),
            explicit_hash_key: None,
            data: Bytes::from_static(payload.as_bytes()),
            arrival: None,
            aggregated: false,
        };
        let answer = Answer {
            records: records.iter().map(record).collect(),
            next: Some("i".into()),
            ..Answer::default()
        };
        self.store.take_in(&"s".into(), op(id), answer);
    }

    pub(crate) async fn open(&self) -> Outcome {
        let open =
            ConsumerOp::Open { lease: "s".into(), token: TOKEN, from: Checkpoint::TrimHorizon, since: None };
        self.consumer.execute(op(1), open).await
    }

    pub(crate) fn deliver(
        &self, batch: u64, after: Option<u64>, attempt: u32,
    ) -> BoxFuture<'static, Outcome> {
        let deliver = ConsumerOp::Deliver {
            lease: "s".into(),
            token: TOKEN,
            batch: op(batch),
            after: after.map(|n| Position::of(n.into())),
            attempt,
            valid_until: self.runtime.now() + Span::from_secs(9),
        };
        self.consumer.execute(op(50), deliver)
    }

    pub(crate) fn flush(&self, why: FlushReason, until: Mono) -> BoxFuture<'static, Outcome> {
        let flush = ConsumerOp::Flush { lease: "s".into(), token: TOKEN, why, until };
        self.consumer.execute(op(52), flush)
    }

    pub(crate) async fn abort(&self) -> Outcome {
        let abort = ConsumerOp::Abort { lease: "s".into(), token: TOKEN };
        self.consumer.execute(op(51), abort).await
    }

    pub(crate) async fn time_out(&self, after: Span) -> Outcome {
        let time_out = ConsumerOp::TimeOut { lease: "s".into(), token: TOKEN, after };
        self.consumer.execute(op(53), time_out).await
    }

    pub(crate) async fn close(&self, token: FencingToken) -> Outcome {
        self.close_for(token, EndReason::HandedOver).await
    }

    pub(crate) async fn close_for(&self, token: FencingToken, reason: EndReason) -> Outcome {
        let lease = "s".into();
        let close = ConsumerOp::Close { lease, token, reason };
        self.consumer.execute(op(60), close).await
    }

    /// What the application has said so far.
    pub(crate) fn said(&mut self) -> Vec<Call> {
        let asks = std::iter::from_fn(|| self.asks.try_next());
        asks.flat_map(Ask::into_calls).collect()
    }
}

/// Why something was refused.
pub(crate) fn why(outcome: Outcome) -> (Why, String) {
    match outcome {
        Outcome::Refused(refusal) => (refusal.why, refusal.detail),
        other => panic!("{other:?}"),
    }
}
