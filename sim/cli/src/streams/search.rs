//! The look-up of the streams that are given without their identifiers.
//!
//! A service that fails for a moment is asked again, for as long as it takes: a worker of one stream sits such a fault
//! out, too. A line of the log names the streams that are waited for.

use crate::exit::Failure;
use leasehold::aws::kinesis::Client;
use leasehold::{BadStream, StreamId, StreamRef};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// The pauses between the look-ups of one stream: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The first line comes after this time. Each further line comes after twice the time, a minute at most.
const PATIENCE: Duration = Duration::from_secs(4);
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// A line names no more streams.
const NAMED: usize = 5;

/// The streams that are not found, each with the cause of the last failure; absent: no look-up has ended. Clones share one map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sought(Arc<Mutex<BTreeMap<String, Option<String>>>>);

impl Sought {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The streams, as they were given.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// The line about the streams that are still waited for.
    fn line(&self, so_far: Duration) -> Option<String> {
        let sought = self.lock();
        let each = sought.iter().take(NAMED).map(|(stream, cause)| {
            let cause = cause.as_deref().unwrap_or("no answer yet");
            format!("stream {stream:?}: {cause}")
        });
        let (each, more) = (each.collect::<Vec<_>>().join("; "), sought.len().saturating_sub(NAMED));
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let what = match sought.len() {
            0 => return None,
            1 => "a description of a stream",
            _ => "descriptions of streams",
        };
        let so_far = so_far.as_secs();
        Some(format!("expected {what}, found none for {so_far} s so far ({each}{more}); asking again"))
    }
}

/// How a look-up of one stream ended: the stream as it was given, and its end.
pub(crate) type Look = (String, Result<StreamRef, BadStream>);

/// The look-ups that run.
#[derive(Debug)]
pub(crate) struct Search {
    looks: JoinSet<Look>,
    /// The streams in the order in which they were given.
    given: Vec<String>,
    sought: Sought,
    began: Instant,
    /// When the next line is due, and the pause before the line.
    due: Instant,
    silence: Duration,
}

impl Search {
    /// Begins to look up each stream, all at the same time. `each`: how long one description is waited for.
    pub(crate) fn begin(kinesis: &Client, given: &[String], each: Duration) -> Self {
        let (mut looks, sought, began) = (JoinSet::new(), Sought::default(), Instant::now());
        for text in given {
            sought.lock().insert(text.clone(), None);
            let (kinesis, text, sought) = (kinesis.clone(), text.clone(), sought.clone());
            looks.spawn(async move {
                let found = look_up(&kinesis, &text, each, &sought).await;
                (text, found)
            });
        }
        let given = given.to_vec();
        Self { looks, given, sought, began, due: began + PATIENCE, silence: PATIENCE }
    }

    /// The streams that are not found.
    pub(crate) fn sought(&self) -> Sought {
        self.sought.clone()
    }

    /// The end of the next look-up that ends; absent: all have ended. Warns of long look-ups meanwhile. No end is lost if
    /// the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Look> {
        loop {
            tokio::select! {
                ended = self.looks.join_next() => {
                    let look = ended?;
                    return Some(look.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())));
                }
                () = sleep_until(self.due) => self.warn(),
            }
        }
    }

    /// The streams of all look-ups, or of those that have ended by the time `enough`, one stream at least. In the order
    /// in which they were given.
    pub(crate) async fn found(&mut self, enough: Option<Duration>) -> Result<Vec<StreamRef>, Failure> {
        let enough = enough.map(|enough| self.began + enough);
        let mut found = BTreeMap::new();
        loop {
            let look = match enough.filter(|_| !found.is_empty()) {
                None => self.next().await,
                Some(enough) => tokio::select! {
                    look = self.next() => look,
                    () = sleep_until(enough) => None,
                },
            };
            let Some((text, look)) = look else {
                return Ok(found.into_values().collect());
            };
            let place = self.given.iter().position(|given| *given == text);
            found.insert(place, look.map_err(failure)?);
            self.settled(&text);
        }
    }

    /// The stream of this look-up is used, or given up.
    pub(crate) fn settled(&self, text: &str) {
        self.sought.lock().remove(text);
    }

    fn warn(&mut self) {
        self.silence = (self.silence * 2).min(LONGEST_SILENCE);
        self.due = Instant::now() + self.silence;
        if let Some(line) = self.sought.line(self.began.elapsed()) {
            tracing::warn!(target: "leasehold", kind = "stream-sought", "{line}");
        }
    }
}

/// The failure of a command by a stream that cannot be found.
pub(crate) fn failure(error: BadStream) -> Failure {
    match error.is_misnamed() {
        true => Failure::unusable(format!(
            "{error}; correct --stream, which takes names, ARNs and identifiers, or the region"
        )),
        false if error.is_passing() => Failure::under_way(format!("{error}; try again later")),
        false => Failure::under_way(format!(
            "{error}; grant kinesis:DescribeStreamSummary, or correct what is refused"
        )),
    }
}

/// Looks a stream up, unless its identifier is given, until the stream is found or cannot be found.
async fn look_up(
    kinesis: &Client, text: &str, each: Duration, sought: &Sought,
) -> Result<StreamRef, BadStream> {
    if let Ok(id) = text.parse::<StreamId>() {
        return Ok(StreamRef::new(id));
    }
    let mut pause = FIRST_PAUSE;
    loop {
        match StreamRef::find_within(kinesis, text, each).await {
            Err(error) if error.is_passing() => {
                tracing::debug!(target: "leasehold", kind = "stream-sought", "{error}; asking again in {pause:?}");
                if let Some(cause) = sought.lock().get_mut(text) {
                    *cause = Some(error.found().to_owned());
                }
            }
            ended => return ended,
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_few_streams_with_the_cause_of_each() {
        let sought = Sought::default();
        assert_eq!(sought.line(PATIENCE), None);
        sought.lock().insert("returns".to_owned(), None);
        sought.lock().insert("orders".to_owned(), Some("Rate exceeded".to_owned()));
        assert_eq!(
            sought.line(PATIENCE).as_deref(),
            Some(
                "expected descriptions of streams, found none for 4 s so far (stream \"orders\": Rate exceeded; stream \
                 \"returns\": no answer yet); asking again"
            )
        );
        for n in 0..8 {
            sought.lock().insert(format!("s{n}"), None);
        }
        let line = sought.line(PATIENCE).expect("a line");
        assert!(line.ends_with("stream \"s2\": no answer yet; and 5 more); asking again"), "{line}");
    }
}
