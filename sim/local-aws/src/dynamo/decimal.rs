//! Numbers of 38 decimal digits, like DynamoDB's: exact, ordered by value, no floats.

use crate::constraint::refuse_if;
use std::cmp::Ordering;
use std::fmt;

/// The most significant digits a number may have.
pub const MAX_DIGITS: u32 = 38;
/// The largest power of ten of a number's first digit.
const MAX_MAGNITUDE: i64 = 125;
/// The smallest power of ten of a number's first digit.
const MIN_MAGNITUDE: i64 = -130;

/// An exact decimal: `±mantissa × 10^exponent`, the mantissa without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

/// Why a text is not a number, or an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// The text is not a decimal number.
    NotANumber,
    /// More than 38 significant digits.
    TooPrecise,
    /// Larger than 9.99…E+125.
    Overflow,
    /// Nearer to zero than 1E-130.
    Underflow,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Self = Self { negative: false, mantissa: 0, exponent: 0 };

    /// Reads `[+-]digits[.digits][e[+-]digits]`.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let (negative, size) = signed(text);
        let (number, power) = match size.split_once(['e', 'E']) {
            None => (size, 0),
            Some((number, power)) => (number, parse_power(power)?),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(DecimalError::NotANumber);
        }
        let kept = digits.trim_end_matches('0');
        let significant = kept.trim_start_matches('0');
        if significant.is_empty() {
            return Ok(Self::ZERO);
        }
        refuse_if(significant.len() > MAX_DIGITS as usize, || DecimalError::TooPrecise)?;
        // 38 digits fit.
        let mantissa = significant.parse().map_err(|_| DecimalError::TooPrecise)?;
        let exponent = (digits.len() - kept.len()) as i64 - fraction.len() as i64;
        Self::checked(negative, mantissa, exponent.saturating_add(power))
    }

    /// Whether the value is zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The number of significant digits (1 for zero).
    pub fn digit_count(self) -> u32 {
        self.mantissa.checked_ilog10().map_or(1, |log| log + 1)
    }

    /// The power of ten of the first digit.
    pub fn magnitude(self) -> i32 {
        if self.is_zero() { 0 } else { self.exponent + self.digit_count() as i32 - 1 }
    }

    /// The exact sum; refused when it needs more than 38 digits or leaves the range.
    pub fn plus(self, other: Self) -> Result<Self, DecimalError> {
        if self.is_zero() {
            return Ok(other);
        }
        if other.is_zero() {
            return Ok(self);
        }
        let exponent = self.exponent.min(other.exponent);
        // If one number does not fit after alignment, the two numbers differ so much in size that no sum has 38 digits.
        let (left, right) = match (self.aligned(exponent), other.aligned(exponent)) {
            (Some(left), Some(right)) => (left, right),
            _ => return Err(DecimalError::TooPrecise),
        };
        let (negative, mantissa) = if self.negative == other.negative {
            (self.negative, left.checked_add(right).ok_or(DecimalError::TooPrecise)?)
        } else if left >= right {
            (self.negative, left - right)
        } else {
            (other.negative, right - left)
        };
        Self::checked(negative, mantissa, i64::from(exponent))
    }

    /// The exact difference.
    pub fn minus(self, other: Self) -> Result<Self, DecimalError> {
        self.plus(other.negated())
    }

    fn negated(self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), ..self }
    }

    fn aligned(self, exponent: i32) -> Option<u128> {
        let shift = u32::try_from(self.exponent - exponent).ok()?;
        10_u128.checked_pow(shift)?.checked_mul(self.mantissa)
    }

    fn checked(negative: bool, mut mantissa: u128, mut exponent: i64) -> Result<Self, DecimalError> {
        if mantissa == 0 {
            return Ok(Self::ZERO);
        }
        while mantissa.is_multiple_of(10) {
            mantissa /= 10;
            exponent = exponent.saturating_add(1);
        }
        let digits = mantissa.ilog10() + 1;
        refuse_if(digits > MAX_DIGITS, || DecimalError::TooPrecise)?;
        let magnitude = exponent.saturating_add(i64::from(digits) - 1);
        refuse_if(magnitude > MAX_MAGNITUDE, || DecimalError::Overflow)?;
        refuse_if(magnitude < MIN_MAGNITUDE, || DecimalError::Underflow)?;
        // Within ±170 by the checks above.
        Ok(Self { negative, mantissa, exponent: exponent as i32 })
    }

    fn compare_size(self, other: Self) -> Ordering {
        if self.is_zero() || other.is_zero() {
            return self.mantissa.cmp(&other.mantissa);
        }
        let widened = |number: Self| number.mantissa * 10_u128.pow(MAX_DIGITS - number.digit_count());
        self.magnitude().cmp(&other.magnitude()).then_with(|| widened(self).cmp(&widened(other)))
    }
}

/// Whether a number has a minus, and the number without its sign.
fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn parse_power(text: &str) -> Result<i64, DecimalError> {
    let (negative, digits) = signed(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DecimalError::NotANumber);
    }
    // Any power beyond a trillion is as far out of range as a trillion.
    let size = digits.parse().unwrap_or(i64::MAX).min(1 << 40);
    Ok(if negative { -size } else { size })
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_size(*other),
            (true, true) => other.compare_size(*self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    /// Plain notation, as DynamoDB answers: `1E+2` is `100`, `5E-3` is `0.005`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        let digits = self.mantissa.to_string();
        match usize::try_from(self.exponent) {
            Ok(zeros) => write!(f, "{digits}{:0<zeros$}", ""),
            Err(_) => {
                let places = self.exponent.unsigned_abs() as usize;
                if digits.len() > places {
                    let (whole, fraction) = digits.split_at(digits.len() - places);
                    write!(f, "{whole}.{fraction}")
                } else {
                    write!(f, "0.{digits:0>places$}")
                }
            }
        }
    }
}

/// Whether a text is a number exactly as DynamoDB would print it, seen without parsing (integers only).
pub fn is_plain_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0'] => !text.starts_with('-'),
        [b'1'..=b'9', ..] => digits.len() <= MAX_DIGITS as usize && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Compares two number texts by value; other texts are ordered as text.
pub fn compare_texts(left: &str, right: &str) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    match (Decimal::parse(left), Decimal::parse(right)) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        _ => left.cmp(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn reads_what_dynamodb_reads() {
        for (text, printed) in [
            ("0", "0"),
            ("-0.00", "0"),
            ("007", "7"),
            ("1.500", "1.5"),
            ("+12", "12"),
            ("1e2", "100"),
            ("1E+2", "100"),
            ("5e-3", "0.005"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-120.0340", "-120.034"),
            ("0e999999999999999999999", "0"),
        ] {
            assert_eq!(d(text).to_string(), printed, "{text}");
        }
        assert_eq!(d("99999999999999999999999999999999999999").digit_count(), 38);
        assert_eq!(d(&format!("1{}", "0".repeat(125))).magnitude(), 125);
    }

    #[test]
    fn refuses_what_dynamodb_refuses() {
        for text in
            ["", "-", "+", ".", "e5", "1e", "1e+", "1.2.3", "0x1", "NaN", "Infinity", " 1", "1 ", "--1"]
        {
            assert_eq!(Decimal::parse(text), Err(DecimalError::NotANumber), "{text:?}");
        }
        assert_eq!(Decimal::parse("100000000000000000000000000000000000001"), Err(DecimalError::TooPrecise));
        assert_eq!(Decimal::parse("1e126"), Err(DecimalError::Overflow));
        assert_eq!(Decimal::parse("-1e99999999999999999999"), Err(DecimalError::Overflow));
        assert_eq!(Decimal::parse("1e-131"), Err(DecimalError::Underflow));
        assert!(Decimal::parse("1e-130").is_ok() && Decimal::parse("9.99e125").is_ok());
    }

    #[test]
    fn sums_are_exact_or_refused() {
        assert_eq!(d("0.1").plus(d("0.2")), Ok(d("0.3")));
        assert_eq!(d("1e38").minus(d("1")), Ok(d("99999999999999999999999999999999999999")));
        assert_eq!(d("1e39").minus(d("1")), Err(DecimalError::TooPrecise));
        assert_eq!(d("1e125").plus(d("1e-130")), Err(DecimalError::TooPrecise));
        assert_eq!(d("9e125").plus(d("9e125")), Err(DecimalError::Overflow));
        assert_eq!(d("5").minus(d("5")), Ok(Decimal::ZERO));
        assert_eq!(d("0").minus(d("5")), Ok(d("-5")));
    }

    proptest! {
        #[test]
        fn integers_agree_with_machine_arithmetic(a in any::<i64>(), b in any::<i64>()) {
            let (x, y) = (d(&a.to_string()), d(&b.to_string()));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.plus(y).unwrap().to_string(), (i128::from(a) + i128::from(b)).to_string());
            prop_assert_eq!(x.minus(y).unwrap().to_string(), (i128::from(a) - i128::from(b)).to_string());
            prop_assert_eq!(is_plain_integer(&a.to_string()), true);
        }

        #[test]
        fn scaled_values_compare_as_their_common_multiples(
            a in -1_000_000_i64..1_000_000, ea in -6_i32..6, b in -1_000_000_i64..1_000_000, eb in -6_i32..6
        ) {
            let (x, y) = (d(&format!("{a}e{ea}")), d(&format!("{b}e{eb}")));
            let scale = |n: i64, e: i32| i128::from(n) * 10_i128.pow((e + 6) as u32);
            prop_assert_eq!(x.cmp(&y), scale(a, ea).cmp(&scale(b, eb)));
            prop_assert_eq!(x == y, scale(a, ea) == scale(b, eb));
        }

        #[test]
        fn printing_and_parsing_are_inverse(m in 0_u128..10_u128.pow(38), e in -100_i32..80, minus in any::<bool>()) {
            let text = format!("{}{m}e{e}", if minus { "-" } else { "" });
            let number = d(&text);
            prop_assert_eq!(d(&number.to_string()), number);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[-+0-9.eE]{0,60}") {
            if let Ok(number) = Decimal::parse(&text) {
                prop_assert_eq!(Decimal::parse(&number.to_string()), Ok(number));
            }
        }
    }
}
