//! Workers that others wrote, as members of a simulated fleet: their hazards included.
//!
//! Each model is the program's own control flow, one `async fn` per goroutine or thread, run by a small executor
//! (`process.rs`). It asks its world for what the program asks AWS for, with the program's own conditions; so every fault
//! hits it as it hits our workers, and what comes of it is judged by the same oracles. Those that compare a worker's
//! beliefs, requests and buffers with what was promised for ours have nothing to say about others.
//!
//! | file | program |
//! |---|---|
//! | `vmware_go_kcl/` | vmware-go-kcl, version 2 |
//! | `kcl_rb.rs` | kcl-rb, version 1 |
//! | `kinsumer/` | kinsumer |
//! | `kcl/` | the Java KCL, versions 2 and 3 |

mod fleet;
mod host;
mod kcl;
mod kcl_rb;
mod kinsumer;
mod process;
pub(crate) mod sdk;
mod time;
mod vmware_go_kcl;

/// For how long the lock of a leader of the Java KCL lasts, and how often its worker renews it, and others look at it, in µs.
pub(crate) const KCL_LOCK_US: u64 = 120_000_000;
pub(crate) const KCL_LOCK_PERIOD_US: u64 = 30_000_000;

pub use fleet::{Assignment, Fleet, Program};
pub(crate) use host::{Ask, ItemOp, Request};
pub(crate) use process::{Exit, Process};
