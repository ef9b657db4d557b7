//! kinesis-mock: a Kinesis that others wrote, for Node.

use crate::cache::{HOME, Missing, installed, step};
use crate::process::{Process, free_port};
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A running kinesis-mock, on loopback.
#[derive(Debug)]
pub struct KinesisMock {
    /// Where it listens.
    pub endpoint: String,
    /// The process.
    pub process: Process,
}

/// Installs it, if need be.
///
/// # Errors
/// Node or npm is missing or fails.
pub fn install() -> Result<PathBuf, Missing> {
    step(Command::new("node").arg("--version"))?;
    let sources = Path::new(HOME).join("servers/kinesis-mock");
    let lock = fs::read_to_string(sources.join("package-lock.json"))
        .map_err(|error| Missing(format!("package-lock.json cannot be read: {error}")))?;
    installed("kinesis-mock", &lock, |home| {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(sources.join(file), home.join(file))
                .map_err(|error| Missing(format!("{file} cannot be copied: {error}")))?;
        }
        // No script of a package runs at installation.
        step(
            Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(home),
        )
    })
}

impl KinesisMock {
    /// Starts it and waits until it listens. Its output goes to the directory.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start(home: &Path, logs: &Path) -> Result<Self, String> {
        let port = free_port().map_err(|error| error.to_string())?;
        let tls_port = free_port().map_err(|error| error.to_string())?;
        let package = home.join("node_modules/kinesis-local");
        let mut command = Command::new("node");
        command
            .arg("-r")
            .arg(Path::new(HOME).join("servers/kinesis-mock/loopback.js"))
            .arg(package.join("main.js"))
            .env("KINESIS_MOCK_PLAIN_PORT", port.to_string())
            .env("KINESIS_MOCK_TLS_PORT", tls_port.to_string())
            .env("KINESIS_MOCK_CERT_PATH", package.join("server.json"))
            .env("SHARD_LIMIT", "1000")
            .env("LOG_LEVEL", "ERROR");
        let mut process =
            Process::start(command, &logs.join("kinesis-mock.out")).map_err(|error| error.to_string())?;
        for _ in 0..300 {
            if let Ok(Some(code)) = process.ended() {
                return Err(format!("kinesis-mock ended with {code}: {}", process.stderr()));
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(Self { endpoint: format!("http://127.0.0.1:{port}"), process });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("kinesis-mock did not listen within 30 s".to_owned())
    }
}
