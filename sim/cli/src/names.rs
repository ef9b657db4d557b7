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

/// A consumer for subscriptions: its name, or its ARN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConsumerName {
    text: String,
    /// The stream's name in the ARN.
    stream: Option<String>,
}

impl ConsumerName {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of the stream in an ARN. Absent: the consumer is given by its name.
    pub(super) fn stream(&self) -> Option<&str> {
        self.stream.as_deref()
    }
}

/// The name of a consumer, or the ARN of a consumer.
pub(super) fn consumer(text: &str) -> Result<ConsumerName, String> {
    let stream = match text.starts_with("arn:") {
        true => Some(stream_of_consumer(text).ok_or_else(|| {
            format!(
                "expected an ARN `arn:aws:kinesis:<region>:<account>:stream/<name>/consumer/<name>:<time>`, found {text:?}"
            )
        })?),
        false => None,
    };
    match Config::check_consumer(text) {
        Ok(()) => Ok(ConsumerName { text: text.to_owned(), stream }),
        Err(error) => Err(error.to_string()),
    }
}

/// The name of the stream in the ARN of a consumer.
fn stream_of_consumer(arn: &str) -> Option<String> {
    let (stream, consumer) = arn.split_once("/consumer/")?;
    let (name, time) = consumer.rsplit_once(':')?;
    let parts: Vec<&str> = stream.split(':').collect();
    let &["arn", partition, "kinesis", region, account, of] = &parts[..] else {
        return None;
    };
    let of = of.strip_prefix("stream/")?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let place = partition.starts_with("aws") && plain(partition) && !region.is_empty() && plain(region);
    // Names of consumers are as names of streams.
    let names = [of, name].iter().all(|name| Config::check_stream(name).is_ok());
    (place && names && number(time) && number(account) && account.len() == 12).then(|| of.to_owned())
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

    #[test]
    fn a_consumer_is_a_name_or_an_arn_that_names_its_stream() {
        let arn = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders/consumer/billing:1700000000";
        for (good, stream) in [("billing", None), ("b.i_l-1", None), (arn, Some("orders"))] {
            let consumer = consumer(good).unwrap();
            assert_eq!((consumer.as_str(), consumer.stream()), (good, stream));
        }
        let long = "a".repeat(129);
        for bad in [
            "",
            "bill ing",
            "bill\u{1b}[2J",
            &long,
            "arn:",
            "arn:aws:kinesis:eu-west-1:123456789012:stream/orders",
            "arn:aws:kinesis:eu-west-1:123456789012:stream/orders/consumer/billing",
            "arn:aws:kinesis:eu-west-1:123456789012:stream/orders/consumer/bill\u{9b}ing:7",
            "arn:aws:kinesis:eu\u{1b}:123456789012:stream/orders/consumer/billing:7",
            "arn:aws:kinesis:eu-west-1:12345:stream/orders/consumer/billing:7",
            "arn:aws:dynamodb:eu-west-1:123456789012:stream/orders/consumer/billing:7",
        ] {
            let told = consumer(bad).unwrap_err();
            assert!(told.contains("expected "), "{told}");
            assert!(!told.contains(['\n', '\u{1b}']), "{told:?}");
        }
    }
}
