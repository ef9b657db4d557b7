//! The present time, for commands that look at a moment without a stream's clock.

use leasehold_engine::time::Wall;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn this_moment() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
