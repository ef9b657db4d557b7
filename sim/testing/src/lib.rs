#![doc = include_str!("../README.md")]

mod batch;
mod clock;
#[cfg(feature = "local")]
mod local;

pub use batch::{BatchBuilder, RecordBuilder, TestLease, batch, record};
#[cfg(feature = "local")]
pub use local::LocalAws;
