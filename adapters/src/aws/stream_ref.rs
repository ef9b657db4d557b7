//! The streams of a worker that reads several: which they are, and how each is reached.

use super::bounded::bounded;
use super::classify::{classify, why};
use super::failures::Failures;
use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::config::Region;
use leasehold_engine::config::{InitialPosition, ReadMode, StreamSource};
use leasehold_engine::input::{Cause, Outcome, Why};
use leasehold_engine::stream_id::StreamId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A stream of a worker that reads several: see [`Builder::streams`](crate::Builder::streams).
///
/// All workers of an application must give a stream the same identifier, and so must workers of the Java KCL beside them
/// (`StreamIdentifier.multiStreamInstance`). [`find`](StreamRef::find) asks Kinesis for it.
///
/// ```
/// use leasehold::{InitialPosition, StreamRef};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let orders = StreamRef::new("123456789012:orders:1700000000".parse()?);
/// // Of another account, in another region.
/// let returns = StreamRef::from_arn("arn:aws:kinesis:eu-west-1:210987654321:stream/returns", 1_700_000_000)?
///     .with_initial_position(InitialPosition::Latest);
/// assert_eq!(returns.id().as_str(), "210987654321:returns:1700000000");
/// # let _ = orders;
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[derive(Clone)]
pub struct StreamRef {
    pub(crate) source: StreamSource,
    pub(crate) arn: Option<Arc<str>>,
    pub(crate) client: Option<Client>,
}

impl fmt::Debug for StreamRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRef")
            .field("id", &self.source.id)
            .field("arn", &self.arn)
            .finish_non_exhaustive()
    }
}

/// How many descriptions are asked for, at most, until two in a row say the same.
const LOOKS: u32 = 5;

/// From one description to the next.
const APART: Duration = Duration::from_secs(1);

/// How long one description is waited for: the default of the option `stream_timeout`.
const PATIENCE: Duration = Duration::from_secs(15);

/// A stream that cannot be named or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stream {stream:?}: expected {expected}, found {found}")]
pub struct BadStream {
    stream: String,
    expected: &'static str,
    found: String,
    obstacle: Obstacle,
}

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    /// The text is no name of a stream, or of no stream.
    Misnamed,
    /// The service refuses to describe the stream.
    Refused,
    /// The service did not describe the stream this time.
    Passing,
}

impl BadStream {
    /// Whether the trouble may pass: the service throttled the request, failed, was not reached, or did not answer in
    /// time. A later look-up may find the stream.
    pub fn is_passing(&self) -> bool {
        self.obstacle == Obstacle::Passing
    }

    /// What was found in place of the stream, in words.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Whether the text names no stream: the text is no name, or the service knows no stream of this name.
    pub fn is_misnamed(&self) -> bool {
        self.obstacle == Obstacle::Misnamed
    }
}

impl Obstacle {
    /// The kind of a description that failed in this way.
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Refused(refusal) if matches!(refusal.why, Why::NotFound | Why::Invalid) => {
                Self::Misnamed
            }
            // The client can make no request at all.
            Outcome::Refused(_) | Outcome::NotSent(Cause::Client) => Self::Refused,
            Outcome::Applied(_) | Outcome::NotSent(_) | Outcome::Unknown(_) => Self::Passing,
        }
    }
}

/// The parts of an ARN `arn:<partition>:kinesis:<region>:<account>:stream/<name>`.
struct Arn<'a> {
    region: &'a str,
    account: &'a str,
    name: &'a str,
}

impl<'a> Arn<'a> {
    fn parse(text: &'a str) -> Result<Self, BadStream> {
        let bad = || BadStream {
            stream: text.to_owned(),
            expected: "an ARN `arn:aws:kinesis:<region>:<account>:stream/<name>`",
            found: "another text".to_owned(),
            obstacle: Obstacle::Misnamed,
        };
        let parts: Vec<&str> = text.split(':').collect();
        let &["arn", partition, "kinesis", region, account, resource] = &parts[..] else {
            return Err(bad());
        };
        let name = resource.strip_prefix("stream/").filter(|name| !name.is_empty());
        let good = partition.starts_with("aws") && !region.is_empty();
        let number = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        match name {
            Some(name) if good && number => Ok(Self { region, account, name }),
            _ => Err(bad()),
        }
    }
}

impl StreamRef {
    /// The stream of this identifier. Requests use the stream's name, and go to the account and region of the
    /// builder's client.
    pub fn new(id: StreamId) -> Self {
        Self { source: id.into(), arn: None, client: None }
    }

    /// The stream of this ARN, of any account and region, created at `epoch`, in seconds since 1970. Requests use the
    /// ARN, and go to the ARN's region.
    ///
    /// # Errors
    /// If the text is no ARN of a stream, or the time is 0.
    pub fn from_arn(arn: &str, epoch: u64) -> Result<Self, BadStream> {
        let parts = Arn::parse(arn)?;
        let id = StreamId::new(parts.account, parts.name, epoch).map_err(|error| BadStream {
            stream: arn.to_owned(),
            expected: "the time at which it was created, in seconds since 1970",
            found: error.to_string(),
            obstacle: Obstacle::Misnamed,
        })?;
        Ok(Self { source: id.into(), arn: Some(arn.into()), client: None })
    }

    /// Asks Kinesis for the identifier of a stream, by name or ARN: DescribeStreamSummary, until two answers in a row
    /// agree, a second apart. One answer may come from an outdated replica, and the identifier is in the keys of all
    /// leases.
    ///
    /// The identifier holds the stream's creation time. A stream deleted and created again is another stream, and
    /// begins anew at the initial position; the leases of the former stream stay in the table.
    ///
    /// A description is waited for as long as the option `stream_timeout` says by default, 15 s:
    /// [`find_within`](StreamRef::find_within) takes another time.
    ///
    /// # Errors
    /// If the text begins with `arn:` and is no ARN of a stream, if two requests in a row fail, or if no two of five answers in a row say
    /// the same. Trouble that [may pass](BadStream::is_passing) is worth another call after a pause.
    pub async fn find(client: &Client, name_or_arn: &str) -> Result<Self, BadStream> {
        Self::find_within(client, name_or_arn, PATIENCE).await
    }

    /// As [`find`](StreamRef::find), with this time for each description.
    ///
    /// # Errors
    /// As those of [`find`](StreamRef::find).
    #[expect(
        clippy::disallowed_methods,
        reason = "a stream is looked up before there is a worker, and so a runtime port"
    )]
    pub async fn find_within(client: &Client, name_or_arn: &str, each: Duration) -> Result<Self, BadStream> {
        let arn = name_or_arn.starts_with("arn:");
        let region = match arn {
            true => Some(Arn::parse(name_or_arn)?.region),
            false => None,
        };
        let client = bounded(&in_region(client, region));
        let bad = |expected, found, obstacle| BadStream {
            stream: name_or_arn.to_owned(),
            expected,
            found,
            obstacle,
        };
        let mut before = None;
        for _ in 0..LOOKS {
            if before.is_some() {
                tokio::time::sleep(APART).await;
            }
            let said = tokio::time::timeout(each, Self::described(&client, name_or_arn, arn));
            let said = said.await.unwrap_or_else(|_| {
                Err(bad("an answer that describes it", format!("none within {each:?}"), Obstacle::Passing))
            });
            match (before.replace(said), &before) {
                (Some(Ok(one)), Some(Ok(other))) if one.source.id == other.source.id => return Ok(one),
                // One answer alone may come from an outdated replica: trouble that may pass makes both pass.
                (Some(Err(first)), Some(Err(last))) => {
                    return Err(if first.is_passing() && !last.is_passing() { first } else { last.clone() });
                }
                _ => {}
            }
        }
        Err(bad(
            "two descriptions in a row that say the same",
            format!("{LOOKS} that changed from one to the next; start again"),
            Obstacle::Passing,
        ))
    }

    /// What one description says.
    async fn described(client: &Client, name_or_arn: &str, arn: bool) -> Result<Self, BadStream> {
        let request = client.describe_stream_summary();
        let request = match arn {
            true => request.stream_arn(name_or_arn),
            false => request.stream_name(name_or_arn),
        };
        let bad = |found: String, obstacle| BadStream {
            stream: name_or_arn.to_owned(),
            expected: "an answer that describes it",
            found,
            obstacle,
        };
        let sent = Failures::default().request();
        let answer = request.customize().interceptor(sent.clone()).send().await;
        let answer = answer.map_err(|error| bad(why(&error), Obstacle::of(&classify(&error, &sent))))?;
        let summary = answer.stream_description_summary();
        let summary = summary.ok_or_else(|| bad("none".to_owned(), Obstacle::Passing))?;
        let epoch = u64::try_from(summary.stream_creation_timestamp().secs()).unwrap_or(0);
        let found = Self::from_arn(summary.stream_arn(), epoch);
        // The answer is wrong, and not the name.
        let found = found.map_err(|error| BadStream { obstacle: Obstacle::Passing, ..error })?;
        Ok(match arn {
            true => found,
            false => Self { arn: None, ..found },
        })
    }

    /// Where its shards without a lease are started; by default where the worker's option `initial_position` says.
    #[must_use]
    pub fn with_initial_position(mut self, position: InitialPosition) -> Self {
        self.source.initial_position = Some(position);
        self
    }

    /// How its shards are read; by default as the worker's option `reader.mode` says.
    #[must_use]
    pub fn with_reader_mode(mut self, mode: ReadMode) -> Self {
        self.source.reader_mode = Some(mode);
        self
    }

    /// Its consumer for subscriptions, by name or ARN; by default as the worker's option `reader.consumer` says.
    #[must_use]
    pub fn with_consumer(mut self, consumer: impl Into<String>) -> Self {
        self.source.consumer = Some(consumer.into());
        self
    }

    /// Reads it with a client of its own: with other credentials, above all. Its retries are switched off, as the builder's.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// The stream's identifier, part of the keys of its leases.
    pub fn id(&self) -> &StreamId {
        &self.source.id
    }

    /// The client of the stream, with the stream's region.
    pub(crate) fn client(&self, common: &Client) -> Client {
        let region = self.arn.as_deref().and_then(|arn| Some(Arn::parse(arn).ok()?.region));
        match &self.client {
            Some(own) => own.clone(),
            None => in_region(common, region),
        }
    }
}

/// The client for requests to this region. An endpoint that was set stays.
pub(super) fn in_region(client: &Client, region: Option<&str>) -> Client {
    let config = client.config();
    match region {
        Some(region) if config.region().is_none_or(|own| own.as_ref() != region) => {
            let region = Region::new(region.to_owned());
            Client::from_conf(config.to_builder().region(region).build())
        }
        _ => client.clone(),
    }
}

/// How each stream is reached: shared by the worker's handles and its port. Clones are handles on the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory(Arc<Mutex<BTreeMap<StreamId, StreamRef>>>);

impl Directory {
    pub(crate) fn of(streams: &[StreamRef]) -> Self {
        let directory = Self::default();
        for stream in streams {
            directory.insert(stream.clone());
        }
        directory
    }

    pub(crate) fn insert(&self, stream: StreamRef) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.insert(stream.id().clone(), stream);
    }

    /// All streams that were ever given, in the order of their identifiers.
    pub(crate) fn all(&self) -> Vec<StreamRef> {
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.values().cloned().collect()
    }

    pub(crate) fn get(&self, id: &StreamId) -> Option<StreamRef> {
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakeHttp, Wire, credentials};
    use super::*;

    fn client(region: &'static str) -> Client {
        let config = aws_sdk_kinesis::Config::builder()
            .behavior_version(aws_sdk_kinesis::config::BehaviorVersion::latest())
            .region(Region::new(region))
            .build();
        Client::from_conf(config)
    }

    #[test]
    fn an_arn_names_account_stream_and_region() {
        let stream =
            StreamRef::from_arn("arn:aws-cn:kinesis:cn-north-1:123456789012:stream/a.b-c_d", 7).unwrap();
        assert_eq!(stream.id().as_str(), "123456789012:a.b-c_d:7");
        let region = |client: Client| client.config().region().map(ToString::to_string);
        assert_eq!(region(stream.client(&client("eu-west-1"))).as_deref(), Some("cn-north-1"));
        let named = StreamRef::new(stream.id().clone());
        assert_eq!(region(named.client(&client("eu-west-1"))).as_deref(), Some("eu-west-1"));
        let own = stream.with_client(client("us-east-1"));
        assert_eq!(region(own.client(&client("eu-west-1"))).as_deref(), Some("us-east-1"));
    }

    /// Stands for an answer that a stream is not there, for one that requests are too many, for one that the caller lacks
    /// the permission, and for no answer.
    const GONE: u64 = 0;
    const THROTTLED: u64 = u64::MAX;
    const DENIED: u64 = u64::MAX - 1;
    const SILENT: u64 = u64::MAX - 2;

    /// The identifier from descriptions with these creation times. The last time stands for all later descriptions.
    async fn found(epochs: &'static [u64]) -> Result<String, BadStream> {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let refused = |code| Wire::Answer(400, format!(r#"{{"__type":"{code}","message":"said no"}}"#));
        let http = FakeHttp::new(move |_, _| {
            let n = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            match epochs[n.min(epochs.len() - 1)] {
                GONE => refused("ResourceNotFoundException"),
                THROTTLED => refused("LimitExceededException"),
                DENIED => refused("AccessDeniedException"),
                SILENT => Wire::Hangs,
                epoch => {
                    let summary = serde_json::json!({"StreamDescriptionSummary": {
                        "StreamName": "orders",
                        "StreamARN": "arn:aws:kinesis:eu-west-1:123456789012:stream/orders",
                        "StreamStatus": "ACTIVE",
                        "RetentionPeriodHours": 24,
                        "StreamCreationTimestamp": epoch,
                        "EnhancedMonitoring": [],
                        "OpenShardCount": 1,
                    }});
                    Wire::Answer(200, summary.to_string())
                }
            }
        });
        let client = Client::from_conf(
            client("eu-west-1")
                .config()
                .to_builder()
                .http_client(http)
                .retry_config(aws_smithy_types::retry::RetryConfig::disabled())
                .credentials_provider(credentials())
                .build(),
        );
        let stream = StreamRef::find(&client, "orders").await?;
        Ok(stream.id().as_str().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn an_identifier_follows_from_two_descriptions_in_a_row() {
        for epochs in [&[7][..], &[3, 7], &[0, 7], &[7, 3, 7]] {
            assert_eq!(found(epochs).await.as_deref(), Ok("123456789012:orders:7"), "{epochs:?}");
        }
        let error = found(&[0]).await.unwrap_err().to_string();
        assert!(error.contains("ResourceNotFoundException: said no"), "{error}");
        let error = found(&[1, 2, 3, 4, 5]).await.unwrap_err().to_string();
        assert!(error.contains("expected two descriptions in a row"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn passing_trouble_differs_from_a_wrong_name_and_a_refusal() {
        for (epochs, passing, misnamed) in [
            (&[GONE][..], false, true),
            (&[DENIED], false, false),
            (&[THROTTLED], true, false),
            (&[SILENT], true, false),
            (&[THROTTLED, GONE], true, false),
            (&[GONE, SILENT], true, false),
        ] {
            let error = found(epochs).await.unwrap_err();
            assert_eq!((error.is_passing(), error.is_misnamed()), (passing, misnamed), "{epochs:?}: {error}");
        }
        let begun = tokio::time::Instant::now();
        let error = found(&[SILENT]).await.unwrap_err().to_string();
        assert!(error.contains("found none within 15s"), "{error}");
        assert_eq!(begun.elapsed(), PATIENCE * 2 + APART);
    }

    #[test]
    fn a_text_that_is_no_arn_is_refused_with_the_expectation() {
        for arn in [
            "",
            "orders",
            "arn:aws:kinesis:eu-west-1:123456789012:stream/",
            "arn:aws:kinesis:eu-west-1:123456789012:stream/orders/consumer/c:1",
            "arn:aws:kinesis:eu-west-1:12345:stream/orders",
            "arn:aws:dynamodb:eu-west-1:123456789012:stream/orders",
            "arn:aws:kinesis::123456789012:stream/orders",
        ] {
            let error = StreamRef::from_arn(arn, 1).unwrap_err().to_string();
            assert!(error.contains("expected an ARN `arn:aws:kinesis:"), "{error}");
        }
        let error =
            StreamRef::from_arn("arn:aws:kinesis:eu-west-1:123456789012:stream/orders", 0).unwrap_err();
        assert!(error.to_string().contains("the time at which it was created"), "{error}");
    }
}
