//! The end of a connection of HTTP/2: the client closes first.
//!
//! A client that has sent GOAWAY closes the connection after its last stream. Some clients (Node) drop the bytes of a
//! stream that they have not read yet when the server closes earlier.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a client has to close.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first bytes of a connection of HTTP/2. No method of HTTP/1.1 begins with them.
const PREFACE: &[u8] = b"PRI ";

/// A socket of the server. A client of HTTP/2 closes the connection before the server does.
#[derive(Debug)]
pub(super) struct Leaving<S> {
    socket: S,
    /// The number of first bytes that are the preface's. Absent: the client speaks HTTP/1.1.
    preface: Option<usize>,
    until: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Leaving<S> {
    pub(super) fn new(socket: S) -> Self {
        Self { socket, preface: Some(0), until: None }
    }

    fn has_read(&mut self, bytes: &[u8]) {
        let Some(known) = self.preface else {
            return;
        };
        let awaited = &PREFACE[known..];
        let count = awaited.len().min(bytes.len());
        self.preface = (awaited[..count] == bytes[..count]).then_some(known + count);
    }

    /// Reads until the client closes, or its time is over.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        if until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut bytes = [0; 1_024];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Leaving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        self.has_read(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Leaving<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.preface == Some(PREFACE.len()) {
            ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
            ready!(self.poll_closed(cx));
        }
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    /// How long an end takes, if the client closes after so long.
    async fn end(said: &[&[u8]], closes: Duration) -> Duration {
        let (mut client, server) = duplex(64);
        let mut server = Leaving::new(server);
        for part in said {
            client.write_all(part).await.expect("room");
            let mut heard = vec![0; part.len()];
            server.read_exact(&mut heard).await.expect("the bytes");
        }
        let start = Instant::now();
        let closing = tokio::spawn(async move {
            client.write_all(b"more").await.expect("room");
            tokio::time::sleep(closes).await;
            drop(client);
        });
        server.shutdown().await.expect("an end");
        let took = start.elapsed();
        closing.await.expect("no panic");
        took
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_http2_closes_first() {
        let second = Duration::from_secs(1);
        assert_eq!(end(&[b"PRI * HTTP/2.0\r\n"], second).await, second);
        assert_eq!(end(&[b"P", b"RI", b" * HTTP/2.0"], second).await, second);
        assert_eq!(end(&[b"PRI * HTTP/2.0\r\n"], second * 9).await, PATIENCE);
        assert_eq!(end(&[b"PUT / HTTP/1.1\r\n"], second).await, Duration::ZERO);
        assert_eq!(end(&[], second).await, Duration::ZERO);
    }
}
