//! `leasehold admin deregister`: ends the consumer (enhanced fan-out) of an application.

use super::naming::APART;
use super::readers::{Reader, at_work};
use super::table::{Table, TableArgs};
use crate::exit::{self, Failure, Verdict};
use crate::names::{self, ConsumerName};
use crate::streams;
use crate::text::{Text, counted, put, put_line};
use clap::Args;
use leasehold::admin::{Deregistered, NamedStream, RegisteredConsumer, TableReport};
use leasehold_engine::shown::Shown;
use serde::Serialize;
use std::io::{self, Write};

/// Deregister the consumer of an application (enhanced fan-out), which ends the consumer's bill.
///
/// Workers with `reader.mode` auto or fan-out register one consumer at each stream, and no worker deregisters a
/// consumer. The command finds the consumer of each named stream, and shows the consumer. With --apply, the command
/// deregisters each consumer found, and waits until Kinesis describes the consumer no more, for a minute at most.
///
/// Without --force, nothing is deregistered while owners of unfinished leases of the stream live, or may live: a worker
/// with `reader.mode` auto or fan-out would register the consumer anew. The lease table shows neither the mode of a
/// worker, nor a worker without leases, nor another application with the same consumer. After a crash, watch the table
/// for a whole lease duration (--watch and --lease-duration). Without --apply, the command changes nothing.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold admin deregister --application billing --stream orders\n  leasehold admin deregister --application billing --stream orders --stream returns --apply"
)]
pub(super) struct DeregisterArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The stream's name. For an application of several streams: each stream, in several flags or with commas between
    /// them, as a name, an ARN, or an identifier `<account>:<stream>:<creation time in seconds>`.
    #[arg(long, value_name = "STREAM", required = true, value_delimiter = ',', value_parser = names::stream)]
    stream: Vec<String>,
    /// The consumer, as the option `reader.consumer` of the workers gives it: a name, or the ARN of a consumer of the
    /// one stream. By default the application's name.
    #[arg(long, alias = "consumer", value_name = "CONSUMER", value_parser = names::consumer)]
    reader_consumer: Option<ConsumerName>,
    /// Deregister. Without this flag, only print the consumers found.
    #[arg(long)]
    apply: bool,
    /// Deregister although workers live, or although the lease table cannot be read. A worker with `reader.mode` auto or
    /// fan-out registers the consumer anew.
    #[arg(long)]
    force: bool,
}

/// A stream, and its consumer.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "as_text")]
    pub(super) stream: NamedStream,
    /// The consumer that was looked for: a name or an ARN.
    pub(super) sought: String,
    /// Absent: the stream has no such consumer.
    pub(super) consumer: Option<RegisteredConsumer>,
    /// The owners of unfinished leases of this stream that live, or may live.
    pub(super) workers: Vec<Reader>,
}

fn as_text<S: serde::Serializer>(stream: &NamedStream, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(stream)
}

impl Found {
    /// The consumer to deregister. Absent: there is none, or Kinesis is about to remove the consumer.
    pub(super) fn step(&self) -> Option<&RegisteredConsumer> {
        self.consumer.as_ref().filter(|consumer| !consumer.is_deleting())
    }
}

/// The end of a deregistration.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Ended {
    pub(super) arn: String,
    pub(super) how: Deregistered,
}

/// The JSON output.
#[derive(Serialize)]
struct EndedConsumers<'a> {
    streams: &'a [Found],
    refused: bool,
    applied: bool,
    done: &'a [Ended],
}

pub(super) async fn run(args: DeregisterArgs) -> Result<Verdict, Failure> {
    let sought = args.consumer()?;
    let table = args.table.open().await?;
    let (is_read, several) = args.several(&table).await?;
    let given = table.streams(&args.stream, several).await?;
    check_streams(&sought, &given)?;
    let mut found = look(&table, given, sought.as_str()).await?;
    let mut refusal = None;
    if found.iter().any(|found| found.step().is_some()) {
        let report = match is_read {
            true => Some(table.watched().await?.1),
            false => None,
        };
        refusal = judge(&mut found, report.as_ref(), &table).filter(|_| !args.force);
    }
    let refused = refusal.is_some();
    let (done, failure) = match args.apply && !refused {
        true => carry_out(&table, &found).await,
        false => (Vec::new(), None),
    };
    let results = EndedConsumers { streams: &found, refused, applied: args.apply && !refused, done: &done };
    exit::show(args.table.json, &results, || told(&found, args.apply, refused, &done))?;
    match (refusal, failure) {
        (Some(why), _) => Err(Failure::under_way(why)),
        (None, Some(failure)) => Err(failure),
        (None, None) => Ok(Verdict::of(done.iter().any(|done| done.how != Deregistered::Gone))),
    }
}

impl DeregisterArgs {
    /// The consumer that is given, or the default of `reader.consumer`.
    fn consumer(&self) -> Result<ConsumerName, Failure> {
        match &self.reader_consumer {
            Some(given) => Ok(given.clone()),
            None => names::consumer(&self.table.application()?).map_err(|error| {
                Failure::unusable(format!("{error}; name the consumer of the workers with --reader-consumer"))
            }),
        }
    }

    /// Whether the lease table can be read, and whether the given streams are of an application of several.
    async fn several(&self, table: &Table) -> Result<(bool, bool), Failure> {
        match table.admin.view().await {
            Ok(view) => Ok((true, table.are_several_in(&self.stream, &view)?)),
            Err(error) if self.force => {
                let said = format!("{error}; nothing tells whether workers live");
                let _ = writeln!(io::stderr(), "warning: {}", Shown(&said));
                Ok((false, streams::are_several(&self.stream)))
            }
            Err(error) => Err(Failure::under_way(format!(
                "{error}; nothing was deregistered, since only the lease table tells whether workers live; say --force if the table was \
                 deleted"
            ))),
        }
    }
}

/// An ARN is of a consumer of one stream.
fn check_streams(sought: &ConsumerName, streams: &[NamedStream]) -> Result<(), Failure> {
    let Some(of) = sought.stream() else {
        return Ok(());
    };
    let name =
        |stream: &NamedStream| stream.id().map_or_else(|| stream.to_string(), |id| id.name().to_owned());
    let names: Vec<String> = streams.iter().map(name).collect();
    match names == [of] {
        true => Ok(()),
        false => Err(Failure::unusable(format!(
            "expected --stream to be {of}, the one stream of the consumer {}, found {}; correct --stream or --reader-consumer",
            sought.as_str(),
            names.join(" and ")
        ))),
    }
}

/// The consumer of each stream. A stream without one is asked a second time, a second later.
async fn look(table: &Table, streams: Vec<NamedStream>, sought: &str) -> Result<Vec<Found>, Failure> {
    let ask = |stream: NamedStream| async move {
        let consumer = table.admin.consumer(&table.clients.kinesis, &stream, sought).await?;
        Ok::<_, Failure>(Found { stream, sought: sought.to_owned(), consumer, workers: Vec::new() })
    };
    let mut found = Vec::new();
    for stream in streams {
        found.push(ask(stream).await?);
    }
    if found.iter().any(|found| found.consumer.is_none()) {
        tokio::time::sleep(APART).await;
    }
    for missing in found.iter_mut().filter(|found| found.consumer.is_none()) {
        *missing = ask(missing.stream.clone()).await?;
    }
    Ok(found)
}

/// Fills in the workers that read each stream; gives the sentence of a refusal. Absent: no such worker has leases of a
/// stream with a consumer to deregister.
fn judge(found: &mut [Found], report: Option<&TableReport>, table: &Table) -> Option<String> {
    let report = report?;
    for found in found.iter_mut().filter(|found| found.step().is_some()) {
        found.workers = at_work(report, found.stream.id());
    }
    refusal(found, report, table.lease_duration.as_millis() / 1_000)
}

/// Why nothing is deregistered.
pub(super) fn refusal(found: &[Found], report: &TableReport, lease_duration: u64) -> Option<String> {
    let mut of_streams = Vec::new();
    for Found { stream, workers, .. } in found.iter().filter(|found| !found.workers.is_empty()) {
        let workers = workers.iter().map(|worker| worker.told(report.watched));
        of_streams.push(format!("{} of {stream}", workers.collect::<Vec<_>>().join(" and ")));
    }
    if of_streams.is_empty() {
        return None;
    }
    let silent = found.iter().flat_map(|found| &found.workers).any(|worker| !worker.alive);
    let longer = match silent {
        true => format!(
            ", or watch for a lease duration, with --watch {lease_duration}, to see whether silent owners live"
        ),
        false => String::new(),
    };
    Some(format!(
        "expected no live owner of unfinished leases, found {}; nothing was deregistered: a worker with `reader.mode` auto or fan-out \
         would register the consumer anew, and the table does not show the mode; stop the workers{longer}; if the workers read by \
         polling alone, say --force",
        of_streams.join(", ")
    ))
}

/// Deregisters one consumer after the other, up to the first failure.
async fn carry_out(table: &Table, found: &[Found]) -> (Vec<Ended>, Option<Failure>) {
    let mut done = Vec::new();
    for found in found {
        let Some(consumer) = found.step() else { continue };
        match table.admin.deregister(&table.clients.kinesis, &found.stream, consumer).await {
            Ok(how) => done.push(Ended { arn: consumer.arn.clone(), how }),
            Err(error) => return (done, Some(error.into())),
        }
    }
    (done, None)
}

/// The consumers found in sentences, with the results.
pub(super) fn told(found: &[Found], apply: bool, refused: bool, done: &[Ended]) -> Text {
    let mut text = Text::default();
    let (mut steps, mut gone) = (0, 0);
    for Found { stream, sought, consumer, workers } in found {
        let Some(RegisteredConsumer { name, arn, status, .. }) = consumer else {
            put_line!(text, "{stream} has no consumer {sought}");
            continue;
        };
        if consumer.as_ref().is_some_and(RegisteredConsumer::is_deleting) {
            put_line!(
                text,
                "leave the consumer {name} of {stream} alone: {arn} was deregistered already, and is {status}"
            );
            continue;
        }
        let how = match done.get(steps).map(|done| &done.how) {
            None => String::new(),
            Some(Deregistered::Gone) => {
                gone += 1;
                ": deregistered".to_owned()
            }
            Some(Deregistered::Remains(status)) => {
                format!(
                    ": deregistered, but Kinesis still describes the consumer as {status}; look again later"
                )
            }
            Some(Deregistered::Anew(arn)) => {
                format!(
                    ": deregistered, but a worker registered {arn} meanwhile; stop the workers, and run this again"
                )
            }
            Some(other) => format!(": {other:?}"),
        };
        steps += 1;
        put_line!(text, "deregister the consumer {name} of {stream}, {arn}, which is {status}{how}");
        for worker in workers {
            put_line!(
                text,
                "    {} owns {}, and may register the consumer anew",
                worker.worker,
                worker.leases()
            );
        }
        put_line!(
            text,
            "    a worker that starts with `reader.mode` auto or fan-out registers a consumer of this name anew"
        );
    }
    let all = counted(steps as u64, "consumer");
    match (apply, steps) {
        (_, 0) => put!(text, "there is nothing to deregister"),
        _ if refused => put!(text, "nothing was deregistered"),
        (false, _) => put!(text, "nothing was deregistered; say --apply to deregister {all}"),
        (true, _) => put!(text, "{gone} of {all} deregistered"),
    }
    text
}

#[cfg(test)]
#[path = "deregister_tests.rs"]
mod tests;
