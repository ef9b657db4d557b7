//! Certificates of in-memory servers, and the trust of client programs in these certificates.

use leasehold_local_aws::http::Tls;
use std::path::PathBuf;
use std::process::Command;

/// A new certificate, and its file.
#[derive(Debug)]
pub struct Certificate {
    /// For the server.
    pub tls: Tls,
    file: PathBuf,
}

impl Certificate {
    /// With a file of the test's own.
    ///
    /// # Panics
    /// If the certificate cannot be made or written.
    pub fn for_test(test: &str) -> Self {
        let tls = Tls::self_signed(&[]).expect("a certificate");
        let file = std::env::temp_dir().join(format!("leasehold-{test}-{}.pem", std::process::id()));
        std::fs::write(&file, tls.certificate()).expect("to write the certificate");
        Self { tls, file }
    }

    /// Has a program of the SDKs for Python, Go or JavaScript trust the certificate. Gives the endpoint over TLS.
    pub fn trusted_by(&self, command: &mut Command, endpoint: &str) -> String {
        for name in ["AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
            command.env(name, &self.file);
        }
        endpoint.replacen("http://", "https://", 1)
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}
