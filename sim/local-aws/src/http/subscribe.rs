//! A subscription on the wire: a body without an end of its own, filled as the client reads.
//!
//! One event waits for the client at most: further events are made when the connection takes that event. So the flow
//! control of the connection is the subscriber's back-pressure, and a client that does not read costs one event.

use super::open::Busy;
use super::{LocalAws, SharedAws, frames, held};
use crate::kinesis::{Push, Subscription};
use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{self, Permit, Receiver, Sender};
use tokio::sync::watch;
use tokio::time::sleep;

/// The longest pause between two looks. A change by a request is seen at once; this pause is for changes by the clock and
/// by the program that holds the services.
const LOOK: Duration = Duration::from_millis(100);

/// The body of the answer. A drop ends the subscription.
#[derive(Debug)]
pub(super) struct Events {
    frames: Receiver<Bytes>,
    /// The request is under way until the body ends.
    busy: Option<Busy>,
}

impl Events {
    /// Serves a subscription, until an end of either side or of the server.
    pub(super) fn serve(
        aws: &SharedAws, services: Arc<Mutex<LocalAws>>, subscription: Subscription,
        closing: watch::Receiver<()>,
    ) -> Self {
        let (sender, frames) = mpsc::channel(1);
        let feed = Feed { aws: aws.clone(), services, subscription, closing };
        tokio::spawn(feed.run(sender));
        Self { frames, busy: None }
    }

    /// Counts the request as under way until the body ends.
    pub(super) fn hold(&mut self, busy: Busy) {
        self.busy = Some(busy);
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.frames.poll_recv(cx).map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
    }
}

struct Feed {
    aws: SharedAws,
    services: Arc<Mutex<LocalAws>>,
    subscription: Subscription,
    closing: watch::Receiver<()>,
}

impl Feed {
    async fn run(mut self, frames: Sender<Bytes>) {
        if frames.send(frames::initial_response()).await.is_err() {
            return;
        }
        // An error means that the client is gone.
        while let Ok(room) = frames.reserve().await {
            if !self.fill(room, &frames).await {
                return;
            }
        }
    }

    /// Waits for the next event. False: no event follows.
    async fn fill(&mut self, room: Permit<'_, Bytes>, frames: &Sender<Bytes>) -> bool {
        loop {
            let mut changed = pin!(self.aws.changes.of(self.subscription.shard()).notified());
            // Before the look: a change after the look ends the wait.
            changed.as_mut().enable();
            let now_ms = self.aws.now_ms();
            let push = held(&self.services).kinesis.push(now_ms, &mut self.subscription);
            let until_ms = match push {
                Push::Event(event) => {
                    room.send(frames::event(&event));
                    return true;
                }
                Push::Failed(error) => {
                    room.send(frames::exception(&error));
                    return false;
                }
                Push::Over => return false,
                Push::WaitUntil(until_ms) => until_ms,
            };
            let rest = Duration::from_millis(until_ms.saturating_sub(now_ms).max(1).unsigned_abs());
            tokio::select! {
                () = changed => {}
                () = sleep(rest.min(LOOK)) => {}
                () = frames.closed() => return false,
                _ = self.closing.changed() => return false,
            }
        }
    }
}
