//! The body of a subscription, as the SDK reads it from a connection.
//!
//! The world gives the next event when the SDK asks for more bytes: so the SDK's reading is the flow control. A fault of
//! this request is a fault of the connection: a cut in the midst of a frame, a silence, an abort that looks like an end.

use crate::carried::{Carried, Pushed, Request};
use bytes::Bytes;
use http_body::{Body, Frame};
use leasehold::Span;
use leasehold::runtime::{BoxFuture, Runtime};
use leasehold_local_aws::http::frames;
use leasehold_local_aws::kinesis::Subscription;
use leasehold_testing::harness::Outbox;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// The pause of a body between two looks for an event.
const LOOK: Span = Span::from_millis(200);

/// Bytes of the body, or the failure of the connection.
type Part = Result<Bytes, io::Error>;

/// The way to the world, and the clock of the process.
type Way = (Outbox<Request, Carried>, Arc<dyn Runtime>);

/// The body of a subscription.
pub(crate) struct Events {
    way: Way,
    ready: VecDeque<Part>,
    /// Never locked: the lock makes a body that can be shared, as the SDK asks.
    state: Mutex<State>,
}

/// The part of the subscription that is not read yet.
enum State {
    /// Nobody has asked for the next event.
    Idle(Subscription),
    /// The next event is on its way.
    Asked(BoxFuture<'static, Next>),
    /// No event follows.
    Over,
}

/// The parts that an answer brings, and the subscription after them.
struct Next {
    parts: Vec<Part>,
    then: Option<Subscription>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("ready", &self.ready).finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) fn new(
        outbox: Outbox<Request, Carried>, runtime: Arc<dyn Runtime>, subscription: Subscription,
    ) -> Self {
        let ready = VecDeque::from([Ok(frames::initial_response())]);
        Self { way: (outbox, runtime), ready, state: Mutex::new(State::Idle(subscription)) }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>, cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Self { way, ready, state } = self.get_mut();
        let state = state.get_mut().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(part) = ready.pop_front() {
                return Poll::Ready(Some(part.map(Frame::data)));
            }
            match std::mem::replace(state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Idle(subscription) => *state = State::Asked(Box::pin(next(way.clone(), subscription))),
                State::Asked(mut asked) => {
                    let Poll::Ready(Next { parts, then }) = asked.as_mut().poll(cx) else {
                        *state = State::Asked(asked);
                        return Poll::Pending;
                    };
                    ready.extend(parts);
                    *state = then.map_or(State::Over, State::Idle);
                }
            }
        }
    }
}

/// Asks for the next event until an event comes.
async fn next((outbox, runtime): Way, mut subscription: Subscription) -> Next {
    loop {
        let (parts, then) = match outbox.ask(Request::Event(subscription)).await {
            Carried::Pushed(Pushed::Frame(frame, then)) => (vec![Ok(frame)], then),
            Carried::Pushed(Pushed::NotYet(rest)) => {
                subscription = rest;
                runtime.sleep_until(runtime.now() + LOOK).await;
                continue;
            }
            // A connection that the peer aborts can look like a body that ends.
            Carried::Pushed(Pushed::Over) | Carried::Refused => (Vec::new(), None),
            Carried::ReadTimeout => (vec![Err(ErrorKind::TimedOut.into())], None),
            Carried::Reset => (cut(), None),
            other @ (Carried::Answer { .. } | Carried::Subscribed(_)) => {
                panic!("expected the next event of a subscription, found {other:?}")
            }
        };
        return Next { parts, then };
    }
}

/// A cut in the midst of a frame.
fn cut() -> Vec<Part> {
    let frame = frames::initial_response();
    vec![Ok(frame.slice(..frame.len() / 2)), Err(ErrorKind::ConnectionReset.into())]
}
