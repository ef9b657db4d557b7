//! Assignment alone, by method.

mod by_count;
mod claims;

use crate::worker::testing::taken;
