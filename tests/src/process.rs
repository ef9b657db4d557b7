//! Child processes of a test, ended with the test, by their id.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running program. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Where its stderr goes.
    pub log: PathBuf,
}

impl Process {
    /// Starts a process; its stdout and stderr go to files of this name.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(mut command: Command, out: &Path) -> io::Result<Self> {
        let log = out.with_extension("log");
        let child =
            command.stdin(Stdio::null()).stdout(File::create(out)?).stderr(File::create(&log)?).spawn()?;
        Ok(Self { child, log })
    }

    /// The number that the system knows the process by.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as `kill -9` does.
    ///
    /// # Errors
    /// If it had ended already.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end, as Ctrl-C does.
    ///
    /// # Errors
    /// If `kill` cannot be run.
    pub fn interrupt(&self) -> io::Result<()> {
        self.signal("-INT")
    }

    /// Asks the process to end, as `kill`, systemd and Kubernetes do.
    ///
    /// # Errors
    /// If `kill` cannot be run.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal("-TERM")
    }

    /// Stops the process in the middle of its work, as a long pause of its machine does.
    ///
    /// # Errors
    /// If `kill` cannot be run.
    pub fn freeze(&self) -> io::Result<()> {
        self.signal("-STOP")
    }

    /// Lets it go on after [`freeze`](Self::freeze).
    ///
    /// # Errors
    /// If `kill` cannot be run.
    pub fn thaw(&self) -> io::Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> io::Result<()> {
        let id = self.child.id().to_string();
        Command::new("kill").args([signal, &id]).status().map(|_| ())
    }

    /// The exit code, once the process has ended by itself.
    ///
    /// # Errors
    /// If the system does not know the process.
    pub fn ended(&mut self) -> io::Result<Option<i32>> {
        Ok(self.child.try_wait()?.map(|status| status.code().unwrap_or(-1)))
    }

    /// Waits until the process has ended by itself; gives the exit code.
    ///
    /// # Panics
    /// If that takes longer.
    pub async fn ends(&mut self, within: Duration) -> i32 {
        let asked = Instant::now();
        loop {
            if let Some(code) = self.ended().expect("a process") {
                return code;
            }
            assert!(asked.elapsed() < within, "expected an end within {within:?}: {}", self.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for an end with the exit code 0.
    ///
    /// # Panics
    /// If the process runs on after `within`, or ends with a different exit code.
    pub async fn ends_well(&mut self, within: Duration) {
        let code = self.ends(within).await;
        assert_eq!(code, 0, "{}", self.stderr());
    }

    /// What it wrote to stderr so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback port that was free a moment ago.
///
/// # Errors
/// If there is none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
