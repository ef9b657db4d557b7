//! Whether the stream that was found is the one that rows name.
//!
//! Nothing is written under an identity that one answer alone says: a second answer, a while later, or a row says the same first. And no
//! worker stops because one row names another stream: a later scan shows such a row again, and an answer that came meanwhile
//! says of the stream what answers said before.

use crate::ids::LeaseKey;
use crate::notice::Fatal;
use crate::stream_identity::StreamIdentity;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::stream_set::StreamIx;

/// So far apart are two answers that bear each other out.
pub(super) const APART: Span = Span::from_secs(1);

/// What speaks for the identity of the stream, and against it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Identification {
    /// An answer came.
    heard: bool,
    /// When the first answer came that says what is believed.
    since: Mono,
    /// A later one has said the same.
    borne_out: bool,
    /// A row names another stream.
    against: Option<Against>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Against {
    lease: LeaseKey,
    named: StreamIdentity,
    /// The first scan that showed such a row.
    scan: u64,
    /// An answer that came since says of the stream what answers said before.
    answered: bool,
}

impl Identification {
    /// The service has described the stream.
    pub(super) fn said(&mut self, cx: &mut Context, stream: StreamIx, identity: Option<StreamIdentity>) {
        let now = cx.now();
        if cx.streams().said(stream) != identity.as_ref() {
            // What was borne out is not given up for one answer, and what was never said is not asked for any more.
            if self.heard && cx.streams().is_identified(stream) {
                return;
            }
            *self = Self { heard: true, since: now, ..Self::default() };
            return cx.set_said(stream, identity);
        }
        self.heard = true;
        self.borne_out |= now.since(self.since) >= APART;
        if self.borne_out {
            cx.set_identified(stream);
        }
        if let Some(against) = &mut self.against {
            against.answered = true;
        }
    }

    /// When the service is to describe the stream again for the sake of this; absent: not for the sake of this.
    pub(super) fn next_at(&self, cx: &Context, stream: StreamIx) -> Option<Mono> {
        cx.streams().said(stream)?;
        let doubted = self.against.as_ref().is_some_and(|against| !against.answered);
        let unsure = !cx.streams().is_identified(stream) || self.against.is_some() && !self.borne_out;
        (unsure || doubted).then_some(self.since + APART)
    }

    /// A whole scan, with this number, showed a row that names another stream. Whether that is proof.
    pub(super) fn weigh(&mut self, lease: &LeaseKey, named: &StreamIdentity, scan: u64) -> bool {
        let against = self.against.get_or_insert_with(|| Against {
            lease: lease.clone(),
            named: named.clone(),
            scan,
            answered: false,
        });
        (against.lease, against.named) = (lease.clone(), named.clone());
        self.borne_out && against.answered && against.scan < scan
    }

    /// No row of the last whole scan names another stream.
    pub(super) fn forget(&mut self) {
        self.against = None;
    }

    /// Why the worker does not read the stream any more.
    pub(super) fn proof(&self, cx: &Context, stream: StreamIx) -> Option<Fatal> {
        let (against, said) = (self.against.as_ref()?, cx.streams().said(stream)?);
        Some(Fatal::OtherStream {
            stream: cx.stream_name(stream),
            table: cx.config().table.clone(),
            lease: against.lease.clone(),
            detail: format!("the row names stream {}, and this worker reads {said}", against.named),
        })
    }
}
