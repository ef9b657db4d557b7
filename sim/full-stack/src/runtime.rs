//! The worker's runtime port on madsim.

use leasehold::runtime::{BoxFuture, Runtime, Sleep, Task};
use leasehold::{Mono, Wall};
use leasehold_testing::harness::{Draws, wall_ms};
use madsim::time::TimeHandle;
use std::fmt;
use std::time::Duration;

const MILLION: i128 = 1_000_000;

/// The machine of one life of a worker: its clocks begin at a drawn time and go a little fast or slow.
#[derive(Clone)]
pub(crate) struct SimRuntime {
    time: TimeHandle,
    origin_us: u64,
    rate_ppm: i128,
    wall_skew_ms: i64,
}

impl fmt::Debug for SimRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimRuntime")
    }
}

impl SimRuntime {
    /// A machine for one life; its clock's rate is wrong by at most `rate_error_ppm` parts per million.
    pub(crate) fn new(time: TimeHandle, draws: Draws, life: u64, rate_error_ppm: u32) -> Self {
        let error = u64::from(rate_error_ppm);
        Self {
            time,
            origin_us: draws.magnitude("clock-origin", life, 1, 1 << 40),
            rate_ppm: i128::from(draws.between("clock-rate", life, 0, 2 * error)) - i128::from(error),
            wall_skew_ms: draws.between("clock-skew", life, 0, 1_000) as i64 - 500,
        }
    }

    fn elapsed_us(&self) -> u64 {
        elapsed_us(&self.time)
    }
}

/// The true time since the world began.
pub(crate) fn elapsed_us(time: &TimeHandle) -> u64 {
    u64::try_from(time.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl Runtime for SimRuntime {
    fn now(&self) -> Mono {
        let passed = i128::from(self.elapsed_us()) * (MILLION + self.rate_ppm) / MILLION;
        Mono(self.origin_us + u64::try_from(passed).unwrap_or(0))
    }

    fn wall(&self) -> Wall {
        Wall(wall_ms(self.elapsed_us() / 1_000) + self.wall_skew_ms)
    }

    fn sleep_until(&self, until: Mono) -> Sleep {
        if until == Mono::NEVER {
            return Box::pin(std::future::pending());
        }
        let local = i128::from(until.since(self.now()).0);
        let wait = local * MILLION / (MILLION + self.rate_ppm) + 2;
        let wait = Duration::from_micros(u64::try_from(wait).unwrap_or(u64::MAX));
        Box::pin(self.time.sleep(wait))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Task {
        let handle = madsim::task::spawn(task).abort_handle();
        Task::new(move || handle.abort())
    }

    fn entropy(&self) -> u64 {
        madsim::rand::random()
    }
}
