//! Calls of the application to its worker, and reports of the shell around the engine about the application.

use super::Worker;
use super::context::Request;
use super::lease;
use super::phase::Phase;
use crate::ids::{FencingToken, LeaseKey};
use crate::input::Call;
use crate::notice::{Notice, RuntimeNews};
use crate::output::EndReason;
use crate::time::Span;

impl Worker {
    pub(crate) fn on_call(&mut self, call: Call) {
        if *self.cx.phase() == Phase::Stopped {
            return;
        }
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        match call {
            Call::Processed { lease, token, through } => {
                self.said(&lease, token, lease::Said::ProcessedThrough(through))
            }
            Call::Acknowledged { lease, token, batch } => {
                self.said(&lease, token, lease::Said::Acknowledged(batch))
            }
            Call::GivenBack { lease, token, batch, detail } => {
                self.said(&lease, token, lease::Said::GivenBack(batch, detail))
            }
            Call::Checkpoint { lease, token } => {
                if let Some(ix) = leases.find(lease.as_str()) {
                    self.held.on_checkpoint_wanted(cx, leases, ix, token);
                }
            }
            Call::Shutdown => self.stop(EndReason::Shutdown, self.cx.config().shutdown_timeout, false),
            Call::ShutdownWithin(timeout) => {
                let deadline = cx.now() + timeout;
                match cx.phase_mut() {
                    Phase::Stopping(stopping) => stopping.hasten(deadline),
                    _ => self.stop(EndReason::Shutdown, timeout, false),
                }
            }
            Call::RuntimeBlocked(so_far) => self.on_blocked(so_far),
            Call::RuntimeRuns => self.on_runs(),
            Call::Pause { lease } => self.pause(&lease, true),
            Call::Resume { lease } => self.pause(&lease, false),
            Call::AddStream(source) => self.add_stream(&source),
            Call::RemoveStream(id) => self.remove_stream(&id),
        }
    }

    fn said(&mut self, lease: &LeaseKey, token: FencingToken, said: lease::Said) {
        if let Some(ix) = self.leases.find(lease.as_str()) {
            self.held.on_said(&mut self.cx, &mut self.leases, ix, token, said);
        }
    }

    fn pause(&mut self, lease: &LeaseKey, paused: bool) {
        if let Some(ix) = self.leases.find(lease.as_str()) {
            self.held.on_pause_wanted(&mut self.cx, &mut self.leases, ix, paused);
        }
    }

    /// The runtime of the handlers has run nothing for `so_far`. In the end all leases are let go of: no handler can
    /// process records here, but other workers may be able to process them.
    fn on_blocked(&mut self, so_far: Span) {
        let (now, limit) = (self.cx.now(), self.cx.config().give_up_after);
        let blocked = self.cx.standstill_mut().blocked(now, so_far, limit);
        if let Some(let_go_in) = blocked.news() {
            self.cx.notify(Notice::Runtime(RuntimeNews::Blocked { idle: so_far, let_go_in, said: None }));
        }
        if !blocked.lets_go() {
            return;
        }
        let leases = self.leases.unordered().filter(|lease| lease.is_ours()).count() as u32;
        let idle = so_far;
        self.cx.notify(Notice::Runtime(RuntimeNews::LetsGo { idle, leases }));
        if self.cx.is_running() {
            self.assignment.leave(&self.cx);
        }
        self.leases.wake_busy(now);
    }

    /// The runtime of the handlers runs.
    fn on_runs(&mut self) {
        let now = self.cx.now();
        let Some((after, let_go)) = self.cx.standstill_mut().runs(now) else {
            // No standstill of the runtime was told to this worker.
            return;
        };
        self.cx.notify(Notice::Runtime(RuntimeNews::Runs { after, let_go }));
        if let_go && self.cx.is_running() {
            self.assignment.come_back();
            self.leases.wake_busy(now);
            self.cx.request(Request::Rescan(now));
        }
    }
}
