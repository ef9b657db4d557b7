//! `leasehold local`: the in-memory AWS as a server.

use crate::exit::{self, Failure, Verdict};
use crate::signal;
use clap::Args;
use leasehold_local_aws::dynamo::DynamoConfig;
use leasehold_local_aws::http::{LocalAws, LocalOptions, SharedAws, Tls, is_region, serve, wall_clock};
use leasehold_local_aws::kinesis::KinesisConfig;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::net::TcpListener;

/// Serve the in-memory Kinesis and DynamoDB to any AWS SDK, until Ctrl-C.
///
/// Nothing is throttled. Streams and tables can be used right after their creation, for scripts. `--strict` restores
/// the delays and limits of AWS. The server accepts any credentials and keeps no data after its end.
///
/// The server closes a connection after 30 s without a whole request head, and after 60 s without any byte. A thousand
/// connections may be open; a further connection closes the connection with the longest silence.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold local --port 4567\n  aws --endpoint-url http://127.0.0.1:4567 kinesis list-streams"
)]
pub(super) struct LocalArgs {
    /// The address to listen on. Credentials are not checked, so keep the server on this machine.
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on; 0: any that is free.
    #[arg(long, default_value_t = 4567)]
    port: u16,
    /// A name of this server for programs, such as host.docker.internal or the name of a service. May be given more
    /// than once; `*`: any name. The server always answers requests for localhost and for IP addresses. A web page may
    /// let its own host name point to this machine: requests for other names are refused with status 421, and requests
    /// of pages of other hosts with status 403.
    #[arg(long, value_name = "NAME", value_parser = parse_host)]
    allow_host: Vec<String>,
    /// The region of all streams and tables, whatever the region of a request's signature. Without this option, every
    /// signed region has streams and tables of its own, as in AWS; requests without a signature mean us-east-1.
    #[arg(long, value_name = "REGION", value_parser = parse_region)]
    region: Option<String>,
    /// The account in ARNs: twelve digits.
    #[arg(long, value_name = "ID", default_value = "000000000000", value_parser = parse_account)]
    account: String,
    /// Use the delays and limits of AWS. Creation, change and deletion take half a second. A shard takes 1 MiB and
    /// 1,000 records a second, and gives 2 MiB in 5 reads a second. An account may call CreateStream 5 times,
    /// DescribeStream 10 times and ListShards 1,000 times a second, and other operations as documented by AWS. DynamoDB
    /// enforces provisioned capacity.
    #[arg(long)]
    strict: bool,
    /// With --strict: without its limits.
    #[arg(long)]
    no_limits: bool,
    /// With --strict: creation, change and deletion take no time.
    #[arg(long)]
    instant: bool,
    /// Speak TLS on the port, too, with a new certificate for localhost, the loopback addresses and the names of --allow-host. The
    /// certificate is written to this file, for the trust of clients: AWS_CA_BUNDLE, NODE_EXTRA_CA_CERTS.
    #[arg(long, value_name = "FILE", conflicts_with = "tls_cert")]
    tls: Option<PathBuf>,
    /// Speak TLS on the port, too, with this certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl LocalArgs {
    /// The certificate for TLS, if TLS is wanted.
    fn certificate(&self) -> Result<Option<Tls>, Failure> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| {
                Failure::unusable(format!("expected a text in PEM in {}, but: {error}", path.display()))
            })
        };
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let tls = Tls::new(&read(certificate)?, &read(key)?);
            return tls.map(Some).map_err(|error| {
                Failure::unusable(format!(
                    "--tls-cert and --tls-key: {error}; give the files of one certificate"
                ))
            });
        }
        let Some(path) = &self.tls else { return Ok(None) };
        let made = Tls::self_signed(&self.allow_host).map_err(|error| {
            Failure::unusable(format!(
                "no certificate can be made: {error}; correct the names in --allow-host"
            ))
        })?;
        std::fs::write(path, made.certificate()).map_err(|error| {
            Failure::unusable(format!(
                "expected to be able to write the certificate to {}, but: {error}; correct the path in --tls",
                path.display()
            ))
        })?;
        Ok(Some(made))
    }

    fn options(&self, tls: Option<Tls>) -> LocalOptions {
        let limits = self.strict && !self.no_limits;
        let mut kinesis =
            KinesisConfig { account_id: self.account.as_str().into(), limits, ..KinesisConfig::default() };
        let mut dynamo =
            DynamoConfig { account_id: self.account.clone(), throttle: limits, ..DynamoConfig::default() };
        if let Some(region) = &self.region {
            kinesis.region = region.as_str().into();
            dynamo.region.clone_from(region);
        }
        if !self.strict || self.instant {
            (kinesis.create_ms, kinesis.update_ms, kinesis.delete_ms) = (0, 0, 0);
            kinesis.consumer_ms = 0;
            (dynamo.create_ms, dynamo.backfill_ms, dynamo.delete_ms) = (0, 0, 0);
        }
        LocalOptions {
            kinesis,
            dynamo,
            one_region: self.region.is_some(),
            allow_hosts: self.allow_host.clone(),
            tls,
        }
    }
}

/// The text, if the text is what is expected.
fn checked(text: &str, fits: bool, expected: &str) -> Result<String, String> {
    if fits { Ok(text.to_owned()) } else { Err(format!("expected {expected}")) }
}

fn parse_region(text: &str) -> Result<String, String> {
    checked(text, is_region(text), "the name of a region, such as eu-west-1")
}

fn parse_host(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let fits = text == "*" || (!text.is_empty() && text.len() <= 253 && text.chars().all(fits));
    checked(text, fits, "the name of a host without a port, such as host.docker.internal, or *")
}

fn parse_account(text: &str) -> Result<String, String> {
    let fits = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    checked(text, fits, "the number of an account: twelve digits, such as 123456789012")
}

/// A warning for an address open to other machines.
fn warning(address: SocketAddr) -> Option<String> {
    let ip = address.ip().to_canonical();
    (!ip.is_loopback()).then(|| {
        format!(
            "warning: {address} is not on the loopback interface, and nothing is authenticated: everyone who reaches this port \
             can read, write and delete all streams and tables; --host 127.0.0.1 keeps it on this machine"
        )
    })
}

pub(super) async fn run(args: LocalArgs) -> Result<Verdict, Failure> {
    let listener = TcpListener::bind((args.host.as_str(), args.port)).await.map_err(|error| {
        Failure::unusable(format!(
            "expected to be able to listen on {}:{}, but: {error}; choose another --host or --port (0: any)",
            args.host, args.port
        ))
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::under_way(format!("the address listened on is not known: {error}")))?;
    if let Some(warning) = warning(address) {
        let _ = writeln!(io::stderr(), "{warning}");
    }
    let tls = args.certificate()?;
    let interrupted = signal::interrupted()?;
    let also = if tls.is_some() { format!(" and https://{address}") } else { String::new() };
    exit::print(&format!("listening on http://{address}{also}"))?;
    let aws = SharedAws::new(LocalAws::new(args.options(tls)), wall_clock());
    serve(listener, aws, interrupted)
        .await
        .map_err(|error| Failure::under_way(format!("serving failed: {error}")))?;
    Ok(Verdict::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_is_warned_of() {
        for quiet in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(warning(quiet.parse().unwrap()), None, "{quiet}");
        }
        for loud in ["0.0.0.0:1", "192.168.1.2:1", "[::]:1", "[fe80::1]:1"] {
            let warning = warning(loud.parse().unwrap()).unwrap();
            assert!(warning.contains("nothing is authenticated"), "{warning}");
        }
    }

    #[test]
    fn regions_and_accounts_are_what_arns_can_hold() {
        assert_eq!(parse_region("eu-west-1").as_deref(), Ok("eu-west-1"));
        assert_eq!(parse_account("123456789012").as_deref(), Ok("123456789012"));
        for host in ["host.docker.internal", "leasehold", "*"] {
            assert_eq!(parse_host(host).as_deref(), Ok(host));
        }
        for bad in ["", "a:4567", "http://a", "a b", "a\n", "*.example"] {
            assert!(parse_host(bad).is_err(), "{bad}");
        }
        for bad in ["", "EU", "a:b", "eu west", "-"] {
            assert!(parse_region(bad).is_err(), "{bad}");
        }
        for bad in ["", "12345678901", "1234567890123", "12345678901x"] {
            assert!(parse_account(bad).is_err(), "{bad}");
        }
    }
}
