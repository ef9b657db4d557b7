//! The command as a process, and a server for the length of a test.
#![allow(clippy::disallowed_methods, reason = "processes are waited for by the clock")]
#![allow(dead_code, reason = "each program of tests uses a part of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn leasehold(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(args);
    for name in [
        "RUST_LOG",
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
    ] {
        command.env_remove(name);
    }
    command
}

/// The command with the words of a line as its arguments.
pub(crate) fn words(line: &str) -> Command {
    leasehold(&line.split(' ').collect::<Vec<_>>())
}

pub(crate) fn run(args: &[&str]) -> Output {
    leasehold(args).output().expect("the command starts")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The output of a command, which is to end with this code.
#[track_caller]
pub(crate) fn exits(code: i32, output: Output) -> Output {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    output
}

/// A directory for this test alone.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a directory for the test");
    path
}

/// A process ended with its test.
pub(crate) struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `leasehold local`.
pub(crate) struct Local {
    pub process: Running,
    pub address: String,
}

impl Local {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(more: &[&str]) -> Self {
        let mut command = leasehold(&["local", "--port", "0"]);
        command.args(more).stderr(Stdio::piped());
        Self::of(command)
    }

    /// The server that this command starts.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the command starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("its stdout");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line
            .trim()
            .strip_prefix("listening on http://")
            .unwrap_or_else(|| panic!("found {line:?}"))
            .to_owned();
        Self { process: Running(child), address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The answer to one request, which succeeds.
    pub(crate) fn ask(&self, target: &str, body: &Value) -> Value {
        let (status, answer) = self.call(target, body);
        assert_eq!(status, "HTTP/1.1 200 OK", "{target}: {answer}");
        answer
    }

    pub(crate) fn create_stream(&self, stream: &str, shards: usize) {
        self.ask("Kinesis_20131202.CreateStream", &json!({ "StreamName": stream, "ShardCount": shards }));
    }

    /// Puts a record with data in base64.
    pub(crate) fn put_record(&self, stream: &str, key: &str, data: &str) {
        let record = json!({ "StreamName": stream, "PartitionKey": key, "Data": data });
        self.ask("Kinesis_20131202.PutRecord", &record);
    }

    /// One request in AWS's JSON protocol.
    pub(crate) fn call(&self, target: &str, body: &Value) -> (String, Value) {
        let mut socket = TcpStream::connect(&self.address).expect("a connection");
        let body = body.to_string();
        write!(
            socket,
            "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-amz-json-1.1\r\nX-Amz-Target: {target}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .expect("a request");
        let mut reply = String::new();
        socket.read_to_string(&mut reply).expect("a reply");
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.lines().next().unwrap_or_default().to_owned();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

/// Asks a process to end as Ctrl-C does, and says how it ended.
#[cfg(unix)]
pub(crate) fn interrupt(process: &mut Running) -> Option<i32> {
    signal(process, "INT");
    ended(process, Duration::from_secs(60))
}

/// Sends a signal.
#[cfg(unix)]
pub(crate) fn signal(Running(child): &Running, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

/// The exit code of a process, with an end within this time.
pub(crate) fn ended(Running(child): &mut Running, within: Duration) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < within {
        if let Some(status) = child.try_wait().expect("a status") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("still running after {within:?}");
}
