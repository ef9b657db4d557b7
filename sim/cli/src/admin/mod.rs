//! `leasehold admin`: an operator's work on a lease table.
//!
//! | file | what it is |
//! |---|---|
//! | `table` | the table, its streams, and the result of watching the table |
//! | `status` | `admin status` |
//! | `change` | `admin release` and `admin rewind`: a plan, shown or carried out |
//! | `to` | the destination of `rewind` |
//! | `naming` | rows of another stream |
//! | `doctor`, `ailment` | `admin doctor`: faults of a table, and their repairs |
//! | `deregister` | `admin deregister`: the end of the application's consumer |
//! | `readers` | workers at a stream |

mod ailment;
mod change;
mod deregister;
mod doctor;
mod naming;
mod readers;
mod status;
mod table;
mod to;

use crate::exit::{Failure, Verdict};
use clap::{Args, Subcommand};

/// Look at a lease table and change it: owners of leases, release, rewind, repair; end a consumer.
///
/// Without --apply, the command writes nothing. Each change of a table is one conditional write: the write fails if the owner has
/// changed since the output. The command works beside a running fleet, and in every table format.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example:\n  leasehold admin status --application billing\n  leasehold admin rewind --application billing --stream orders --shard shardId-000000000003 --to 2025-01-31T12:00:00Z --apply"
)]
pub(super) struct AdminArgs {
    #[command(subcommand)]
    command: AdminCommand,
}

#[derive(Debug, Subcommand)]
enum AdminCommand {
    /// Show the owner of each lease, live workers, and the progress of each shard.
    Status(status::StatusArgs),
    /// Take leases from their owners, to let other workers take them.
    Release(change::ReleaseArgs),
    /// Put shards at another place: records after this place are processed again.
    Rewind(change::RewindArgs),
    /// Find the faults of a table, and mend faults with a safe repair.
    Doctor(doctor::DoctorArgs),
    /// Deregister the consumer of an application (enhanced fan-out), which ends the consumer's bill.
    Deregister(deregister::DeregisterArgs),
}

pub(super) async fn run(args: AdminArgs) -> Result<Verdict, Failure> {
    match args.command {
        AdminCommand::Status(args) => status::run(args).await,
        AdminCommand::Release(args) => change::release(args).await,
        AdminCommand::Rewind(args) => change::rewind(args).await,
        AdminCommand::Doctor(args) => doctor::run(args).await,
        AdminCommand::Deregister(args) => deregister::run(args).await,
    }
}
