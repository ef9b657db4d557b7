//! The application takes a stream away from a worker of several streams, and gives the stream back.

use super::Fleet;
use crate::faults::Absence;
use crate::oracles::Fact;
use crate::world::context::Context;
use crate::world::heap::WorkerEvent;
use leasehold_engine::input::Call;

impl Fleet {
    /// Takes a stream away from a live worker; its next life reads all streams again.
    pub(in crate::world) fn begin_absence(&self, cx: &mut Context, absence: &Absence) {
        let w = absence.worker as usize;
        if !self.workers[w].is_ours() {
            return;
        }
        let read = |reads| WorkerEvent::ReadStream { stream: absence.stream, reads };
        self.plan(cx, w, cx.now(), read(false));
        let back = absence.until.min(cx.plan().fault_us).max(cx.now());
        self.plan(cx, w, back, read(true));
    }

    /// The call by which a worker stops reading a stream, or reads the stream again.
    pub(in crate::world) fn read_stream(
        &self, cx: &mut Context, w: usize, stream: u32, reads: bool,
    ) -> Option<Call> {
        let life = self.workers[w].life;
        let id = cx.names().streams().id(stream)?;
        if reads {
            cx.line(|| format!("w{w} is given stream {stream} again"));
            return Some(Call::AddStream(id.into()));
        }
        // Events planned during the faults do not happen after the faults.
        if cx.is_healed() {
            return None;
        }
        cx.fault("stream-taken-away", Some(w), None);
        cx.fact(Fact::StreamTakenAway { life, stream });
        cx.line(|| format!("stream {stream} is taken away from w{w}"));
        Some(Call::RemoveStream(id))
    }
}
