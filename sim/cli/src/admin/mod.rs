//! `leasehold admin`: what an operator does to a lease table.
//!
//! | file | what it is |
//! |---|---|
//! | `table` | which table and which streams, and what watching it shows |
//! | `status` | `admin status` |
//! | `change` | `admin release` and `admin rewind`: a plan, shown or carried out |
//! | `to` | where `rewind` leads |
//! | `naming` | rows that name another stream |
//! | `doctor`, `ailment` | `admin doctor`: what is wrong with a table, and what mends it |

mod ailment;
mod change;
mod doctor;
mod naming;
mod status;
mod table;
mod to;

use crate::exit::{Failure, Verdict};
use clap::{Args, Subcommand};

/// Look at a lease table and change it: who has which lease, release, rewind, repair.
///
/// Nothing is written without --apply. Each change is one conditional write: it fails if the row names another owner than what was
/// shown. It works beside a running fleet, and in every table format.
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
    /// Who has which lease, who lives, and how far each shard is.
    Status(status::StatusArgs),
    /// Take leases from their owners, so that other workers take them.
    Release(change::ReleaseArgs),
    /// Put shards at another place: their records from there on are processed again.
    Rewind(change::RewindArgs),
    /// Say what is wrong with a table, and mend what can be mended safely.
    Doctor(doctor::DoctorArgs),
}

pub(super) async fn run(args: AdminArgs) -> Result<Verdict, Failure> {
    match args.command {
        AdminCommand::Status(args) => status::run(args).await,
        AdminCommand::Release(args) => change::release(args).await,
        AdminCommand::Rewind(args) => change::rewind(args).await,
        AdminCommand::Doctor(args) => doctor::run(args).await,
    }
}
