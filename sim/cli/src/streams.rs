//! The given streams of an application of several streams.

pub(super) mod search;

use crate::exit::Failure;
use leasehold::aws::kinesis::Client;
use leasehold::{StreamId, StreamRef};
use leasehold_engine::config::StreamSource;

/// Whether `given` means KCL's multi-stream mode: more than one stream, or a stream given by its ARN or identifier.
pub(super) fn are_several(given: &[String]) -> bool {
    let named = |text: &String| text.starts_with("arn:") || text.parse::<StreamId>().is_ok();
    given.len() > 1 || given.first().is_some_and(named)
}

/// Looks a stream up, unless its identifier is given.
pub(super) async fn find_one(kinesis: &Client, given: &str) -> Result<StreamRef, Failure> {
    match given.parse::<StreamId>() {
        Ok(id) => Ok(StreamRef::new(id)),
        Err(_) => StreamRef::find(kinesis, given).await.map_err(search::failure),
    }
}

/// The streams named by the options, with the results of look-ups. Absent: the worker reads one stream.
pub(super) fn known(sources: &[StreamSource], found: Vec<StreamRef>) -> Option<Vec<StreamRef>> {
    let streams = sources.iter().map(|source| {
        let known = found.iter().find(|stream| *stream.id() == source.id);
        known.cloned().unwrap_or_else(|| StreamRef::new(source.id.clone()))
    });
    (!sources.is_empty()).then(|| streams.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_one_stream_and_everything_else_is_several() {
        let several =
            |given: &[&str]| are_several(&given.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(!several(&[]) && !several(&["orders"]));
        assert!(several(&["orders", "returns"]) && several(&["123456789012:orders:1700000000"]));
        assert!(several(&["arn:aws:kinesis:eu-west-1:123456789012:stream/orders"]));
    }
}
