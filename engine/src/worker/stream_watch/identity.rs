//! Whether the found stream is the stream named by rows.
//!
//! No row is written under an identity from a single answer: a second answer, a while later, or a row must agree first.
//! And no worker stops because a single row names another stream: a later scan must show such a row again, and an
//! answer from the time between must confirm the stream's earlier descriptions.

use crate::ids::LeaseKey;
use crate::notice::Fatal;
use crate::stream_identity::StreamIdentity;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::stream_set::StreamIx;

/// The time between two answers that bear each other out.
pub(super) const APART: Span = Span::from_secs(1);

/// Evidence for and against the identity of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Identification {
    /// An answer came.
    heard: bool,
    /// When the first answer with the believed identity came.
    since: Mono,
    /// A later answer has agreed.
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
    /// A later answer has agreed with the stream's earlier descriptions.
    answered: bool,
}

impl Identification {
    /// The service has described the stream.
    pub(super) fn said(&mut self, cx: &mut Context, stream: StreamIx, identity: Option<StreamIdentity>) {
        let now = cx.now();
        if cx.streams().said(stream) != identity.as_ref() {
            // A single answer does not take back a confirmed identity. An identity never given is not requested any
            // more.
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

    /// A whole scan, with this number, showed a row of another stream. Whether this is proof.
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
