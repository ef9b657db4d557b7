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
#[cfg(feature = "local")]
mod local;

pub use batch::{BatchBuilder, RecordBuilder, TestLease, batch, record};
pub use chaos::{End, Life, Put, Summary, World, chaos};
#[cfg(feature = "local")]
pub use local::LocalAws;
