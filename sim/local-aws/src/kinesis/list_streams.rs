//! `ListStreams`.

use super::error::{ApiError, ApiResult};
use super::streams::StreamSummary;
use super::token::{Kind, Opener, Sealer, invalid_token};
use super::{Kinesis, Op};

/// What `ListStreams` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPage {
    /// By name.
    pub streams: Vec<StreamSummary>,
    /// There is more.
    pub next_token: Option<String>,
}

const PAGE: u32 = 100;

impl Kinesis {
    /// `ListStreams`; `exclusive_start` and `next_token` exclude each other.
    pub fn list_streams(
        &mut self, now_ms: i64, exclusive_start: Option<&str>, next_token: Option<&str>, limit: Option<u32>,
    ) -> ApiResult<StreamPage> {
        self.rate(now_ms, Op::ListStreams)?;
        let after = match (exclusive_start, next_token) {
            (Some(_), Some(_)) => {
                return Err(ApiError::argument(
                    "NextToken and ExclusiveStartStreamName cannot be provided together.",
                ));
            }
            (start, None) => start.map(str::to_owned),
            (None, Some(token)) => Some(self.resume_streams(now_ms, token)?),
        };
        self.advance(now_ms);
        let limit = limit.unwrap_or(PAGE).clamp(1, 10_000) as usize;
        let mut rest =
            self.streams().filter(|stream| after.as_deref().is_none_or(|after| stream.name() > after));
        let streams: Vec<StreamSummary> = rest.by_ref().take(limit).map(|stream| stream.summary()).collect();
        let more = rest.next().is_some();
        let next_token = match streams.last() {
            Some(last) if more => Some(Sealer::new(Kind::Streams).i64(now_ms).text(&last.name).seal()),
            _ => None,
        };
        Ok(StreamPage { streams, next_token })
    }

    fn resume_streams(&self, now_ms: i64, token: &str) -> ApiResult<String> {
        let opened =
            Opener::new(Kind::Streams, token).and_then(|mut token| Some((token.i64()?, token.text()?)));
        let (issued_ms, name) = opened.ok_or_else(invalid_token)?;
        self.refuse_expired(now_ms, issued_ms)?;
        Ok(name)
    }
}
