#![doc = include_str!("../README.md")]

mod batch;
mod clock;

pub use batch::{BatchBuilder, RecordBuilder, TestLease, batch, record};
