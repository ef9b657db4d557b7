//! Standard base64 with padding, as DynamoDB writes binary.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of some bytes.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            if place <= chunk.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// The bytes of a text in the form of [`encode`]; absent for other texts.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let digits = &text[..text.len() - padding];
    for chunk in digits.chunks(4) {
        let mut bits = 0_u32;
        for place in 0..4 {
            let digit = match chunk.get(place) {
                None => 0,
                Some(byte @ b'A'..=b'Z') => byte - b'A',
                Some(byte @ b'a'..=b'z') => byte - b'a' + 26,
                Some(byte @ b'0'..=b'9') => byte - b'0' + 52,
                Some(b'+') => 62,
                Some(b'/') => 63,
                Some(_) => return None,
            };
            bits = bits << 6 | u32::from(digit);
        }
        let [_, first, second, third] = bits.to_be_bytes();
        let whole = [first, second, third];
        let count = chunk.len().saturating_sub(1);
        // Bits after the last byte must be zero, or two texts would mean the same.
        if whole[count..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&whole[..count]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_texts() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        for bad in ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Z===", "Zm9v!A==", "Z=9v"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "[A-Za-z=+/]{0,12}") {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
            if let Some(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}
