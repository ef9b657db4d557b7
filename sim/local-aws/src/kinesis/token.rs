//! Opaque tokens: iterators and page tokens in the form for clients.
//!
//! A token carries all its data, so the service keeps no table of tokens. A checksum lets the service refuse a token
//! that was cut, edited or made up.

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const VERSION: u8 = 1;

/// The purpose of a token; a token of another kind is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Iterator = 1,
    Shards = 2,
    Streams = 3,
    Consumers = 4,
}

/// Writes the fields of a token.
pub(crate) struct Sealer(Vec<u8>);

impl Sealer {
    pub(super) fn new(kind: Kind) -> Self {
        Sealer(vec![0, 0, 0, 0, 0, 0, 0, VERSION, kind as u8])
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(super) fn u8(self, value: u8) -> Self {
        self.put(&[value])
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.put(&value.to_be_bytes())
    }

    pub(super) fn u64(self, value: u64) -> Self {
        self.put(&value.to_be_bytes())
    }

    pub(super) fn i64(self, value: i64) -> Self {
        self.put(&value.to_be_bytes())
    }

    /// The rest of the token; must be the last call.
    pub(super) fn text(self, value: &str) -> Self {
        self.put(value.as_bytes())
    }

    pub(super) fn seal(mut self) -> String {
        let sum = checksum(&self.0);
        self.0.extend(sum.to_be_bytes());
        STANDARD.encode(&self.0)
    }
}

/// Reads the fields of a token back; `None` at the first fault.
pub(crate) struct Opener {
    bytes: Vec<u8>,
    at: usize,
}

impl Opener {
    pub(super) fn new(kind: Kind, token: &str) -> Option<Self> {
        let mut bytes = STANDARD.decode(token).ok()?;
        let body = bytes.len().checked_sub(8)?;
        let sum = bytes.get(body..)?.try_into().ok().map(u64::from_be_bytes)?;
        bytes.truncate(body);
        let sound = checksum(&bytes) == sum && bytes.starts_with(&[0, 0, 0, 0, 0, 0, 0, VERSION, kind as u8]);
        sound.then_some(Opener { bytes, at: 9 })
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let field = self.bytes.get(self.at..self.at + N)?.try_into().ok()?;
        self.at += N;
        Some(field)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    pub(super) fn text(self) -> Option<String> {
        String::from_utf8(self.bytes.get(self.at..)?.to_vec()).ok()
    }
}

impl Kinesis {
    /// Refuses a `NextToken` after its life.
    pub(super) fn refuse_expired(&self, now_ms: i64, issued_ms: i64) -> ApiResult<()> {
        let expiry_ms = self.config().token_expiry_ms;
        if now_ms.saturating_sub(issued_ms) <= expiry_ms {
            return Ok(());
        }
        let message = format!("NextToken expired. It is valid for {expiry_ms} milliseconds.");
        Err(ApiError::client("ExpiredNextTokenException", message))
    }
}

pub(super) fn invalid_token() -> ApiError {
    ApiError::argument("Invalid NextToken.")
}

pub(super) fn of_other_stream() -> ApiError {
    ApiError::argument("NextToken and StreamARN do not belong to the same stream.")
}

/// FNV-1a: enough against accidents, its only purpose.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_come_back(a: u8, b: u32, c: u64, d: i64, e in ".{0,40}") {
            let token = Sealer::new(Kind::Shards).u8(a).u32(b).u64(c).i64(d).text(&e).seal();
            let mut opener = Opener::new(Kind::Shards, &token).unwrap();
            prop_assert_eq!((opener.u8(), opener.u32(), opener.u64(), opener.i64()), (Some(a), Some(b), Some(c), Some(d)));
            prop_assert_eq!(opener.text(), Some(e));
            prop_assert!(Opener::new(Kind::Iterator, &token).is_none());
        }

        #[test]
        fn any_change_is_noticed(at in 0usize..32, to in "[A-Za-z0-9+/]") {
            let token = Sealer::new(Kind::Iterator).u64(7).i64(9).seal();
            let mut changed = token.clone();
            changed.replace_range(at..at + 1, &to);
            prop_assert_eq!(Opener::new(Kind::Iterator, &changed).is_some(), changed == token);
        }

        #[test]
        fn text_of_any_kind_is_no_token(text in ".{0,300}") {
            prop_assert!(Opener::new(Kind::Iterator, &text).is_none());
        }
    }
}
