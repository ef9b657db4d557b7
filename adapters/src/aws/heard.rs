//! The arrival time of an answer's last byte: the port waits for an arriving answer of any length.

use crate::ports::PROGRESS;
use crate::runtime::Runtime;
use aws_smithy_types::body::SdkBody;
use futures_util::future::{Either, select};
use http_body_util::BodyExt;
use leasehold_engine::ids::OpId;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The times of the last bytes of a port's answers, by command. Clones share one map.
#[derive(Clone)]
pub(super) struct Heard {
    last: Arc<Mutex<BTreeMap<OpId, Mono>>>,
    clock: Arc<dyn Runtime>,
}

/// The same of one answer.
#[derive(Clone)]
pub(super) struct Ear {
    heard: Heard,
    op: OpId,
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("op", &self.op).finish_non_exhaustive()
    }
}

impl Heard {
    pub(super) fn new(clock: &Arc<dyn Runtime>) -> Self {
        Self { last: Arc::default(), clock: clock.clone() }
    }

    /// When the last byte of the answer to this command arrived. Absent: no byte has arrived.
    pub(super) fn last(&self, op: OpId) -> Option<Mono> {
        self.lock().get(&op).copied()
    }

    /// For the answer to this command.
    pub(super) fn of(&self, op: OpId) -> Ear {
        Ear { heard: self.clone(), op }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<OpId, Mono>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ear {
    fn hear(&self) {
        let now = self.heard.clock.now();
        self.heard.lock().insert(self.op, now);
    }

    /// The same body. The ear hears each piece of the body.
    pub(super) fn listen(&self, body: SdkBody) -> SdkBody {
        self.hear();
        let ear = self.clone();
        body.map_preserve_contents(move |body| {
            let ear = ear.clone();
            SdkBody::from_body_1_x(body.map_frame(move |frame| {
                ear.hear();
                frame
            }))
        })
    }

    /// Makes a call, and waits while the answer arrives: `patience` from the last byte, and no longer than
    /// [`PROGRESS`] times `patience` in all. Absent: the time was up. Then the call is dropped together with its
    /// connection.
    pub(super) async fn while_heard<T>(&self, patience: Span, call: impl Future<Output = T>) -> Option<T> {
        let clock = &self.heard.clock;
        let begun = clock.now();
        let _forget = Forget(self);
        let mut call = pin!(call);
        loop {
            let last = self.heard.last(self.op).unwrap_or(begun);
            let until = (last + patience).min(begun + patience.times(PROGRESS));
            if clock.now() >= until {
                return None;
            }
            if let Either::Left((answer, _)) = select(call.as_mut(), clock.sleep_until(until)).await {
                return Some(answer);
            }
        }
    }
}

/// The end of a call forgets the times of its answer.
struct Forget<'a>(&'a Ear);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.heard.lock().remove(&self.0.op);
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
mod tests {
    use super::*;
    use crate::aws::fake::{FakeHttp, Wire, runtime, stream};
    use crate::ports::Port;
    use crate::testing::op;
    use bytes::Bytes;
    use http_body::{Body, Frame};
    use leasehold_engine::input::{Cause, Outcome, Reply};
    use leasehold_engine::output::StreamOp;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    /// A body of several pieces, with the pause `apart` between the pieces.
    fn pieces(pieces: Vec<&'static str>, apart: Duration) -> SdkBody {
        let left = Mutex::new((pieces.into_iter(), Box::pin(tokio::time::sleep(apart))));
        SdkBody::from_body_1_x(Slow { left, apart })
    }

    type Left = (std::vec::IntoIter<&'static str>, Pin<Box<tokio::time::Sleep>>);

    struct Slow {
        left: Mutex<Left>,
        apart: Duration,
    }

    impl Body for Slow {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>, cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            let mut left = self.left.lock().unwrap();
            // A body is asked again after the end, for trailers.
            if left.0.len() == 0 {
                return Poll::Ready(None);
            }
            std::task::ready!(left.1.as_mut().poll(cx));
            left.1 = Box::pin(tokio::time::sleep(self.apart));
            let piece = left.0.next();
            Poll::Ready(piece.map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
        }
    }

    /// The result of a read with an answer in four pieces, `apart` seconds apart, and the read's duration in seconds.
    async fn read(apart: u64) -> (Outcome, u64) {
        let http = FakeHttp::new(move |_, _| {
            let text = vec!["{\"Records\":[],", "\"NextShard", "Iterator\":", "\"i2\"}"];
            Wire::Body(pieces(text, Duration::from_secs(apart)))
        });
        let (stream, store) = stream(http);
        store.keep_cursor(&"s".into(), op(1), "i1".into());
        let get = StreamOp::GetRecords { shard: "s".into(), via: op(1), limit: 1 };
        let begun = tokio::time::Instant::now();
        let outcome = stream.execute(op(2), get).await;
        assert_eq!(stream.heard(op(2)), None, "nothing is kept of a call that is over");
        (outcome, begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_piece_by_piece_is_waited_for() {
        let (outcome, after) = read(14).await;
        let came = matches!(outcome, Outcome::Applied(Reply::Records(_)));
        assert_eq!((came, after), (true, 4 * 14), "{outcome:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_which_nothing_comes_any_more_is_given_up() {
        let (outcome, after) = read(15).await;
        assert_eq!((outcome, after), (Outcome::Unknown(Cause::Timeout), 14));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_for_ever_is_given_up_in_the_end() {
        let ear = Heard::new(&runtime()).of(op(1));
        let begun = tokio::time::Instant::now();
        let call = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                ear.hear();
            }
        };
        let patience = Span::from_secs(10);
        let outcome: Option<()> = ear.while_heard(patience, call).await;
        assert_eq!((outcome, begun.elapsed().as_secs()), (None, 10 * PROGRESS));
    }
}
