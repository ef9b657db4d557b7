//! Tags of streams and consumers.

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use super::ids::{Arn, StreamRef};
use crate::constraint::refuse_if;
use std::collections::BTreeMap;

/// Tags by their keys.
pub(crate) type Tags = BTreeMap<String, String>;

const MOST_TAGS: usize = 50;

/// Whether these tags fit onto a resource with `others` further tags.
pub(crate) fn check(tags: &Tags, others: usize) -> ApiResult<()> {
    let allowed =
        |text: &str| text.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || "_./=+-:@".contains(c));
    if !tags.iter().all(|(key, value)| allowed(key) && allowed(value)) {
        return Err(ApiError::argument(
            "Some tags contain invalid characters. Valid characters: Unicode letters, digits, white space, _ . / = + - : @.",
        ));
    }
    if tags.keys().any(|key| key.starts_with("aws:")) {
        return Err(ApiError::argument("Tag keys that begin with aws: are reserved."));
    }
    refuse_if(tags.len() + others > MOST_TAGS, || {
        ApiError::argument(format!("A resource cannot have more than {MOST_TAGS} tags associated with it."))
    })?;
    Ok(())
}

/// What is tagged.
pub(crate) enum Tagged<'a> {
    Stream(StreamRef<'a>),
    /// A stream or a consumer.
    Arn(&'a str),
}

impl Kinesis {
    /// The tags of a resource, to be read or changed.
    pub(crate) fn tags_mut(&mut self, now_ms: i64, of: &Tagged<'_>) -> ApiResult<&mut Tags> {
        let stream = match *of {
            Tagged::Stream(stream) => stream,
            Tagged::Arn(arn) if Arn::parse(arn).is_some_and(|arn| arn.consumer.is_some()) => {
                let (id, name) = self.find_consumer(now_ms, Some(arn), None)?;
                let stream = self.stream_mut(id)?;
                let missing = stream.not_found();
                return stream.consumers.get_mut(&name).map(|consumer| &mut consumer.tags).ok_or(missing);
            }
            Tagged::Arn(arn) => StreamRef::Arn(arn),
        };
        self.found(now_ms, stream).map(|stream| &mut stream.tags)
    }

    pub(crate) fn add_tags(&mut self, now_ms: i64, to: &Tagged<'_>, new: Tags) -> ApiResult<()> {
        let tags = self.tags_mut(now_ms, to)?;
        let others = tags.keys().filter(|key| !new.contains_key(*key)).count();
        check(&new, others)?;
        tags.extend(new);
        Ok(())
    }

    pub(crate) fn remove_tags(&mut self, now_ms: i64, from: &Tagged<'_>, keys: &[String]) -> ApiResult<()> {
        let tags = self.tags_mut(now_ms, from)?;
        for key in keys {
            tags.remove(key);
        }
        Ok(())
    }
}
