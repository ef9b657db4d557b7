//! Names that are given on a command line, checked before a service is asked.

use crate::exit::Failure;
use leasehold::{Config, StreamId};

/// The name of a table.
pub(super) fn table(flag: &str, name: &str) -> Result<(), Failure> {
    Config::check_table(name)
        .map_err(|error| Failure::unusable(format!("{flag}: {error}; correct the name of the table")))
}

/// The name of a stream, its ARN or its identifier.
pub(super) fn stream(text: &str) -> Result<String, String> {
    let id = text.parse::<StreamId>();
    let arn = text.strip_prefix("arn:").and_then(|arn| arn.rsplit_once("stream/"));
    let name = match (&id, arn) {
        (Ok(id), _) => id.name(),
        (_, Some((_, name))) => name,
        _ => text,
    };
    match Config::check_stream(name) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_services_have() {
        for good in [
            "orders",
            "123456789012:orders:1700000000",
            "arn:aws:kinesis:eu-west-1:123456789012:stream/orders",
        ] {
            assert_eq!(stream(good).as_deref(), Ok(good));
        }
        for bad in ["", "or ders", "orders\u{1b}[2J", "arn:aws:kinesis:eu-west-1:1:stream/a\nb", "1:a\nb:2"] {
            let told = stream(bad).unwrap_err();
            assert!(told.contains("expected"), "{told}");
            assert!(!told.contains(['\n', '\u{1b}']), "{told:?}");
        }
        assert!(table("--table", "billing").is_ok());
        let told = table("--table", "a\n").unwrap_err().to_string();
        assert!(told.starts_with("--table: option `table`: expected "), "{told}");
    }
}
