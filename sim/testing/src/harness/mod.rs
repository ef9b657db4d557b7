//! The harness of real workers under faults, for two hosts: `chaos`, with a tokio runtime for every process, and the
//! full-stack tier, with the AWS SDK on madsim. The harness draws a plan from a seed, decides the fate of every request,
//! puts records, starts and stops workers, and judges. A host runs processes and executes requests.
//!
//! Nothing here is stable.

mod books;
mod draws;
mod fate;
mod fault;
mod host;
mod judge;
mod outbox;
mod quiet;
mod report;
mod rest;
mod run;
mod shrink;
mod slot;
mod source;
mod stage;
mod watched;
mod which;
mod world;

pub use books::Books;
pub use draws::Draws;
pub use fate::Failing;
pub use fault::{FAMILIES, Micros, Service, Time};
pub use host::{Host, Served};
pub use judge::Done;
pub use outbox::Outbox;
pub use quiet::Quiet;
pub use report::Report;
pub use run::{Outcomes, Run};
pub use shrink::shrink;
pub use source::{APPLICATION, STREAM, Source, index, open, place, wall_ms};
pub use stage::{Failure, Scene, Stage};
pub use which::{SEED, Which, range, worlds};
pub use world::{End, Life, Place, Plan, Put, Scale, World};
