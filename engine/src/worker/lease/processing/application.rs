//! The application of a shard: the commands to it, one at a time, when it is told to stop, and when a command has taken
//! too long.

use super::reading::Poison;
use crate::ids::OpId;
use crate::output::{ConsumerOp, FlushReason};
use crate::position::Position;
use crate::time::Mono;
use crate::worker::context::{Context, Waiter};
use crate::worker::lease::lane::Lane;
use crate::worker::lease::ownership::Ownership;

/// What the handler was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Given {
    pub(super) batch: OpId,
    /// Only the first remaining record of the batch.
    pub(super) alone: bool,
    /// So far it had been processed then.
    pub(super) after: Option<Position>,
}

/// The application command in flight of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AppCommand {
    Open,
    Deliver {
        given: Given,
        /// The application gave it back before it answered.
        given_back: bool,
    },
    Flush(FlushReason),
    Close,
    SetAside {
        batch: OpId,
        poison: Poison,
    },
}

/// What the application is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AppLane {
    /// The command in flight.
    flight: Option<(OpId, AppCommand)>,
    /// The command in flight was told to stop.
    aborted: bool,
    /// When the command in flight has taken longer than it may.
    late_at: Mono,
    /// The application opened the shard, so the shard must be closed.
    opened: bool,
}

impl AppLane {
    pub(super) const NEW: AppLane =
        AppLane { flight: None, aborted: false, late_at: Mono::NEVER, opened: false };

    /// Whether no command is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.flight.is_none()
    }

    /// The command in flight.
    pub(super) fn command(&self) -> Option<AppCommand> {
        self.flight.map(|(_, command)| command)
    }

    /// When the command in flight has taken longer than it may.
    pub(super) fn late_at(&self) -> Mono {
        self.late_at
    }

    /// Whether the application opened the shard, so that the shard must be closed.
    pub(super) fn has_opened(&self) -> bool {
        self.opened
    }

    /// The application has opened the shard.
    pub(super) fn opened(&mut self) {
        debug_assert!(!self.opened, "a shard is opened once in an ownership");
        self.opened = true;
    }

    /// Sends a command to the application.
    pub(super) fn ask(&mut self, own: &Ownership, cx: &mut Context, op: ConsumerOp, command: AppCommand) {
        debug_assert!(self.is_idle(), "one command to the application at a time");
        self.aborted = false;
        let limit = cx.config().handler_timeout;
        self.late_at = match command {
            // A shard that is let go of has a limit of its own; and a late close has no remedy.
            AppCommand::Flush(FlushReason::Leaving(_)) | AppCommand::Close => Mono::NEVER,
            _ if limit.is_zero() => Mono::NEVER,
            _ => cx.now() + limit,
        };
        self.flight = Some((cx.app(Waiter::App(own.ix()), op), command));
    }

    /// A command to the application has ended. Returns the command, or `None` if its outcome is awaited no more.
    pub(super) fn ended(&mut self, op: OpId) -> Option<AppCommand> {
        let (_, command) = self.flight.take_if(|(expected, _)| *expected == op)?;
        self.late_at = Mono::NEVER;
        Some(command)
    }

    /// The application gives back a batch whose hand-over has no answer yet. Whether this batch is out.
    pub(super) fn give_back(&mut self, returned: OpId) -> bool {
        match &mut self.flight {
            Some((_, AppCommand::Deliver { given, given_back })) if given.batch == returned => {
                *given_back = true;
                true
            }
            _ => false,
        }
    }

    /// Tells a command beyond its time limit to stop, once: the command has failed.
    pub(super) fn time_out(&mut self, own: &Ownership, cx: &mut Context) {
        if cx.now() < self.late_at {
            return;
        }
        debug_assert!(!self.is_idle(), "only what is in flight takes too long");
        self.late_at = Mono::NEVER;
        if self.aborted {
            return;
        }
        let op = ConsumerOp::TimeOut {
            lease: own.lease(),
            token: own.token(),
            after: cx.config().handler_timeout,
        };
        cx.app(Waiter::App(own.ix()), op);
    }

    /// Tells the application to stop its present command, once.
    pub(super) fn abort(&mut self, own: &Ownership, lane: &Lane, cx: &mut Context) {
        let stops = !matches!(self.command(), None | Some(AppCommand::Close));
        if self.aborted || !stops {
            return;
        }
        self.aborted = true;
        count_aborted(lane, cx);
        let (lease, token) = (own.lease(), own.token());
        cx.app(Waiter::App(own.ix()), ConsumerOp::Abort { lease, token });
    }

    /// The command in flight is waited for no more.
    pub(super) fn give_up(&mut self, lane: &Lane, cx: &mut Context) {
        if self.flight.take().is_some() {
            count_aborted(lane, cx);
        }
    }
}

/// That the handler of a lost lease is stopped belongs to the loss.
fn count_aborted(lane: &Lane, cx: &mut Context) {
    if !lane.is_lost() {
        cx.phase_mut().count_aborted();
    }
}
