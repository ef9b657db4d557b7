//! `leasehold local`: the in-memory AWS as a server.

use super::exit::{self, Failure, Verdict};
use super::signal;
use crate::fakes::dynamo::DynamoConfig;
use crate::fakes::kinesis::KinesisConfig;
use crate::local::{LocalAws, LocalOptions, SharedAws, serve, wall_clock};
use clap::Args;
use tokio::net::TcpListener;

/// Serve the in-memory Kinesis and DynamoDB to any AWS SDK, until Ctrl-C.
///
/// Behaves as AWS does: streams and tables take a moment to become active, and throughput limits are enforced. Any
/// credentials are accepted. Nothing is kept when it ends.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold local --port 4567\n  aws --endpoint-url http://127.0.0.1:4567 kinesis list-streams"
)]
pub(super) struct LocalArgs {
    /// The address to listen on. Credentials are not checked, so keep it on this machine.
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on; 0: any that is free.
    #[arg(long, default_value_t = 4567)]
    port: u16,
    /// Do not enforce throughput and request rate limits.
    #[arg(long)]
    no_limits: bool,
    /// No transient states: what is created, changed or deleted is so at once.
    #[arg(long)]
    instant: bool,
}

impl LocalArgs {
    fn options(&self) -> LocalOptions {
        let mut kinesis = KinesisConfig {
            limits: !self.no_limits,
            ..KinesisConfig::default()
        };
        let mut dynamo = DynamoConfig {
            throttle: !self.no_limits,
            ..DynamoConfig::default()
        };
        if self.instant {
            (kinesis.create_ms, kinesis.update_ms, kinesis.delete_ms) = (0, 0, 0);
            (dynamo.create_ms, dynamo.backfill_ms, dynamo.delete_ms) = (0, 0, 0);
        }
        LocalOptions { kinesis, dynamo }
    }
}

pub(super) async fn run(args: LocalArgs) -> Result<Verdict, Failure> {
    let listener = TcpListener::bind((args.host.as_str(), args.port))
        .await
        .map_err(|error| {
            Failure::unusable(format!(
                "expected to be able to listen on {}:{}, but: {error}; choose another --host or --port (0: any)",
                args.host, args.port
            ))
        })?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::under_way(format!("the address listened on is not known: {error}")))?;
    exit::print(&format!("listening on http://{address}"))?;
    let aws = SharedAws::new(LocalAws::new(args.options()), wall_clock());
    serve(listener, aws, signal::interrupted())
        .await
        .map_err(|error| Failure::under_way(format!("serving failed: {error}")))?;
    Ok(Verdict::Fine)
}
