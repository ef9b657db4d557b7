//! Time for the SDK, from the [`Runtime`] port.

use crate::runtime::Runtime;
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_async::time::TimeSource;
use leasehold_engine::time::Wall;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Timers of the [`Runtime`] port, for the SDK.
#[derive(Clone, Debug)]
pub struct SdkSleep(pub Arc<dyn Runtime>);

impl AsyncSleep for SdkSleep {
    fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self.0.sleep(duration.into()))
    }
}

/// The wall clock of the [`Runtime`] port, for the SDK.
#[derive(Clone, Debug)]
pub struct SdkTime(pub Arc<dyn Runtime>);

impl TimeSource for SdkTime {
    fn now(&self) -> SystemTime {
        let Wall(millis) = self.0.wall();
        let since = Duration::from_millis(millis.unsigned_abs());
        let time = if millis < 0 { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) };
        time.unwrap_or(UNIX_EPOCH)
    }
}
