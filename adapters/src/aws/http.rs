//! HTTP clients for the SDK with few idle connections.
//!
//! A worker bounds its requests (`max_reads`, `max_table_requests`), and thereby the used connections. By default
//! hyper keeps every connection for 90 s after its last use: connections needed only for a moment by a start of a
//! thousand leases would be kept.

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use std::time::Duration;

/// The most idle connections of a client to one host: a worker's greatest need at the defaults. With fewer
/// connections, reads in bursts would connect anew in every burst.
const MOST_IDLE: usize = 64;

/// For how long a client keeps an idle connection. A renewal or a read uses a connection every few seconds.
const IDLE_FOR: Duration = Duration::from_secs(20);

/// An HTTPS client for the SDK: hyper and rustls, with the system's root certificates. A connection closes after 20 s
/// without use.
///
/// ```no_run
/// # async fn example() {
/// use leasehold::aws;
///
/// let config = aws::kinesis::Config::builder()
///     .behavior_version(aws::kinesis::config::BehaviorVersion::latest())
///     .http_client(aws::https_client());
/// # }
/// ```
pub fn https_client() -> SharedHttpClient {
    bounded(Builder::new(), MOST_IDLE, IDLE_FOR)
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https()
}

/// The same without TLS, for an `http://` endpoint on this machine.
pub fn http_client() -> SharedHttpClient {
    bounded(Builder::new(), MOST_IDLE, IDLE_FOR).build_http()
}

fn bounded<Tls>(builder: Builder<Tls>, most: usize, idle_for: Duration) -> Builder<Tls> {
    builder.pool_max_idle_per_host(most).pool_idle_timeout(idle_for)
}

#[cfg(all(test, feature = "tokio-runtime"))]
mod tests {
    use super::*;
    use crate::aws::fake::table_of;
    use crate::ports::Port;
    use crate::testing::op;
    use leasehold_engine::input::{Outcome, Reply};
    use leasehold_engine::output::TableOp;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// The connections that are open.
    #[derive(Clone, Default)]
    struct Open(Arc<AtomicUsize>);

    impl Open {
        fn now(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }

        /// Waits until no more than this many are.
        async fn at_most(&self, most: usize) {
            while self.now() > most {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    /// Answers each request after a while: no row. Ends when the client closes the connection.
    async fn answer(mut connection: TcpStream) {
        let mut seen = Vec::new();
        let mut part = [0; 4_096];
        loop {
            match connection.read(&mut part).await {
                Ok(1..) => {}
                _ => return,
            }
            seen.extend_from_slice(&part);
            // The requests of these tests come in one piece. A request in two pieces would only get its answer a
            // little too soon.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let answer =
                b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: 2\r\n\r\n{}";
            if connection.write_all(answer).await.is_err() {
                return;
            }
        }
    }

    async fn server() -> (String, Open) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let open = Open::default();
        let counted = open.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let counted = counted.clone();
                counted.0.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    answer(connection).await;
                    counted.0.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        (endpoint, open)
    }

    #[tokio::test]
    async fn unused_connections_are_few_and_are_closed_after_a_while() {
        let (endpoint, open) = server().await;
        let http = bounded(Builder::new(), 3, Duration::from_secs(1)).build_http();
        let table = table_of(http, |config| config.endpoint_url(&endpoint));
        let reads: Vec<_> = (0..20)
            .map(|n| {
                let key = format!("{n}").as_str().into();
                tokio::spawn(table.execute(op(n), TableOp::Read { key }))
            })
            .collect();
        let mut most = 0;
        for read in reads {
            most = most.max(open.now());
            assert_eq!(read.await.unwrap(), Outcome::Applied(Reply::Row(None)));
            most = most.max(open.now());
        }
        assert!(most > 10, "they are made at the same time: {most}");
        let patience = Duration::from_secs(20);
        tokio::time::timeout(patience, open.at_most(3)).await.unwrap();
        tokio::time::timeout(patience, open.at_most(0)).await.unwrap();
    }
}
