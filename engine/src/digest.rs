//! A rolling digest of serialised values: cheap enough to be fed every step of a run, and the same on every platform.
//!
//! It depends on the *shape* of a value as serde sees it (order of fields, index of a variant), not on names or memory
//! layout. The digest gives no protection against a person who wants two histories to collide.

use serde::ser::{self, Serialize, Serializer};
use std::fmt;

/// A running 64-bit digest of everything absorbed so far, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

/// From the fractional part of pi, as in wyhash and rustc's hashers: odd, with bits spread evenly.
const WORD_KEY: u64 = 0x2437_54f1_6a09_e667;
const END_KEY: u64 = 0xa409_3822_299f_31d1;
const START: u64 = 0x1319_8a2e_0370_7345;

/// Ends of texts count bytes, so no end of a text has this value.
const SKIPPED: u64 = u64::MAX;
const FAILED: u64 = u64::MAX - 1;
/// Stands in place of the count before a sequence of unknown length.
const UNCOUNTED: u64 = u64::MAX;

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    /// The digest of no input.
    pub const fn new() -> Self {
        Self(START)
    }

    /// Adds a value. A value whose `Serialize` fails counts as far as `Serialize` got, and as failed.
    pub fn absorb(&mut self, value: &impl Serialize) {
        if value.serialize(Feed(self)).is_err() {
            self.end(FAILED);
        }
    }

    /// The digest of everything absorbed so far.
    pub const fn value(self) -> u64 {
        let mut value = self.0;
        value = (value ^ value >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        value = (value ^ value >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        value ^ value >> 32
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = folded(self.0 ^ word, WORD_KEY);
    }

    /// Mixes differently from [`Digest::word`], so that no content can pass for a delimiter.
    #[inline]
    fn end(&mut self, count: u64) {
        self.0 = folded(self.0.rotate_left(23) ^ count, END_KEY);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(word));
        }
        self.end(bytes.len() as u64);
    }
}

/// The full product's halves folded together: every input bit reaches every output bit in one multiplication.
#[inline]
fn folded(value: u64, key: u64) -> u64 {
    let wide = u128::from(value) * u128::from(key);
    (wide as u64 ^ (wide >> 64) as u64).wrapping_add(START)
}

/// Takes displayed text piece by piece, so no allocation is needed; the result is the result of the whole text at once.
struct Text<'a> {
    digest: &'a mut Digest,
    pending: [u8; 8],
    count: u64,
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut bytes = text.as_bytes();
        while !bytes.is_empty() {
            let held = (self.count % 8) as usize;
            if held == 0
                && let Some((word, rest)) = bytes.split_first_chunk()
            {
                self.digest.word(u64::from_le_bytes(*word));
                self.count += 8;
                bytes = rest;
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(8 - held));
            self.pending[held..held + part.len()].copy_from_slice(part);
            self.count += part.len() as u64;
            if self.count.is_multiple_of(8) {
                self.digest.word(u64::from_le_bytes(self.pending));
                self.pending = [0; 8];
            }
            bytes = rest;
        }
        Ok(())
    }
}

impl Text<'_> {
    fn finish(self) {
        if !self.count.is_multiple_of(8) {
            self.digest.word(u64::from_le_bytes(self.pending));
        }
        self.digest.end(self.count);
    }
}

/// Why a value's own `Serialize` refused; the reason does not matter here.
#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value refused to be serialised")
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Refused
    }
}

struct Feed<'a>(&'a mut Digest);

/// The inside of a sequence, map, tuple or struct.
struct Parts<'a> {
    digest: &'a mut Digest,
    counted: bool,
}

impl Parts<'_> {
    #[inline]
    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        if !self.counted {
            self.digest.word(1);
        }
        value.serialize(Feed(self.digest))
    }

    #[inline]
    fn finish(self) -> Result<(), Refused> {
        if !self.counted {
            self.digest.word(0);
        }
        Ok(())
    }
}

impl<'a> Feed<'a> {
    #[inline]
    fn fed(self, word: u64) -> Result<(), Refused> {
        self.0.word(word);
        Ok(())
    }

    #[inline]
    fn wide(self, wide: u128) -> Result<(), Refused> {
        self.0.word(wide as u64);
        self.0.word((wide >> 64) as u64);
        Ok(())
    }

    #[inline]
    fn fixed(self) -> Result<Parts<'a>, Refused> {
        Ok(Parts { digest: self.0, counted: true })
    }

    #[inline]
    fn variant(self, index: u32) -> Result<Parts<'a>, Refused> {
        self.0.word(u64::from(index));
        self.fixed()
    }

    #[inline]
    fn counted(self, len: Option<usize>) -> Result<Parts<'a>, Refused> {
        self.0.word(len.map_or(UNCOUNTED, |len| len as u64));
        Ok(Parts { digest: self.0, counted: len.is_some() })
    }
}

macro_rules! feed_integers {
    ($($method:ident: $type:ty),*) => {
        $(#[inline]
        fn $method(self, value: $type) -> Result<(), Refused> {
            self.fed(value as u64)
        })*
    };
}

impl<'a> Serializer for Feed<'a> {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    feed_integers!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_char: char
    );

    fn serialize_i128(self, value: i128) -> Result<(), Refused> {
        self.wide(value as u128)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Refused> {
        self.wide(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Refused> {
        self.fed(u64::from(value.to_bits()))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Refused> {
        self.fed(value.to_bits())
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result<(), Refused> {
        self.serialize_bytes(text.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Refused> {
        self.0.bytes(bytes);
        Ok(())
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<(), Refused> {
        let mut text = Text { digest: self.0, pending: [0; 8], count: 0 };
        fmt::write(&mut text, format_args!("{value}")).map_err(|_| Refused)?;
        text.finish();
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Refused> {
        self.fed(0)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refused> {
        self.0.word(1);
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Refused> {
        self.fed(0)
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Refused> {
        self.fed(0)
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Result<(), Refused> {
        self.fed(u64::from(index))
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self, _: &'static str, value: &T,
    ) -> Result<(), Refused> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self, _: &'static str, index: u32, _: &'static str, value: &T,
    ) -> Result<(), Refused> {
        self.0.word(u64::from(index));
        value.serialize(self)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Parts<'a>, Refused> {
        self.counted(len)
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Refused> {
        self.fixed()
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Refused> {
        self.fixed()
    }

    #[inline]
    fn serialize_tuple_variant(
        self, _: &'static str, index: u32, _: &'static str, _: usize,
    ) -> Result<Parts<'a>, Refused> {
        self.variant(index)
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Parts<'a>, Refused> {
        self.counted(len)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Refused> {
        self.fixed()
    }

    #[inline]
    fn serialize_struct_variant(
        self, _: &'static str, index: u32, _: &'static str, _: usize,
    ) -> Result<Parts<'a>, Refused> {
        self.variant(index)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! feed_parts {
    ($($trait:ident $method:ident),*) => {
        $(impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Refused;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
                self.part(value)
            }

            #[inline]
            fn end(self) -> Result<(), Refused> {
                self.finish()
            }
        })*
    };
}

feed_parts!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Refused;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        self.part(key)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.part(value)
    }

    #[inline]
    fn end(self) -> Result<(), Refused> {
        self.finish()
    }
}

macro_rules! feed_fields {
    ($($trait:ident),*) => {
        $(impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Refused;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), Refused> {
                self.part(value)
            }

            /// A skipped field must not let the next field slip into its place.
            #[inline]
            fn skip_field(&mut self, _: &'static str) -> Result<(), Refused> {
                self.digest.end(SKIPPED);
                Ok(())
            }

            #[inline]
            fn end(self) -> Result<(), Refused> {
                self.finish()
            }
        })*
    };
}

feed_fields!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests;
