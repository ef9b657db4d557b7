//! A server on a free port of the loopback interface.

use super::{LocalAws, LocalOptions, SharedAws, serve, wall_clock};
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The in-memory AWS on a port of 127.0.0.1 that was free, by the clock of the machine. It is served by the tokio runtime that it
/// was started in, until it is stopped or dropped.
pub struct Loopback {
    endpoint: String,
    aws: SharedAws,
    /// Dropping it stops the server, too.
    stop: oneshot::Sender<()>,
    server: JoinHandle<io::Result<()>>,
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Loopback {
    /// Starts one.
    ///
    /// # Errors
    /// If nothing can be listened on.
    pub async fn start(options: LocalOptions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let aws = SharedAws::new(LocalAws::new(options), wall_clock());
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(serve(listener, aws.clone(), async {
            // An error tells that the other end was dropped, which means the same.
            let _ = stopped.await;
        }));
        Ok(Self { endpoint, aws, stop, server })
    }

    /// Where it listens, such as `http://127.0.0.1:40123`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The services themselves, for looking and meddling.
    pub fn aws(&self) -> &SharedAws {
        &self.aws
    }

    /// Lets the requests under way finish, for up to two seconds, and ends.
    ///
    /// # Errors
    /// If serving failed.
    pub async fn stop(self) -> io::Result<()> {
        // An error tells that it has ended already.
        let _ = self.stop.send(());
        self.server.await.map_err(io::Error::other)?
    }
}
