//! DynamoDB's numbers as far as lease tables need them: decimal text, compared and counted up by value.

use std::cmp::Ordering;

/// A decimal number taken apart: `0.digits * 10^exponent`, without zeros at either end; zero has no digits.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = || whole.bytes().chain(fraction.bytes());
        if all().next().is_none() || !all().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let leading = all().take_while(|byte| *byte == b'0').count();
        let mut digits: Vec<u8> = all().skip(leading).collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let exponent = i64::from(exponent) + whole.len() as i64 - leading as i64;
        Some(Self { negative, digits, exponent })
    }

    /// The number if whole and small enough.
    fn whole(&self) -> Option<i128> {
        let places = usize::try_from(self.exponent).ok()?;
        if places > 38 || self.digits.len() > places {
            return None;
        }
        let mut value = 0i128;
        for place in 0..places {
            let digit = self.digits.get(place).map_or(0, |digit| digit - b'0');
            value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
        }
        Some(if self.negative { -value } else { value })
    }
}

/// Whether two number texts mean the same number. A text without a number equals no text.
pub(super) fn same_number(a: &str, b: &str) -> bool {
    // Almost always both are plain integers written alike.
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain(a) && a.cmp(b) == Ordering::Equal {
        return true;
    }
    Decimal::parse(a).is_some_and(|a| Decimal::parse(b) == Some(a))
}

/// The sum of a number text and a whole number; absent if the text is no whole number of up to 38 digits.
pub(super) fn add_numbers(text: &str, number: i64) -> Option<String> {
    let sum = Decimal::parse(text)?.whole()?.checked_add(i128::from(number))?;
    Some(sum.to_string())
}

/// The number as a `u64`, in any spelling (`1`, `1.0`, `1E0`).
pub(crate) fn to_u64(text: &str) -> Option<u64> {
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => u64::try_from(Decimal::parse(text)?.whole()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value() {
        for (a, b) in [("1", "1.0"), ("100", "1E2"), ("0", "-0.00"), ("+5", "05"), ("1.0E-6", "0.000001")] {
            assert!(same_number(a, b) && same_number(b, a), "{a} {b}");
        }
        for (a, b) in
            [("1", "-1"), ("1", "10"), ("0.1", "0.01"), ("", ""), ("x", "x"), (".", "."), ("1e", "1")]
        {
            assert!(!same_number(a, b), "{a} {b}");
        }
    }

    #[test]
    fn whole_numbers_add_up() {
        assert_eq!(add_numbers("41", 1).as_deref(), Some("42"));
        assert_eq!(add_numbers("1E2", -101).as_deref(), Some("-1"));
        assert_eq!(add_numbers("18446744073709551615", 1).as_deref(), Some("18446744073709551616"));
        for text in ["", "1.5", "x", "1E99", "1E2147483648", "-"] {
            assert_eq!(add_numbers(text, 1), None, "{text}");
        }
    }

    #[test]
    fn counters_are_read_however_they_are_written() {
        assert_eq!(to_u64("18446744073709551615"), Some(u64::MAX));
        assert_eq!(to_u64("1.0"), Some(1));
        assert_eq!(to_u64("0"), Some(0));
        assert_eq!(to_u64("-1"), None);
        assert_eq!(to_u64("18446744073709551616"), None);
    }
}
