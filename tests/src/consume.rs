//! Processes of `leasehold consume`.

use crate::member::{Member, Place};
use std::path::PathBuf;
use std::process::Command;

/// Where everything is that a consumer needs.
#[derive(Clone, Debug)]
pub struct Target {
    /// The program.
    pub program: PathBuf,
    /// The services, the stream and the application.
    pub place: Place,
    /// How leases are kept.
    pub format: &'static str,
    /// Further options.
    pub more: &'static [&'static str],
    /// The most descriptors that the system allows (`ulimit -n`); absent: as many as this process may have.
    pub descriptors: Option<u32>,
}

impl Target {
    /// With leases as KCL keeps them.
    pub fn new(program: &str, place: Place) -> Self {
        Self { program: program.into(), place, format: "kcl", more: &[], descriptors: None }
    }

    /// Starts a consumer.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(&self, worker: &str) -> Member {
        let Place { kinesis, dynamodb, stream, application, .. } = &self.place;
        let mut command = match self.descriptors {
            None => Command::new(&self.program),
            Some(most) => {
                let mut shell = Command::new("sh");
                let limited = format!("ulimit -n {most} && exec \"$0\" \"$@\"");
                shell.args(["-c", &limited]).arg(&self.program);
                shell
            }
        };
        command
            .args(["consume", "--text", "--region", "us-east-1"])
            .args(["--stream", stream])
            .args(["--application", application])
            .args(["--format", self.format])
            .args(["--worker-id", worker])
            .args(self.more)
            .env("AWS_ENDPOINT_URL_KINESIS", kinesis)
            .env("AWS_ENDPOINT_URL_DYNAMODB", dynamodb)
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("RUST_LOG", "warn,leasehold=info");
        Member::start(command, &self.place, worker)
    }
}
