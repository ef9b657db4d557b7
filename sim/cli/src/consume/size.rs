//! Sizes in bytes, in the spelling of flags.

/// Units, each with its number of bytes.
const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// A whole number and a unit, such as `64 MiB` or `2GB`; without a unit, bytes.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let refused = || {
        format!(
            "expected a whole number with KB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 64MiB, found {text:?}"
        )
    };
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit))).unwrap_or((text, 1));
    let number: u64 = number.trim_end().parse().map_err(|_| refused())?;
    number.checked_mul(unit).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_a_unit() {
        assert_eq!(parse_size("4096"), Ok(4_096));
        assert_eq!(parse_size("64 MiB"), Ok(64 << 20));
        assert_eq!(parse_size("2GB"), Ok(2_000_000_000));
        assert_eq!(parse_size("17B"), Ok(17));
        for bad in ["", "MB", "-1", "1.5GB", "1 mb", "99999999999TB"] {
            assert!(parse_size(bad).unwrap_err().contains("such as 64MiB"), "{bad}");
        }
    }
}
