//! The one door to the private modules, for the simulator, the command line and the tests of this project.
//!
//! Nothing here is stable. The root of the crate has everything for applications; anything missing at the root
//! belongs at the root.

#[cfg(feature = "aws")]
pub use crate::aws::clock::{SdkSleep, SdkTime};
#[cfg(feature = "aws")]
pub use crate::aws::dynamo::DynamoTable;
#[cfg(feature = "aws")]
pub use crate::aws::values::item_from_sdk;
pub use crate::kit::TestShard;
pub use crate::kpl::{hash_of, parts};
pub use crate::machine::Machine;
pub use crate::migrate::{
    Plan as MigrationPlan, Report as MigrationReport, Stopped as MigrationStopped, migrate,
};
pub use crate::ports::{Failure, Port, StreamPort, TablePort};
pub use crate::recorder::{MemorySink, Recorder};
pub use crate::store::{Answer, Cursor, Store};
pub use crate::trace::{
    Divergence, LONGEST_LINE, OutputDigest, ReplayReport, RollingDigest, TraceError, TraceKind, TraceReader,
    TraceRecord, TraceText, replay, replay_on,
};
