//! The streams of a plan: one, or several in one table.

use super::Survey;
use super::other::{parse_stream, stream_of};
use super::parts::{Parts, Unnamed};
use super::survey::{self, Asked};
use crate::exit::Failure;
use crate::input;
use leasehold_engine::row::RowRead;
use leasehold_engine::shard::Shard;
use leasehold_engine::stream_id::StreamId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A file with the shards of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShardsFile {
    /// In a plan of several streams: the stream's name or identifier.
    stream: Option<String>,
    pub(super) path: PathBuf,
}

/// `FILE` or `STREAM=FILE`.
pub(super) fn parse_shards(text: &str) -> Result<ShardsFile, String> {
    let named = text.split_once('=').and_then(|(stream, path)| {
        let stream = parse_stream(stream).ok()?;
        Some((stream, path))
    });
    let (stream, path) = named.map_or((None, text), |(stream, path)| (Some(stream), path));
    match path.is_empty() {
        true => Err("expected a file, or a stream and its file: orders=shards.json".to_owned()),
        false => Ok(ShardsFile { stream, path: path.into() }),
    }
}

/// Whether the files hold the shards of several streams in one table.
pub(super) fn are_several(files: &[ShardsFile]) -> Result<bool, Failure> {
    let several = files.iter().any(|file| file.stream.is_some());
    if files.len() > 1 && files.iter().any(|file| file.stream.is_none()) {
        return Err(Failure::unusable(
            "expected the stream of each file of several: --shards orders=orders.json --shards returns=returns.json, found a file \
             without one"
                .to_owned(),
        ));
    }
    Ok(several)
}

/// The plan for several streams, each compared with its shards, and the rows to share out: leases of the listed
/// streams, and rows of other kinds than leases.
pub(super) fn survey_several(
    files: &[ShardsFile], rows: Vec<RowRead>, asked: &Asked<'_>,
) -> Result<(Survey, Vec<RowRead>), Failure> {
    let streams = listed(files, &rows)?;
    let mut parts = Parts::of(rows, true);
    let mut all = Survey::default();
    let mut shared = Vec::new();
    let (foreign, strays): (Vec<_>, Vec<_>) =
        parts.take(None).into_iter().partition(|row| matches!(row, RowRead::Foreign { .. }));
    for row in &foreign {
        all.foreign(row);
    }
    shared.extend(foreign);
    for (stream, shards) in &streams {
        let rows = parts.take(Some(stream));
        let of_one = Asked { stream: Some(stream), identity: None, ..*asked };
        all.add(survey::survey(shards, &rows, &of_one));
        shared.extend(rows);
    }
    for stray in &strays {
        let detail = "its key names no stream, in a table of several: workers of these leave it alone, and so does this plan";
        all.find("one-stream", Some(stray.key().as_str()), detail.to_owned());
    }
    for Unnamed { stream, count } in parts.left().1 {
        let detail = format!(
            "{count} of the stream {stream}, which was not named: left out of the plan; name it with --shards {stream}=FILE"
        );
        all.find("other-stream", None, detail);
    }
    Ok((all, shared))
}

/// The streams and their shards, named as the engine names them: by the keys of their leases.
fn listed(files: &[ShardsFile], rows: &[RowRead]) -> Result<BTreeMap<StreamId, Vec<Shard>>, Failure> {
    let in_table: BTreeSet<StreamId> =
        rows.iter().filter_map(|row| stream_of(row.key().as_str())?.parse().ok()).collect();
    let mut streams = BTreeMap::new();
    for file in files {
        let stream = identify(file.stream.as_deref().unwrap_or_default(), &in_table)?;
        let shards = input::shards(&file.path)?.into_iter();
        let shards = shards.map(|shard| stream.qualify_shard(shard)).collect();
        if streams.insert(stream.clone(), shards).is_some() {
            return Err(Failure::unusable(format!(
                "expected one file for each stream, found two for {stream}"
            )));
        }
    }
    Ok(streams)
}

/// The identifier of a stream that is named in some way. A name alone is completed from the table.
fn identify(named: &str, in_table: &BTreeSet<StreamId>) -> Result<StreamId, Failure> {
    if let Ok(id) = named.parse() {
        return Ok(id);
    }
    let mut known = in_table.iter().filter(|id| id.name() == named);
    let found = match (known.next(), known.next()) {
        (Some(id), None) => return Ok(id.clone()),
        (None, _) => "no lease of a stream of this name".to_owned(),
        (Some(one), Some(other)) => format!("leases of {one} and of {other}"),
    };
    Err(Failure::unusable(format!(
        "expected a stream that the table tells: found {found} for {named:?}; name it as <account>:{named}:<creation time in seconds>"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_a_stream() {
        let parsed = |text: &str| {
            let file = parse_shards(text).expect("a file");
            (file.stream, file.path.to_string_lossy().into_owned())
        };
        assert_eq!(parsed("shards.json"), (None, "shards.json".to_owned()));
        let orders = |stream: &str| (Some(stream.to_owned()), "a=b.json".to_owned());
        assert_eq!(parsed("orders=a=b.json"), orders("orders"));
        assert_eq!(parsed("1:orders:2=a=b.json"), orders("1:orders:2"));
        assert_eq!(parsed("./a=b.json"), (None, "./a=b.json".to_owned()));
        assert!(parse_shards("orders=").is_err() && parse_shards("").is_err());
    }

    #[test]
    fn a_name_stands_for_the_only_stream_that_has_it() {
        let id = |text: &str| text.parse::<StreamId>().expect("an identifier");
        let table = BTreeSet::from([id("1:orders:2"), id("1:returns:3"), id("9:returns:3")]);
        let told = |named: &str| identify(named, &table).map_err(|failure| failure.to_string());
        assert_eq!(told("orders"), Ok(id("1:orders:2")));
        assert_eq!(told("9:returns:3"), Ok(id("9:returns:3")));
        assert_eq!(told("1:new:5"), Ok(id("1:new:5")));
        let error = told("returns").expect_err("two of this name");
        assert!(error.contains("leases of 1:returns:3 and of 9:returns:3"), "{error}");
        let error = told("new").expect_err("none of this name");
        assert!(error.contains("<account>:new:<creation"), "{error}");
    }
}
