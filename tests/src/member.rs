//! Workers as processes of their own, and the records that they print.

use crate::process::Process;
use leasehold::aws::kinesis::primitives::{DateTime, DateTimeFormat as Format};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Where everything is that a worker needs.
#[derive(Clone, Debug)]
pub struct Place {
    /// Kinesis.
    pub kinesis: String,
    /// DynamoDB.
    pub dynamodb: String,
    /// The stream's name.
    pub stream: String,
    /// The application's name.
    pub application: String,
    /// Where output and logs go.
    pub directory: PathBuf,
}

impl Place {
    /// The stream `orders` and the application `billing` at this endpoint.
    pub fn at(endpoint: &str, directory: PathBuf) -> Self {
        Self {
            kinesis: endpoint.to_owned(),
            dynamodb: endpoint.to_owned(),
            stream: "orders".to_owned(),
            application: "billing".to_owned(),
            directory,
        }
    }
}

/// A running worker.
#[derive(Debug)]
pub struct Member {
    /// As it calls itself.
    pub name: String,
    /// The process.
    pub process: Process,
    /// Where it prints to.
    pub output: PathBuf,
}

impl Member {
    /// Starts the program of a command. Output and logs go to files with the worker's name.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(mut command: Command, place: &Place, name: &str) -> Self {
        let output = place.directory.join(format!("{name}.jsonl"));
        command.env_remove("AWS_PROFILE").env_remove("AWS_ENDPOINT_URL");
        let process = Process::start(command, &output).expect("a worker");
        Self { name: name.to_owned(), process, output }
    }

    /// What it printed so far, in that order. For programs that print more than payloads.
    ///
    /// # Panics
    /// If a line is not as documented.
    pub fn printed(&self) -> Vec<Printed> {
        let line = |line: &str| Printed::read(&serde_json::from_str(line).expect("a JSON line"));
        whole_lines(&self.output).lines().map(line).collect()
    }

    /// The payloads printed by the worker up to now, in order.
    ///
    /// # Panics
    /// If a line is not as documented.
    pub fn payloads(&self) -> Vec<String> {
        let payload = |line: &str| {
            let value: Value = serde_json::from_str(line).expect("a JSON line");
            let data = value.get("data").and_then(Value::as_str);
            data.unwrap_or_else(|| panic!("expected data in {line}")).to_owned()
        };
        whole_lines(&self.output).lines().map(payload).collect()
    }
}

/// A killed process may leave half a line: that record was not acknowledged.
fn whole_lines(file: &Path) -> String {
    let mut text = fs::read_to_string(file).unwrap_or_default();
    text.truncate(text.rfind('\n').unwrap_or(0));
    text
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
    /// When the stream got the record, if the program tells the time.
    pub arrival: Option<SystemTime>,
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
            arrival: line.get("arrival").and_then(Value::as_str).map(time),
        }
    }

    /// Orders by sequence number, which is a decimal of up to 56 digits.
    fn place(&self) -> (usize, &str) {
        let digits = self.sequence.trim_start_matches('0');
        (digits.len(), digits)
    }
}

/// Reads a time as in RFC 3339.
fn time(text: &str) -> SystemTime {
    let time = DateTime::from_str(text, Format::DateTime).expect("a time");
    SystemTime::try_from(time).expect("a time of this system")
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
