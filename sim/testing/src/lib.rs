#![doc = include_str!("../README.md")]
#![doc = ""]
#![doc = "## The workflow"]
#![doc = ""]
#![doc = "```yaml"]
#![doc = include_str!("../examples/github-workflow.yml")]
#![doc = "```"]

mod batch;
mod chaos;
mod clock;
#[doc(hidden)]
pub mod harness;
#[cfg(feature = "local")]
mod local;

pub use batch::{BatchBuilder, RecordBuilder, TestLease, batch, record};
pub use chaos::{Summary, chaos};
pub use harness::{End, Life, Put, World};
#[cfg(feature = "local")]
pub use local::LocalAws;
