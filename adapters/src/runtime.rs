//! The runtime as a port: the clock, sleeping, tasks and entropy.
//!
//! Nothing else in this crate reads a clock or spawns a task: the same code runs on tokio in production and on a
//! deterministic executor in simulation. Channels come from `tokio::sync` and need no runtime.

use leasehold_engine::time::{Mono, Span, Wall};
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// A boxed future, movable to another task.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A boxed timer. The AWS SDK requires `Sync`.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// The worker's needs from its executor.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// The monotonic clock. Its origin is arbitrary and the same for the life of this value. The clock should count
    /// the time of a suspended machine: with a clock standing still, a worker believes in leases taken by other
    /// workers, until the wall clock tells.
    fn now(&self) -> Mono;

    /// The wall clock.
    fn wall(&self) -> Wall;

    /// Waits until the monotonic clock has reached `until`; longer, if the machine is suspended meanwhile. Waiting for [`Mono::NEVER`] never ends.
    fn sleep_until(&self, until: Mono) -> Sleep;

    /// Runs a task in the background.
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Task;

    /// An unpredictable number, for the incarnation and the seed of a boot record.
    fn entropy(&self) -> u64;

    /// Waits for some time.
    fn sleep(&self, span: Span) -> Sleep {
        self.sleep_until(self.now() + span)
    }
}

/// A task in the background. Dropping it lets the task go on.
pub struct Task(Box<dyn Fn() + Send + Sync>);

impl Task {
    /// A handle on a task that `abort` stops.
    pub fn new(abort: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(abort))
    }

    /// Stops the task at its next suspension point, if the task still runs.
    pub fn abort(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

#[cfg(feature = "tokio-runtime")]
pub use self::production::TokioRuntime;

#[cfg(feature = "tokio-runtime")]
mod suspended;

#[cfg(feature = "tokio-runtime")]
mod production {
    use super::suspended::Suspended;
    use super::{BoxFuture, Runtime, Sleep, Task};
    use leasehold_engine::time::{Mono, Span, Wall};
    use std::sync::Arc;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    use tokio::time::Instant;

    /// The runtime of production: tokio and the clocks of the machine.
    ///
    /// On Linux the monotonic clock counts the time of a suspended machine, as `CLOCK_BOOTTIME` does. On other
    /// systems the clock is [`std::time::Instant`], and may stand still in a suspension. Timers are tokio's: timers
    /// do not count the time of a suspended machine.
    #[derive(Clone, Debug)]
    pub struct TokioRuntime {
        tokio: tokio::runtime::Handle,
        origin: Instant,
        suspended: Arc<Suspended>,
    }

    impl TokioRuntime {
        /// The tokio runtime around this call. Its time driver must be enabled.
        ///
        /// # Errors
        /// When called outside of a tokio runtime.
        pub fn current() -> Result<Self, tokio::runtime::TryCurrentError> {
            let tokio = tokio::runtime::Handle::try_current()?;
            #[expect(clippy::disallowed_methods, reason = "this is the port that gives the time")]
            let origin = Instant::now();
            let suspended = Arc::new(Suspended::default());
            Ok(Self { tokio, origin, suspended })
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the port: nothing else reads a clock, starts a task or draws entropy"
    )]
    impl Runtime for TokioRuntime {
        fn now(&self) -> Mono {
            let awake = u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX - 1);
            (Mono(awake) + self.suspended.so_far()).min(Mono::NEVER - Span(1))
        }

        fn wall(&self) -> Wall {
            let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
                Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
            };
            Wall(millis)
        }

        fn sleep_until(&self, until: Mono) -> Sleep {
            let at = (until != Mono::NEVER)
                .then(|| {
                    let awake = until - self.suspended.so_far();
                    self.origin.checked_add(Duration::from_micros(awake.0))
                })
                .flatten();
            match at {
                Some(at) => Box::pin(tokio::time::sleep_until(at)),
                None => Box::pin(std::future::pending()),
            }
        }

        fn spawn(&self, task: BoxFuture<'static, ()>) -> Task {
            let handle = self.tokio.spawn(task).abort_handle();
            Task::new(move || handle.abort())
        }

        fn entropy(&self) -> u64 {
            // Without a working entropy source, the time in nanoseconds still tells one life from the next.
            getrandom::u64().unwrap_or_else(|_| {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
            })
        }
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "runtime_tests.rs"]
mod tests;
