//! What can be asked of a running worker.

use crate::asks::AskSender;
use crate::recorder::Flight;
use std::io::{self, Write};
use std::time::Duration;

/// A handle on a worker. Clones are handles on the same.
///
/// It can be used on any thread and at any time: before [`Worker::run`](crate::Worker::run), while the worker runs, within
/// [`Builder::on_notice`](crate::Builder::on_notice), and after the worker has ended. No call waits for the worker.
#[derive(Clone, Debug)]
pub struct Control {
    asks: AskSender,
    flight: Option<Flight>,
}

impl Control {
    pub(super) fn new(asks: AskSender, flight: Option<Flight>) -> Self {
        Self { asks, flight }
    }

    /// Asks the worker to stop: handlers finish what they have, progress is made durable, and leases are given up.
    /// [`Worker::run`](crate::Worker::run) returns when that is done, or with [`Error::Unclean`](crate::Error::Unclean) when it
    /// took longer than the option `shutdown_timeout` (30 s by default). Asking again changes nothing.
    pub fn shutdown(&self) {
        self.asks.shutdown(None);
    }

    /// As [`shutdown`](Control::shutdown), within so much time instead of `shutdown_timeout`. Asking again changes nothing, be it
    /// with another time: the first request counts.
    ///
    /// Handlers have all of this time but for the last two `table_timeout` (3 s each by default), which are left for what is
    /// written at the end. In less than that, no handler is waited for, and the stop takes two `table_timeout`. Times are rounded
    /// down to microseconds.
    pub fn shutdown_within(&self, time: Duration) {
        self.asks.shutdown(Some(time.into()));
    }

    /// Writes what the flight recorder holds, as a trace. Writes nothing if it is off.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn dump_flight(&self, to: impl Write) -> io::Result<()> {
        match &self.flight {
            Some(flight) => flight.dump(to),
            None => Ok(()),
        }
    }
}
