//! Models of foreign programs, including their hazards, as members of a simulated fleet.
//!
//! Each model follows the program's own control flow: one `async fn` per goroutine or thread, run by a small executor
//! (`process.rs`). A model requests the same AWS operations from its world as the program, with the program's own
//! conditions. So every fault hits models and our workers alike, and the same oracles judge the result. Oracles about
//! our workers' promises (beliefs, requests and buffers) do not apply to models.
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

/// The duration of the lock of a Java KCL leader, and the period of its renewals and of other workers' looks, in µs.
pub(crate) const KCL_LOCK_US: u64 = 120_000_000;
/// For how long after its expiry a worker of vmware-go-kcl leaves a lease to the worker that claimed the lease.
pub(crate) const CLAIM_TIMEOUT_US: u64 = 120_000_000;
pub(crate) const KCL_LOCK_PERIOD_US: u64 = 30_000_000;

pub use fleet::{Assignment, Fleet, Program};
pub(crate) use host::{Ask, ItemOp, Request};
pub(crate) use process::{Exit, Process};
