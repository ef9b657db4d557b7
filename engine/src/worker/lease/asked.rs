//! The commands to the application, one at a time: when the application is told to stop, and when a command has taken
//! too long.

use super::held::{AppCommand, HeldLease};
use crate::ids::OpId;
use crate::notice::Notice;
use crate::output::{ConsumerOp, FlushReason};
use crate::time::Mono;
use crate::worker::context::{Context, Waiter};

impl HeldLease {
    /// Asks the application for something.
    pub(super) fn ask_app(&mut self, cx: &mut Context, op: ConsumerOp, command: AppCommand) {
        debug_assert!(self.app.is_none(), "one command to the application at a time");
        self.aborted = false;
        let limit = cx.config().handler_timeout;
        self.late_at = match command {
            // A shard that is let go of has a limit of its own; and a late close has no remedy.
            AppCommand::Flush(FlushReason::Leaving(_)) | AppCommand::Close => Mono::NEVER,
            _ if limit.is_zero() => Mono::NEVER,
            _ => cx.now() + limit,
        };
        self.app = Some((cx.app(Waiter::App(self.own.ix()), op), command));
    }

    /// A command to the application has ended. Returns the command, or `None` if its outcome is awaited no more.
    pub(super) fn app_ended(&mut self, op: OpId) -> Option<AppCommand> {
        let (_, command) = self.app.take_if(|(expected, _)| *expected == op)?;
        self.late_at = Mono::NEVER;
        Some(command)
    }

    /// Tells a command beyond its time limit to stop, once: the command has failed.
    pub(super) fn time_out(&mut self, cx: &mut Context) {
        if cx.now() < self.late_at {
            return;
        }
        debug_assert!(self.app.is_some(), "only what is in flight takes too long");
        self.late_at = Mono::NEVER;
        if self.aborted {
            return;
        }
        let op = ConsumerOp::TimeOut {
            lease: self.own.lease(),
            token: self.own.token(),
            after: cx.config().handler_timeout,
        };
        cx.app(Waiter::App(self.own.ix()), op);
    }

    /// When the belief runs out, the hand-over of records ends, and the running command is stopped.
    pub(super) fn fence(&mut self, cx: &mut Context) {
        if !self.lane.fence(cx.now()) {
            return;
        }
        let lease = self.own.lease();
        cx.notify(Notice::Fenced { lease });
        self.abort(cx);
    }

    /// Tells the application to stop its present command, once.
    pub(super) fn abort(&mut self, cx: &mut Context) {
        let stops = !matches!(self.app, None | Some((_, AppCommand::Close)));
        if self.aborted || !stops {
            return;
        }
        self.aborted = true;
        self.count_aborted(cx);
        let (lease, token) = (self.own.lease(), self.own.token());
        cx.app(Waiter::App(self.own.ix()), ConsumerOp::Abort { lease, token });
    }
}
