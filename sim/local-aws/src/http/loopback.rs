//! A server on a free port of the loopback interface.

use super::{LocalAws, LocalOptions, SharedAws, serve, wall_clock};
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The in-memory AWS on a free port of 127.0.0.1, by the clock of the machine. The tokio runtime of its start serves
/// requests, until a stop or drop.
pub struct Loopback {
    endpoint: String,
    aws: SharedAws,
    /// A drop of the sender stops the server, too.
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
    /// If the process cannot listen on any port.
    pub async fn start(options: LocalOptions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let aws = SharedAws::new(LocalAws::new(options), wall_clock());
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(serve(listener, aws.clone(), async {
            // An error means a dropped sender: a stop, too.
            let _ = stopped.await;
        }));
        Ok(Self { endpoint, aws, stop, server })
    }

    /// The address, such as `http://127.0.0.1:40123`.
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
        // An error means that the server has ended already.
        let _ = self.stop.send(());
        self.server.await.map_err(io::Error::other)?
    }
}
