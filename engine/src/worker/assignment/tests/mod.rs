//! Assignment alone, by method.

mod by_count;

use crate::worker::testing::taken;
