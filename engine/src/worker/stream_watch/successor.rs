//! Looking for a stream made anew under the name of a lost stream.
//!
//! A worker of several streams goes on with its remaining streams. The new stream is separate, with leases of its own,
//! and the application has not asked for its reading. A single notice tells of the new stream.

use crate::input::{Outcome, Reply};
use crate::notice::{Notice, StreamNews};
use crate::stream_id::StreamId;
use crate::time::{Mono, Wall};
use crate::worker::context::Context;
use crate::worker::evidence::{Evidence, Needed};
use crate::worker::stream_set::StreamIx;

/// The name is looked up once in so many lease durations: twice a minute.
const LOOK_LEASES: u64 = 3;

/// The look-out for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Successor {
    /// When the lost stream was created.
    lost: Wall,
    /// The creation time of a new stream with the lost stream's name, by descriptions.
    found: Evidence<Wall>,
    next_at: Mono,
}

impl Successor {
    /// The stream that was created then is lost.
    pub(super) fn new(cx: &Context, lost: Wall) -> Self {
        Self { lost, found: Evidence::default(), next_at: cx.now() + cx.poll_pause() }
    }

    /// When the name is looked up next.
    pub(super) fn wake_at(&self) -> Mono {
        self.next_at
    }

    /// The name was looked up, with a question of the moment `asked`. Whether the look-out is over.
    pub(super) fn on_state(
        &mut self, cx: &mut Context, stream: StreamIx, asked: Mono, outcome: &Outcome,
    ) -> bool {
        self.next_at = cx.now() + cx.config().lease_duration.times(LOOK_LEASES);
        let created = match outcome {
            Outcome::Applied(Reply::Stream(state)) if state.created != self.lost => state.created,
            // No stream has the name, or the answer is old.
            Outcome::Applied(_) | Outcome::Refused(_) => {
                self.found.contradicted();
                return false;
            }
            Outcome::NotSent(_) | Outcome::Unknown(_) => return false,
        };
        let Some(id) = made_anew(cx, stream, created) else {
            return true;
        };
        if cx.streams().find(&id).is_some_and(|known| cx.streams().reads(known)) {
            return true;
        }
        let needed = Needed::to_lose_unsure_stream(cx);
        if !self.found.says(cx, asked, created, needed) {
            self.next_at = self.found.ask_again_at(needed);
            return false;
        }
        let (stream, id) = (cx.stream_name(stream), id.as_str().to_owned());
        cx.notify(Notice::Stream(StreamNews::MadeAnew { stream, id }));
        true
    }
}

/// The identifier of the stream created at `created` under the name of this stream. `None`: the worker reads one stream
/// only.
fn made_anew(cx: &Context, stream: StreamIx, created: Wall) -> Option<StreamId> {
    let lost = cx.streams().id(stream)?;
    let seconds = u64::try_from(created.0.div_euclid(1_000)).ok()?;
    StreamId::new(lost.account(), lost.name(), seconds).ok()
}
