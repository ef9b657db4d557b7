//! Metrics of a real Prometheus exporter: two workers of one name in this process, through a split, a shard stalled
//! at its end, a hanging handler, a loss and a sudden end.

use leasehold::aws::kinesis;
use leasehold::metrics::{ALL, COMMON, Kind, Metric};
use leasehold::{Error, Notice, ReadMode, ReaderConfig};
use leasehold_engine::time::Span;
use leasehold_tests::account::{Account, SHARDS, n, s, text};
use leasehold_tests::local::Refusal;
use leasehold_tests::probe::quick;
use leasehold_tests::wait::until;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const STREAM: &str = "measured";
const APPLICATION: &str = "meters";
const SOON: Duration = Duration::from_secs(60);
const FIRST: &str = SHARDS[0];
const SECOND: &str = SHARDS[1];

const THROTTLED: Refusal = Refusal { code: "ThrottlingException", message: "Rate exceeded" };

/// What the exporter shows of this application: values by name and by labels.
struct Shown(BTreeMap<(String, BTreeMap<String, String>), f64>);

/// The exporter of this process, shared by all its tests.
pub(super) fn exporter() -> &'static PrometheusHandle {
    static EXPORTER: OnceLock<PrometheusHandle> = OnceLock::new();
    EXPORTER.get_or_init(|| {
        PrometheusBuilder::new()
            .idle_timeout(MetricKindMask::GAUGE, Some(Duration::from_secs(5)))
            .set_buckets(&[0.01, 0.1, 1.0, 10.0])
            .expect("buckets")
            .install_recorder()
            .expect("no other recorder in this process")
    })
}

/// The sum of the exported series under this name with these labels; absent: no series.
pub(super) fn exported(name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let is = |of: &BTreeMap<String, String>| {
        let has = |(key, value): &(&str, &str)| of.get(*key).is_some_and(|found| found == value);
        labels.iter().all(has)
    };
    let series = read().into_iter();
    let values: Vec<f64> =
        series.filter(|((found, of), _)| found == name && is(of)).map(|(_, value)| value).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

fn show() -> Shown {
    let mut shown = read();
    shown.retain(|(_, labels), _| labels.get("application").is_some_and(|name| name == APPLICATION));
    Shown(shown)
}

/// All exported values, by name and by labels.
fn read() -> BTreeMap<(String, BTreeMap<String, String>), f64> {
    let text = exporter().render();
    let mut shown = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').expect("labels");
        let labels: BTreeMap<String, String> = labels
            .trim_end_matches('}')
            .split(',')
            .filter_map(|label| label.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
            .collect();
        shown.insert((name.to_owned(), labels), value.parse().expect("a number"));
    }
    shown
}

impl Shown {
    fn series(&self, name: &str) -> impl Iterator<Item = (&BTreeMap<String, String>, f64)> {
        let of_name = self.0.iter().filter(move |((found, _), _)| found == name);
        of_name.map(|((_, labels), value)| (labels, *value))
    }

    fn sum(&self, name: &str) -> f64 {
        self.series(name).map(|(_, value)| value).sum()
    }

    /// The sum of what has this further label.
    fn with(&self, name: &str, label: (&str, &str)) -> f64 {
        let series = self.series(name);
        let with = series.filter(|(labels, _)| labels.get(label.0).is_some_and(|value| value == label.1));
        with.map(|(_, value)| value).sum()
    }

    /// The requests of an operation that ended so.
    fn requests(&self, operation: &str, outcome: &str) -> f64 {
        let series = self.series("leasehold_requests_total");
        let these =
            series.filter(|(labels, _)| labels["operation"] == operation && labels["outcome"] == outcome);
        these.map(|(_, value)| value).sum()
    }

    /// What one worker shows; of one shard, if that is named.
    fn of(&self, name: &str, worker: &str, shard: Option<&str>) -> Option<f64> {
        let mut series = self.series(name).filter(|(labels, _)| {
            labels["worker"] == worker && labels.get("shard").map(String::as_str) == shard
        });
        series.next().map(|(_, value)| value)
    }
}

/// The metric that a series is of. A histogram has series of its own.
pub(super) fn metric(series: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| {
        let rest = series.strip_prefix(metric.name);
        rest.is_some_and(|rest| match metric.kind {
            Kind::Histogram => ["_bucket", "_sum", "_count"].contains(&rest),
            _ => rest.is_empty(),
        })
    })
}

/// Waits until the exporter shows something.
async fn shows(what: &str, is: impl Fn(&Shown) -> bool) {
    until(what, SOON, || async { is(&show()) }).await;
}

struct Rig {
    account: Account,
    /// Whether handlers hang.
    hang: watch::Sender<bool>,
    /// Whether the next call of a handler fails.
    fail: Arc<AtomicBool>,
}

struct Member {
    /// Its name in the lease table.
    name: String,
    run: JoinHandle<Result<leasehold::Report, Error>>,
}

impl Rig {
    async fn new() -> Self {
        let account = Account::start().await;
        account.create(STREAM, 2).await;
        Self { account, hang: watch::Sender::new(false), fail: Arc::default() }
    }

    async fn join(&self) -> Member {
        let (named, mut name) = watch::channel(None);
        let worker = self
            .account
            .worker_of(STREAM, APPLICATION)
            .config(|config| quick(config).with_stall_after(Span::from_secs(1)))
            .on_notice(move |notice| {
                if let Notice::Booted { worker, .. } = notice {
                    let _ = named.send(Some(worker.to_string()));
                }
            })
            .build()
            .expect("a worker");
        let (hang, fail) = (self.hang.subscribe(), self.fail.clone());
        let run = tokio::spawn(worker.run_fn(move |_| {
            let (mut hang, fails) = (hang.clone(), fail.swap(false, Ordering::SeqCst));
            async move {
                let waited = hang.wait_for(|hang| !hang).await;
                let failed = waited.is_err() || fails;
                (!failed).then_some(()).ok_or("the handler fails")
            }
        }));
        let name = name.wait_for(Option::is_some).await.expect("a name").clone();
        let name = name.expect("a name");
        Member { name, run }
    }

    /// Puts so many records into the second shard.
    async fn put(&self, count: usize) {
        let last = u128::MAX.to_string();
        for from in (0..count).step_by(500) {
            let entry = kinesis::types::PutRecordsRequestEntry::builder()
                .partition_key("k")
                .explicit_hash_key(&last)
                .data(b"data".to_vec().into())
                .build()
                .expect("an entry");
            let entries = vec![entry; 500.min(count - from)];
            let put = self.account.kinesis.put_records().stream_name(STREAM);
            let answer = put.set_records(Some(entries)).send().await.expect("records");
            assert_eq!(answer.failed_record_count, Some(0));
        }
    }

    async fn owner(&self, shard: &str) -> String {
        let row = self.account.row(APPLICATION, shard).await.expect("a row");
        text(&row, "leaseOwner").expect("an owner").to_owned()
    }

    /// Writes a new owner into the row, with a grown counter.
    async fn usurp(&self, shard: &str) {
        let expression = "SET leaseOwner = :owner, leaseCounter = leaseCounter + :one";
        let values = [(":owner", s("usurper")), (":one", n("1"))];
        self.account.edit(APPLICATION, shard, expression, &values).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exporter_is_right_through_splits_hangs_losses_and_ends() {
    exporter();
    let rig = Rig::new().await;
    let members = [rig.join().await, rig.join().await];
    let names = members.each_ref().map(|member| member.name.as_str());
    let each_holds = |shown: &Shown, held: f64| {
        names.map(|name| shown.of("leasehold_leases_held", name, None)) == [Some(held); 2]
    };
    shows("one lease held by each", |shown| {
        each_holds(shown, 1.0) && {
            // From the first moment.
            let of_shards = shown.series("leasehold_shard_behind_seconds");
            let mut owners: Vec<&str> = of_shards.map(|(labels, _)| labels["worker"].as_str()).collect();
            owners.sort_unstable();
            owners.windows(2).all(|pair| pair[0] != pair[1]) && owners.len() == 2
        }
    })
    .await;
    rig.put(20).await;
    let processed = "leasehold_processed_records_total";
    shows("20 processed records", |shown| shown.sum(processed) == 20.0).await;
    what_is_counted_is_so(&show());
    a_handler_fails(&rig).await;

    a_shard_stalls_at_its_end(&rig).await;
    a_handler_hangs(&rig).await;
    a_lease_is_lost(&rig, names).await;

    let [dropped, mut left] = members;
    dropped.run.abort();
    let _ = dropped.run.await;
    let after = show();
    for ((name, labels), value) in &after.0 {
        let metric = metric(name).expect("in the table");
        if metric.kind == Kind::Gauge && labels["worker"] == dropped.name {
            assert_eq!(*value, 0.0, "{name} {labels:?} of a worker that was dropped");
        }
    }
    shows("all leases held by the other", |shown| {
        shown.of("leasehold_leases_held", &left.name, None) == Some(3.0)
    })
    .await;
    the_table_is_complete(&show());
    left.run.abort();
    let _ = (&mut left.run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_age_of_records_is_told_by_reader() {
    exporter();
    let rig = Rig::new().await;
    let application = "meters-of-fan-out";
    let worker = rig
        .account
        .worker_of(STREAM, application)
        .config(|config| quick(config).with_reader(ReaderConfig::default().with_mode(ReadMode::FanOut)));
    let run = tokio::spawn(worker.build().expect("a worker").run_fn(|_| async { Ok::<_, String>(()) }));
    rig.put(3).await;
    let count = |reader| {
        let labels = [("application", application), ("reader", reader)];
        exported("leasehold_arrival_to_handler_seconds_count", &labels)
    };
    until("a batch of a subscription", SOON, || async { count("fan-out").is_some() }).await;
    assert_eq!(count("polling"), None);
    let handovers = || exported("leasehold_handover_seconds_count", &[("application", application)]);
    until("both hand-overs", SOON, || async { handovers() == Some(2.0) }).await;
    run.abort();
}

/// After 20 records of 4 bytes, with nothing gone wrong.
fn what_is_counted_is_so(shown: &Shown) {
    assert_eq!(shown.sum("leasehold_processed_bytes_total"), 80.0);
    let batches = shown.with("leasehold_batches_total", ("result", "ok"));
    assert!((1.0..=20.0).contains(&batches), "{batches}");
    assert_eq!(shown.sum("leasehold_batches_total"), batches);
    assert_eq!(shown.sum("leasehold_handler_seconds_count"), batches);
    assert_eq!(shown.with("leasehold_arrival_to_handler_seconds_count", ("reader", "polling")), batches);
    let age = shown.sum("leasehold_arrival_to_handler_seconds_sum") / batches;
    assert!((0.0..10.0).contains(&age), "records {age} s old");
    let handovers = shown.sum("leasehold_handover_seconds_count");
    assert!(handovers >= 2.0, "{handovers} hand-overs of two leases");
    for operation in ["DescribeTable", "Scan", "UpdateItem", "PutItem", "ListShards", "GetRecords"] {
        let count = shown.requests(operation, "ok");
        assert!(count > 0.0, "{operation}");
        let timed = shown.with("leasehold_request_seconds_count", ("operation", operation));
        assert!(timed >= count, "{operation}: {timed} of {count} have a duration");
    }
    let writes = shown.requests("UpdateItem", "ok") + shown.requests("PutItem", "ok");
    let units = shown.sum("leasehold_dynamodb_write_units_total");
    // The units are set once a second, and the rows are smaller than 1 KiB.
    assert!((1.0..=writes + 20.0).contains(&units), "{units} units of {writes} writes");
    assert!(shown.sum("leasehold_dynamodb_read_units_total") > 0.0);
    let (renewals, left) =
        (shown.sum("leasehold_renewal_left_seconds_count"), shown.sum("leasehold_renewal_left_seconds_sum"));
    assert!(renewals > 0.0);
    // A lease lasts for 1.5 s and is renewed every 0.3 s.
    let mean = left / renewals;
    assert!((0.5..1.5).contains(&mean), "{mean} s left of a lease");
    for (labels, used) in shown.series("leasehold_lease_used_ratio") {
        assert!(used > 0.0 && used < 1.0, "{labels:?}: {used}");
    }
    assert_eq!(shown.with("leasehold_notices_total", ("kind", "fenced")), 0.0, "from the beginning");
}

async fn a_handler_fails(rig: &Rig) {
    rig.fail.store(true, Ordering::SeqCst);
    rig.put(1).await;
    shows("a batch that failed and then succeeded", |shown| {
        shown.with("leasehold_batches_total", ("result", "failed")) == 1.0
            && shown.with("leasehold_handler_seconds_count", ("result", "failed")) == 1.0
            && shown.with("leasehold_notices_total", ("kind", "handler-failed")) == 1.0
            && shown.sum("leasehold_processed_records_total") == 21.0
    })
    .await;
}

async fn a_shard_stalls_at_its_end(rig: &Rig) {
    let owner = rig.owner(FIRST).await;
    // The children's leases cannot be created.
    rig.account.local.refuse(|operation| (operation == "DynamoDB_20120810.PutItem").then_some(THROTTLED));
    rig.account.split(STREAM, FIRST, u128::MAX / 4).await;
    shows("a stalled lease", |shown| shown.of("leasehold_leases_stalled", &owner, None) == Some(1.0)).await;
    let shown = show();
    assert!(shown.requests("PutItem", "throttled") > 0.0);
    assert!(shown.with("leasehold_retries_total", ("operation", "PutItem")) > 0.0);
    rig.account.local.refuse_nothing();
    shows("a lease for each of the three open shards, none stalled", |shown| {
        shown.sum("leasehold_leases_held") == 3.0 && shown.sum("leasehold_leases_stalled") == 0.0
    })
    .await;
}

async fn a_handler_hangs(rig: &Rig) {
    let owner = rig.owner(SECOND).await;
    rig.hang.send_replace(true);
    rig.put(1_500).await;
    shows("1,500 records that wait for a handler", |shown| {
        let of_shard = |name| shown.of(name, &owner, Some(SECOND)).unwrap_or(0.0);
        let of_worker = |name| shown.of(name, &owner, None).unwrap_or(0.0);
        of_shard("leasehold_shard_waiting_records") == 1_500.0
            && of_shard("leasehold_shard_behind_seconds") >= 4.0
            && of_worker("leasehold_waiting_records") == 1_500.0
            && of_worker("leasehold_behind_seconds") >= 4.0
    })
    .await;
    let behind = || show().of("leasehold_shard_behind_seconds", &owner, Some(SECOND));
    let before = behind().expect("a shard that is held");
    shows("lag that grows while the handler hangs", |shown| {
        let now = shown.of("leasehold_shard_behind_seconds", &owner, Some(SECOND));
        now.is_some_and(|now| now >= before + 1.5)
    })
    .await;
    // The shard that ended is gone meanwhile.
    shows("nothing of the shard that ended", |shown| {
        let mut labels = shown.0.keys().map(|(_, labels)| labels);
        !labels.any(|labels| labels.get("shard").is_some_and(|shard| shard == FIRST))
    })
    .await;
    rig.hang.send_replace(false);
    shows("no record that waits", |shown| {
        shown.sum("leasehold_waiting_records") == 0.0
            && shown.series("leasehold_behind_seconds").all(|(_, value)| value < 4.0)
    })
    .await;
}

async fn a_lease_is_lost(rig: &Rig, names: [&str; 2]) {
    let owner = rig.owner(SECOND).await;
    let held = |shown: &Shown| names.map(|name| shown.of("leasehold_leases_held", name, None));
    let before = held(&show());
    assert_eq!(before.iter().flatten().sum::<f64>(), 3.0);
    until("one lease less", SOON, || async {
        rig.usurp(SECOND).await;
        let shown = show();
        let waiting = shown.of("leasehold_shard_waiting_records", &owner, Some(SECOND));
        held(&shown).iter().flatten().sum::<f64>() == 2.0 && waiting.unwrap_or(0.0) == 0.0
    })
    .await;
    let refused = show().requests("UpdateItem", "condition-failed");
    assert!(refused > 0.0, "a renewal was refused");
    shows("the lease taken again once it has expired", |shown| {
        held(shown).iter().flatten().sum::<f64>() == 3.0
    })
    .await;
}

/// Every exported metric is in the table, with its labels; and every metric of the table is exported.
fn the_table_is_complete(shown: &Shown) {
    let mut found = BTreeSet::new();
    for (name, labels) in shown.0.keys() {
        let metric = metric(name).unwrap_or_else(|| panic!("{name} is not in the table"));
        let expected: BTreeSet<&str> = COMMON.iter().chain(metric.labels).copied().collect();
        assert_eq!(
            labels.keys().map(String::as_str).filter(|label| *label != "le").collect::<BTreeSet<_>>(),
            expected,
            "{name}"
        );
        assert_eq!(labels["stream"], STREAM);
        found.insert(metric.name);
    }
    let all: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
    let missing: Vec<&str> = all.difference(&found).copied().collect();
    // Nothing was given up here; the unit tests see that it is set.
    assert!(missing.is_empty() || missing == ["leasehold_commands_given_up_total"], "not shown: {missing:?}");
}
