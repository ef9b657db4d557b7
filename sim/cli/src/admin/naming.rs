//! Rows whose stream differs from the service's description: a worker refuses their table.

use super::ailment::{Ailment, Patient};
use super::table::Table;
use crate::text::counted;
use leasehold::admin::{Misnamed, NamedStream, Naming, Shard, StreamIdentity, View, misnamed};
use leasehold::{LeaseKey, StreamId};
use std::time::Duration;

/// The pause between two descriptions, or two lists of shards. One answer alone may show an earlier stream of the same
/// name.
pub(super) const APART: Duration = Duration::from_secs(1);

/// The result of two descriptions of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Described {
    /// Both descriptions agree on this identity.
    As(StreamIdentity),
    /// A comparison with rows is impossible, and the reason.
    Not(String),
}

impl Described {
    /// The stream, if both say the same.
    pub(super) fn identity(&self) -> Option<&StreamIdentity> {
        match self {
            Described::As(identity) => Some(identity),
            Described::Not(_) => None,
        }
    }
}

/// Asks for the stream's description twice.
pub(super) async fn described(table: &Table, stream: &NamedStream) -> Described {
    let kinesis = &table.clients.kinesis;
    let first = table.admin.identity(kinesis, stream).await;
    let first = match first {
        Ok(first) => first,
        Err(error) => return Described::Not(error.to_string()),
    };
    tokio::time::sleep(APART).await;
    match (first, table.admin.identity(kinesis, stream).await) {
        (Some(first), Ok(Some(second))) if first == second => Described::As(first),
        (_, Err(error)) => Described::Not(error.to_string()),
        (None, _) | (_, Ok(None)) => {
            Described::Not("expected a description with an ARN or a name, found neither".to_owned())
        }
        (Some(first), Ok(Some(second))) => Described::Not(format!(
            "expected two descriptions, a second apart, to say the same, found stream {first} and then stream {second}"
        )),
    }
}

/// Whether any row of the stream names a stream.
fn name_any(view: &View) -> bool {
    view.leases.values().any(|row| row.stream.is_some())
}

/// The faults of the streams named by rows.
pub(super) fn judge(patient: &Patient<'_>, described: &Described) -> Vec<Ailment> {
    let now = match described {
        Described::As(now) => now,
        Described::Not(_) if !name_any(patient.view) => return Vec::new(),
        Described::Not(why) => {
            return vec![Ailment {
                kind: "not-compared",
                stream: patient.stream.cloned(),
                lease: None,
                expected: "a description of the stream, to compare with the stream that rows name",
                found: why.clone(),
                advice: "allow kinesis:DescribeStreamSummary, if that is what is missing, and run this again"
                    .to_owned(),
                repairs: Vec::new(),
            }];
        }
    };
    let all = misnamed(patient.view, patient.shards, now, patient.stream);
    let lives = patient.fleet_lives();
    let each = all.into_iter().map(|found| Ailment {
        kind: "other-stream",
        stream: patient.stream.cloned(),
        lease: None,
        expected: "rows that name the stream as it is described, as a worker refuses a table with others",
        found: told(&found, now, patient.stream),
        advice: advice(&found.naming, lives),
        repairs: match found.naming {
            Naming::Name(steps) if !lives => steps,
            _ => Vec::new(),
        },
    });
    each.collect()
}

/// What was found.
fn told(found: &Misnamed, now: &StreamIdentity, id: Option<&StreamId>) -> String {
    let count = counted(found.leases.len() as u64, "row");
    let first = found.leases.first().map_or("none", LeaseKey::as_str);
    let key = id.map_or_else(String::new, |id| format!(", and its key stream {id}"));
    format!("{count} ({first} first) of stream {}, where the stream is {now}{key}", found.named)
}

/// What to do.
fn advice(naming: &Naming, lives: bool) -> String {
    match naming {
        Naming::Other => {
            "give this application another name, and so a table of its own; or name the stream that these rows are of".to_owned()
        }
        Naming::MadeAnew { lease, why } => format!(
            "give the application another name, or delete the table if nobody needs it, and start again: the rows are of another stream of \
             that name, since of {lease} {why}"
        ),
        Naming::Unproven { lease } => format!(
            "give the application another name, or delete the table, and start again: no number in the row of {lease}, or of a child, shows \
             of which stream the row is"
        ),
        Naming::Name(_) if lives => {
            "stop the workers of this stream, then run this again with --repair: checkpoints and hash keys fit the stream's shards, and the \
             name alone is wrong"
                .to_owned()
        }
        Naming::Name(_) => {
            "repair it: checkpoints and hash keys fit the stream's shards, so the rows were probably named by a worker that was told a wrong \
             time of creation"
                .to_owned()
        }
    }
}

/// Why leases of the table are not to be put at other places: a worker would refuse the table all the same.
pub(super) fn refusal(
    view: &View, shards: &[Shard], now: &StreamIdentity, stream: &NamedStream,
) -> Option<String> {
    let found = misnamed(view, shards, now, stream.id()).into_iter().next()?;
    let what = match found.naming {
        Naming::Name(_) => {
            format!("mend the names first, with `leasehold admin doctor --stream {stream} --repair`")
        }
        ref other => advice(other, false),
    };
    Some(format!(
        "expected leases of stream {now}, found {}; nothing was written: a worker refuses the table because of such rows, wherever they are \
         rewound to; {what}",
        told(&found, now, stream.id())
    ))
}

/// The warning that no description can be compared with the rows. Absent: no row names a stream.
pub(super) fn not_compared(view: &View, why: &str) -> Option<String> {
    name_any(view).then(|| {
        format!("could not compare the stream with the streams that rows name: {why}; a worker refuses rows of another stream")
    })
}

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
