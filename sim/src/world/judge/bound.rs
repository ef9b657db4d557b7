//! Bounds on the time after the faults.

use crate::oracles::ShardNo;
use crate::peers::{CLAIM_TIMEOUT_US, KCL_LOCK_PERIOD_US, KCL_LOCK_US};
use crate::world::context::Context;
use crate::world::services::Services;
use leasehold_engine::config::{Config, TABLE_PATIENCE};
use leasehold_engine::fleet::{REPORT_INTERVAL, WORKER_EXPIRY};
use leasehold_engine::policy::Assign;
use leasehold_engine::time::Span;

/// The longest time until all is well, from the configuration: generous but finite.
pub(super) fn bound(cx: &Context, services: &Services) -> u64 {
    let plan = cx.plan();
    let (faults, load) = (&plan.faults, &plan.load);
    let most = |of: fn(&Config) -> Span| plan.most(of).0;
    let rows = rows_at_most(services);
    let page_of = |limit: u32| if limit == 0 { rows } else { u64::from(limit) };
    let round_trip = 2 * faults.call.latency_us;
    let table_timeout = most(|config| config.table_timeout());
    let stream_timeout = most(|config| config.stream_timeout());
    let retry_max = most(|config| config.retry_max());
    let scan = most(|config| config.scan_interval()) + pages(cx, services) + table_timeout;
    let list = (rows / page_of(faults.stream.list_page) + 2) * round_trip + stream_timeout;
    // A lease changes hands: workers see the lease idle, a worker takes the lease, and the lease settles.
    let take = 3 * plan.config.lease_duration().0 + 3 * scan + 2 * retry_max + table_timeout;
    // The fleet misses members, another worker leads and shares the shards out; then the shards change hands.
    let round = most(|config| config.members().check_interval()) + 5 * round_trip + table_timeout + retry_max;
    let turns = match plan.config.policies().assign {
        Assign::Rank => {
            let members = plan.config.members();
            let lead = members.lead_expiry().0 + 2 * members.lead_interval().0;
            members.expiry().0 + lead + list + 5 * round
        }
        _ => 0,
    };
    let (led, assigned) = led(cx);
    let take = take + turns + assigned + spared(cx);
    // Workers notice, plan and create missing leases.
    let confidence = u64::from(plan.most(|config| config.audit_confidence()));
    let sync = (confidence + 3) * scan + list + rows * round_trip + most(|config| config.bootstrap_delay());
    let application = &faults.application;
    let max_records = u64::from(plan.least(|config| config.reader().max_records()).max(1));
    let batches = |records: u64| records / max_records + 2;
    let pace = most(|config| config.reader().min_interval().max(config.reader().idle_interval()))
        + application.batch_us
        + round_trip;
    let longest =
        (0..services.shards().len() as ShardNo).map(|shard| services.records(cx, shard)).max().unwrap_or(0);
    let rate = plan.least(|config| config.reader().bytes_per_second()).max(1);
    // No read requests more than a second of bytes, and a crowded shard is read half as fast.
    let seconds = longest * u64::from(load.bytes) / rate + 1;
    let read = (batches(longest) + seconds) * pace
        + 2 * seconds * 1_000_000
        + line(cx, services)
        + stream_timeout
        + most(|config| config.handler_backoff());
    let generation = take + sync + read + most(|config| config.checkpoint_interval()) + 4 * retry_max;
    // One steal after a scan, if necessary for every lease.
    let balance = match plan.config.policies().assign {
        Assign::Count => rows * scan / u64::from(plan.least(|config| config.max_steals()).max(1)),
        _ => 0,
    };
    let stuck = most(|config| config.shutdown_timeout())
        + faults.worst_handler().0
        + faults.longest_shard_pause()
        + blocked_for_ever(cx)
        + 20_000_000;
    // A worker may have been waiting for a table just deleted.
    let patience = match cx.is_lost_for_good() {
        true => 2 * TABLE_PATIENCE.0,
        false => 0,
    };
    let told = told_of_spoiled(cx, sync);
    let waits = patience + claimed(cx) + led + told;
    (services.depth() + 2) * generation + balance + stuck + waits + quiet(cx, services)
}

/// The time for which workers of vmware-go-kcl-v2 leave an expired lease to the worker that claimed the lease.
fn claimed(cx: &Context) -> u64 {
    if cx.plan().fleet.stealing { CLAIM_TIMEOUT_US } else { 0 }
}

/// After the table has throttled, each owner has the time for one renewal, and the same time passes until a worker is
/// fast.
fn spared(cx: &Context) -> u64 {
    let plan = cx.plan();
    match plan.faults.storm.storms.is_empty() {
        true => 0,
        false => 3 * plan.most(|config| config.renew_interval()).0,
    }
}

/// The time for which a worker with handlers blocked for ever keeps its leases. The time doubles each time the worker
/// lets go of its leases.
fn blocked_for_ever(cx: &Context) -> u64 {
    let plan = cx.plan();
    let (blocks, _) = plan.faults.process.blocks();
    let gives_up = plan.most(|config| config.give_up_after()).0 << blocks.min(7);
    match plan.faults.process.blocked_for_ever {
        true => gives_up + 2 * plan.config.lease_duration().0,
        false => 0,
    }
}

/// The time until a worker reports a spoiled row: the evidence is listings that are apart in time. Then an operator
/// mends the row.
fn told_of_spoiled(cx: &Context, sync: u64) -> u64 {
    let edits = &cx.plan().faults.table.edits;
    match edits.iter().any(|edit| edit.kind.spoils()) {
        true => 6 * cx.plan().most(|config| config.stream_lag()).0 + 3 * sync,
        false => 0,
    }
}

/// The additional time over narrow lines: one worker reads all records, and now and then requests an answer too long
/// for the line.
fn line(cx: &Context, services: &Services) -> u64 {
    let plan = cx.plan();
    let line = plan.faults.line;
    if !line.is_narrow() {
        return 0;
    }
    let shards = 0..services.shards().len() as ShardNo;
    let records: u64 = shards.map(|shard| services.records(cx, shard)).sum();
    let patience = plan.most(|config| config.stream_timeout() + config.retry_max()).0;
    4 * line.takes(records * u64::from(plan.load.bytes)) + 20 * patience
}

/// The additional time in a fleet of version 3 of the Java KCL: once, until a leader knows the live workers; and each
/// time that leases change hands.
fn led(cx: &Context) -> (u64, u64) {
    if !cx.plan().fleet.is_led() {
        return (0, 0);
    }
    // The lock of a dead leader expires, workers look at the lock now and then, and reports of dead workers expire.
    let lock = KCL_LOCK_US + 3 * KCL_LOCK_PERIOD_US + WORKER_EXPIRY.0 + REPORT_INTERVAL.0;
    // Every second round replaces dead owners. Every third round moves leases, and their owners have time to hand them
    // over. Workers look for their assigned leases, and for ended parents.
    let lease = cx.plan().config.lease_duration().0;
    let rounds = 3 * (2 * lease);
    let hand_over = 30_000_000 + lease;
    (lock, rounds + hand_over + lease + 12_000_000)
}

fn rows_at_most(services: &Services) -> u64 {
    let shards = services.shards().iter();
    shards.filter(|family| family.exists()).count() as u64 + 20
}

/// The time for the pages of a scan.
fn pages(cx: &Context, services: &Services) -> u64 {
    let (call, table) = (&cx.plan().faults.call, &cx.plan().faults.table);
    let rows = rows_at_most(services);
    let page_of = |limit: u32| if limit == 0 { rows } else { u64::from(limit) };
    let page = cx.plan().least(|config| page_of(config.scan_page_limit())).min(page_of(table.tiny_page));
    (rows / page + 2) * (2 * call.latency_us + table.slow_page_us)
}

/// The time without any move.
pub(super) fn quiet(cx: &Context, services: &Services) -> u64 {
    let listings = match cx.plan().config.policies().assign {
        // A leader lists shards all the time; a listing begun earlier by another worker must be over.
        Assign::Rank => 2 * cx.plan().most(|config| config.stream_timeout()).0,
        _ => 0,
    };
    // Workers look at corrected hash keys again after this time.
    let looks = match services.has_moved_border() {
        true => 2 * cx.plan().least(|config| config.scan_interval()).0,
        false => 0,
    };
    let scan = cx.plan().most(|config| config.scan_interval()).0 + pages(cx, services);
    3 * scan + 2 * cx.plan().config.lease_duration().0 + listings + looks
}
