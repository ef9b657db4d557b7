//! Why a worker cannot go on.

use crate::ids::LeaseKey;
use crate::shown::Escaping;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};

/// Why a worker cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the fields say it")]
#[non_exhaustive]
pub enum Fatal {
    /// The configuration is wrong.
    Config { detail: String },
    /// The table is of another application.
    TableIncompatible { table: String },
    /// The table was there and is gone.
    TableGone { table: String },
    /// The table could not be created, or did not become usable.
    TableUnusable { table: String, detail: String },
    /// The stream does not exist. `detail` is the service's answer, and its place.
    StreamMissing {
        stream: String,
        #[serde(default)]
        detail: String,
    },
    /// The stream has gone, or a different stream has its name.
    StreamGone { stream: String },
    /// The lease table was filled from another stream, or from an earlier stream of this name, or a fleet on another
    /// stream uses the table.
    OtherStream { stream: String, table: String, lease: LeaseKey, detail: String },
    /// Credentials are missing or do not allow a needed request.
    Denied { what: String, detail: String },
    /// The client that the worker was given can make no request: its endpoint is no URL, above all.
    Client { what: String, detail: String },
    /// The clock of this host is far off, so the service takes no request signed by the host.
    WrongClock { what: String, detail: String },
}

/// One line. Control characters in names and in answers of services are shown as escapes.
impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", Sentence(self))
    }
}

/// The sentence with the texts of other programs unescaped.
struct Sentence<'a>(&'a Fatal);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fatal::Config { detail } => write!(f, "the configuration cannot work: {detail}"),
            Fatal::TableIncompatible { table } => write!(
                f,
                "expected table {table:?} to have the primary key of this lease format, a string, and no sort key, found \
                 another key: the table belongs to another application, or to a fleet with another lease format; choose another \
                 table name, or the format that wrote it"
            ),
            Fatal::TableGone { table } => write!(
                f,
                "expected table {table:?} to be there, found that it was deleted while in use, and with it all checkpoints; \
                 restore it from a backup, or start again to create it anew and read from the initial position"
            ),
            Fatal::TableUnusable { table, detail } => write!(
                f,
                "expected table {table:?} to become ACTIVE, found: {detail}; check it in the console, then start again"
            ),
            Fatal::StreamMissing { stream, detail } => {
                write!(f, "expected a stream {stream:?} in this account and region, found none")?;
                if !detail.is_empty() {
                    write!(f, " ({detail})")?;
                }
                f.write_str("; create it, or correct the name or region")
            }
            Fatal::StreamGone { stream } => write!(
                f,
                "stream {stream:?} was deleted (or deleted and created again) while it was read; its checkpoints stay in the \
                 lease table; use a new application name for a new stream"
            ),
            Fatal::OtherStream { stream, table, lease, detail } => write!(
                f,
                "expected the leases in table {table:?} to be of stream {stream:?}, but found of {lease} that {detail}: the table was \
                 filled from another stream, or from an earlier one of this name, or another application uses it for its stream; give \
                 each stream an application name of its own, or, if no other application uses the table, delete it to begin with this \
                 stream anew"
            ),
            Fatal::Denied { what, detail } => write!(
                f,
                "expected to be allowed to {what}, but the service refused: {detail}; grant the permission or renew the \
                 credentials, then start again"
            ),
            Fatal::WrongClock { what, detail } => write!(
                f,
                "expected the clock of this host to be right, but the service refused to {what}: {detail}; set the clock right (a \
                 request must be signed within 5 minutes of the service's time), then start again"
            ),
            Fatal::Client { what, detail } => write!(
                f,
                "expected the client to be able to {what}, but it cannot make the request: {detail}; correct the endpoint and the \
                 region of the client's configuration, then start again"
            ),
        }
    }
}

impl std::error::Error for Fatal {}
