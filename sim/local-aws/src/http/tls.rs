//! TLS on the port of the server: for clients such as the Kinesis Producer Library, which speak no plain HTTP.

use super::quiet::Quiet;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// The first byte of a connection with TLS: the type of a handshake record. No request of HTTP begins with it.
const HANDSHAKE: u8 = 0x16;

/// A certificate and its key. The server speaks plain HTTP and TLS on one port: the first byte of a connection decides.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    certificate: Arc<str>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// A new certificate, signed by itself, for `localhost`, the loopback addresses and these names. Clients must trust the
    /// [certificate](Self::certificate), or trust any.
    ///
    /// # Errors
    /// If a name is no host name.
    pub fn self_signed(names: &[String]) -> io::Result<Self> {
        let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let names = own.into_iter().chain(names.iter().filter(|name| *name != "*").cloned());
        let made = rcgen::generate_simple_self_signed(names.collect::<Vec<_>>()).map_err(io::Error::other)?;
        Self::new(&made.cert.pem(), &made.signing_key.serialize_pem())
    }

    /// A certificate (or a chain of certificates, the server's first) and its private key, each in PEM.
    ///
    /// # Errors
    /// If one of the texts holds no such thing, or the key is not the certificate's.
    pub fn new(certificate: &str, key: &str) -> io::Result<Self> {
        let invalid = |what: &str, error: &dyn fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("expected {what} in PEM, found: {error}"))
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| invalid("a certificate", &error))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
        let key = key.map_err(|error| invalid("a private key", &error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| invalid("a certificate and its key", &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), certificate: certificate.into() })
    }

    /// The certificate in PEM, for the trust of clients (`AWS_CA_BUNDLE`, `NODE_EXTRA_CA_CERTS`).
    pub fn certificate(&self) -> &str {
        &self.certificate
    }
}

/// A connection after the greeting of TLS, or without TLS.
pub(super) enum Greeted {
    Plain(Quiet),
    Tls(Box<TlsStream<Quiet>>),
}

impl AsyncRead for Greeted {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Greeted::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Greeted::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Greeted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Greeted::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Greeted::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Greeted::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Greeted::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Greeted::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Greeted::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// Greets the client of a connection that begins with TLS. Absent: nothing came in time, or the greeting failed.
pub(super) async fn greeted(tls: Option<Tls>, socket: Quiet, patience: Duration) -> Option<Greeted> {
    let Some(tls) = tls else {
        return Some(Greeted::Plain(socket));
    };
    let greeting = async {
        if socket.first_byte().await? != HANDSHAKE {
            return Ok(Greeted::Plain(socket));
        }
        let stream = TlsAcceptor::from(tls.config).accept(socket).await?;
        io::Result::Ok(Greeted::Tls(Box::new(stream)))
    };
    timeout(patience, greeting).await.ok()?.ok()
}
