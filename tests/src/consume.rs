//! Processes of `leasehold consume`.

use crate::process::Process;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where everything is that a consumer needs.
#[derive(Clone, Debug)]
pub struct Target {
    /// The program.
    pub program: PathBuf,
    /// Kinesis.
    pub kinesis: String,
    /// DynamoDB.
    pub dynamodb: String,
    /// The stream's name.
    pub stream: String,
    /// The application's name.
    pub application: String,
    /// How leases are kept.
    pub format: &'static str,
    /// Further options.
    pub more: &'static [&'static str],
    /// Where output and logs go.
    pub directory: PathBuf,
}

/// A running consumer.
#[derive(Debug)]
pub struct Consumer {
    /// The process.
    pub process: Process,
    /// Where it prints to.
    pub output: PathBuf,
}

/// A record as it was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The shard.
    pub shard: String,
    /// The sequence number.
    pub sequence: String,
    /// The payload.
    pub data: String,
    /// The number of the worker's holding of the shard, by the fencing token or another number; 0 if the program does
    /// not tell the number.
    pub session: u64,
}

impl Printed {
    /// Reads a line.
    ///
    /// # Panics
    /// If it is not as documented.
    pub(crate) fn read(line: &Value) -> Self {
        let text = |name: &str| {
            let found = line.get(name).and_then(Value::as_str);
            found.unwrap_or_else(|| panic!("expected {name} in {line}")).to_owned()
        };
        assert_eq!(line.get("sub_sequence"), Some(&Value::from(0)), "{line}");
        Self {
            shard: text("shard"),
            sequence: text("sequence"),
            data: text("data"),
            session: ["token", "session"].iter().find_map(|name| line.get(name)?.as_u64()).unwrap_or(0),
        }
    }

    /// Orders by sequence number, which is a decimal of up to 56 digits.
    fn place(&self) -> (usize, &str) {
        let digits = self.sequence.trim_start_matches('0');
        (digits.len(), digits)
    }
}

impl Consumer {
    /// Starts one.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(target: &Target, worker: &str) -> Self {
        let output = target.directory.join(format!("{worker}.jsonl"));
        let mut command = Command::new(&target.program);
        command
            .args(["consume", "--text", "--region", "us-east-1"])
            .args(["--stream", &target.stream])
            .args(["--application", &target.application])
            .args(["--format", target.format])
            .args(["--worker-id", worker])
            .args(target.more)
            .env("AWS_ENDPOINT_URL_KINESIS", &target.kinesis)
            .env("AWS_ENDPOINT_URL_DYNAMODB", &target.dynamodb)
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("RUST_LOG", "warn,leasehold=info")
            .env_remove("AWS_PROFILE")
            .env_remove("AWS_ENDPOINT_URL");
        let process = Process::start(command, &output).expect("a consumer");
        Self { process, output }
    }

    /// What it printed so far, in that order.
    ///
    /// # Panics
    /// If a line is not as documented.
    pub fn printed(&self) -> Vec<Printed> {
        printed(&self.output)
    }
}

pub(crate) fn printed(file: &Path) -> Vec<Printed> {
    let text = fs::read_to_string(file).unwrap_or_default();
    // A killed process may leave half a line: that record was not acknowledged.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let line = |line: &str| Printed::read(&serde_json::from_str(line).expect("a JSON line"));
    whole.lines().map(line).collect()
}

/// Records of a shard printed after a later record of the same shard. A consumer prints no record out of order while
/// holding a lease; after losing and regaining the lease, the consumer goes on from the durable checkpoint.
pub fn disorder(printed: &[Printed]) -> Vec<String> {
    let mut last: BTreeMap<(&str, u64), &Printed> = BTreeMap::new();
    let mut wrong = Vec::new();
    for record in printed {
        if let Some(before) = last.insert((&record.shard, record.session), record)
            && before.place() >= record.place()
        {
            wrong.push(format!("{record:?} after {before:?}"));
        }
    }
    wrong
}
