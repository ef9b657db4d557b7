#![doc = include_str!("../README.md")]

mod batch;
mod chaos;
mod clock;
#[cfg(feature = "local")]
mod local;

pub use batch::{BatchBuilder, RecordBuilder, TestLease, batch, record};
pub use chaos::{End, Life, Put, Summary, World, chaos};
#[cfg(feature = "local")]
pub use local::LocalAws;
