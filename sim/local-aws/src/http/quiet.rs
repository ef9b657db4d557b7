//! A connection that ends after a while without progress in either direction.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A socket with a patience: whatever waits for longer fails.
#[derive(Debug)]
pub(super) struct Quiet {
    socket: TcpStream,
    patience: Duration,
    until: Pin<Box<Sleep>>,
}

impl Quiet {
    pub(super) fn new(socket: TcpStream, patience: Duration) -> Self {
        Self { socket, patience, until: Box::pin(sleep(patience)) }
    }

    /// The first byte that the client sends, which stays to be read.
    #[cfg(feature = "tls")]
    pub(super) async fn first_byte(&self) -> io::Result<u8> {
        let mut first = [0];
        match self.socket.peek(&mut first).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(first[0]),
        }
    }

    /// The result of an operation, or the end of the patience.
    fn watch<T>(
        &mut self, cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let done @ Poll::Ready(_) = poll(Pin::new(&mut self.socket), cx) {
            self.until.as_mut().reset(Instant::now() + self.patience);
            return done;
        }
        ready!(self.until.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Quiet {
    fn poll_read(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.watch(cx, |socket, cx| socket.poll_read(cx, buf))
    }
}

impl AsyncWrite for Quiet {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.watch(cx, |socket, cx| socket.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.watch(cx, |socket, cx| socket.poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    // Flush and shutdown finish at once on a socket, and tell nothing about its other end.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
