//! Limits of scenarios: values beyond would be a slip of the pen, or run for ever.

use crate::faults::{Chance, InterruptionKind, WallAfter};
use crate::swarm::Plan;
use leasehold_engine::aggregate::Misplaced;

const DAY_US: u64 = 86_400_000_000;

/// Limits of aggregated records.
fn aggregates(plan: &Plan) -> Result<(), String> {
    let aggregates = &plan.faults.aggregates;
    let name = "faults.aggregates";
    for (option, value, low, high) in [
        ("aggregated", aggregates.aggregated.into(), 0, 1_000),
        ("parts", aggregates.parts.into(), 1, 100),
        ("map_kept (in us)", aggregates.map_us, 1_000, DAY_US),
    ] {
        if !(low..=high).contains(&value) {
            return Err(format!("`{name}.{option}`: expected {low} to {high}, found {value}"));
        }
    }
    if aggregates.misplaced == Misplaced::DeadLetter {
        return Err(format!(
            "`{name}.misplaced`: expected drop, drop-whole or keep, since applications here have no sink, found dead-letter"
        ));
    }
    if aggregates.is_on() && plan.has_others() {
        return Err(format!(
            "`{name}.aggregated`: expected 0 with a fleet of other programs, whose models take no records apart, found {}",
            aggregates.aggregated
        ));
    }
    Ok(())
}

/// The first thing that is out of range, as a sentence.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let within = |name: &str, value: u64, low: u64, high: u64| {
        if (low..=high).contains(&value) {
            Ok(())
        } else {
            Err(format!("`{name}`: expected {low} to {high}, found {value}"))
        }
    };
    let span = |name: &str, us: u64| {
        if us <= DAY_US {
            Ok(())
        } else {
            let found = crate::span::show(us);
            Err(format!("`{name}`: expected no more than 24 h, found \"{found}\""))
        }
    };
    let of_worker = |name: &str, worker: u64| {
        let workers = plan.workers;
        if worker < u64::from(workers) {
            Ok(())
        } else {
            Err(format!(
                "`{name}`: expected a worker below {workers}, since there are {workers}, found {worker}"
            ))
        }
    };
    let rate = |name: &str, per_mille: u32| within(name, per_mille.into(), 0, 1_000);
    within("workers", plan.workers.into(), 1, 100)?;
    within("shards", plan.shards.into(), 1, 10_000)?;
    within("streams", plan.streams.into(), 1, crate::streams::MOST.into())?;
    if !plan.shards.is_multiple_of(plan.streams) {
        return Err(format!(
            "`shards`: expected as many for each of {} streams, found {}",
            plan.streams, plan.shards
        ));
    }
    if plan.streams > 1 && (plan.start.is_some() || plan.has_others()) {
        return Err("`streams`: expected 1 with `start` or a fleet of other programs, found more".to_owned());
    }
    plan.fleet.check(plan.format)?;
    if let Some(start) = &plan.start {
        start.check(plan.format).map_err(|error| format!("`start`: {error}"))?;
        let shards = start.shards.len() as u64;
        within("shards", plan.shards.into(), shards, shards)?;
    }
    span("faults_last", plan.fault_us)?;
    plan.config.check().map_err(|error| format!("in `config`: {error}"))?;

    if let Some(upgraded) = &plan.upgraded {
        upgraded.check().map_err(|error| format!("in `upgraded`: {error}"))?;
        if let Some(option) = plan.config.disagreement(upgraded) {
            return Err(format!(
                "`upgraded.{option}`: expected what `config` says, since a fleet promises it each other, found something else"
            ));
        }
    }
    for turn in &plan.faults.upgrade.turns {
        of_worker("faults.upgrade.turns.worker", turn.worker.into())?;
        span("faults.upgrade.turns.at", turn.at)?;
        span("faults.upgrade.turns.gap", turn.gap_us)?;
    }

    let load = &plan.load;
    within("load.before", load.before.into(), 0, 1_000_000)?;
    within("load.every (in us)", load.every_us, 1_000, DAY_US)?;
    within("load.burst", load.burst.into(), 0, 100_000)?;
    within("load.bytes", load.bytes.into(), 1, 32_768)?;

    aggregates(plan)?;
    let call = &plan.faults.call;
    for (name, us) in [
        ("latency", call.latency_us),
        ("slow_by", call.slow_us),
        ("late_by", call.late_us),
        ("weather", call.weather_us),
    ] {
        span(&format!("faults.call.{name}"), us)?;
    }
    for (name, per_mille) in [
        ("slow", call.slow),
        ("lost_request", call.lost_request),
        ("lost_answer", call.lost_answer),
        ("late", call.late),
        ("throttled", call.throttled),
        ("server_error", call.server_error),
        ("twice", call.twice),
        ("not_sent", call.not_sent),
        ("garbled", call.garbled),
    ] {
        rate(&format!("faults.call.{name}"), per_mille)?;
    }
    rate("faults.replica.not_found", plan.faults.replica.not_found)?;
    rate("faults.replica.wrong", plan.faults.replica.wrong)?;
    rate("faults.misread.wrong", plan.faults.misread.wrong)?;
    let width = plan.faults.line.bytes_per_second;
    within("faults.line.bytes_per_second", width, 0, 1 << 40)?;
    rate("faults.replica.end_claimed", plan.faults.replica.end_claimed)?;
    rate("faults.outage.now", plan.faults.outage.now)?;
    span("faults.outage.now_for", plan.faults.outage.now_us)?;
    for outage in &plan.faults.outage.outages {
        of_worker("faults.outage.outages.worker", outage.worker.into())?;
        span("faults.outage.outages.until", outage.until)?;
    }
    for storm in &plan.faults.storm.storms {
        span("faults.storm.storms.until", storm.until)?;
        rate("faults.storm.storms.throttled", storm.throttled)?;
    }
    for failing in &plan.faults.storm.failing {
        span("faults.storm.failing.until", failing.until)?;
        rate("faults.storm.failing.failed", failing.failed)?;
    }
    let of_stream = |name: &str, stream: u32| {
        let streams = plan.streams;
        if stream < streams && streams > 1 {
            Ok(())
        } else {
            Err(format!(
                "`{name}`: expected one of several streams, found {stream} where there are {streams}"
            ))
        }
    };
    for absence in &plan.faults.several.absences {
        of_worker("faults.several.absences.worker", absence.worker.into())?;
        of_stream("faults.several.absences.stream", absence.stream)?;
        span("faults.several.absences.until", absence.until.max(absence.at))?;
    }
    for trouble in &plan.faults.several.troubles {
        of_stream("faults.several.troubles.stream", trouble.stream)?;
        span("faults.several.troubles.until", trouble.until.max(trouble.from))?;
    }
    for silence in &plan.faults.start.silences {
        span("faults.start.silences.until", silence.until.max(silence.from))?;
    }
    let process = &plan.faults.process;
    for interruption in &process.interruptions {
        let name = "faults.process.interruptions";
        of_worker(&format!("{name}.worker"), interruption.worker.into())?;
        span(&format!("{name}.at"), interruption.at)?;
        match interruption.kind {
            InterruptionKind::Crash { down_us, loops } => {
                span(&format!("{name}.kind.crash.down"), down_us)?;
                within(&format!("{name}.kind.crash.loops"), loops.into(), 0, 100)?;
            }
            InterruptionKind::Pause { us } => span(&format!("{name}.kind.pause.for"), us)?,
            InterruptionKind::Block { us } => span(&format!("{name}.kind.block.for"), us)?,
            InterruptionKind::Replace { gap_us } => span(&format!("{name}.kind.replace.gap"), gap_us)?,
        }
    }
    rate("faults.process.crash_on_write", process.crash_on_write)?;
    rate("faults.process.crash_on_take", process.crash_on_take)?;
    rate("faults.process.pause_on_answer", process.pause_on_answer)?;
    rate("faults.process.stop_on_take", process.stop_on_take)?;
    span("faults.process.pause", process.pause_us)?;
    let peers = &plan.faults.peers;
    rate("faults.peers.other_moves", peers.other_moves)?;
    rate("faults.peers.other_dawdles", peers.other_dawdles)?;
    span("faults.peers.gap", peers.gap_us.max(peers.dawdle_us))?;
    let clock = &plan.faults.clock;
    within("how many faults.clock.rate_ppm", clock.rate_ppm.len() as u64, 0, 100)?;
    for ppm in &clock.rate_ppm {
        within("faults.clock.rate_ppm (its size)", ppm.unsigned_abs(), 0, 500_000)?;
    }
    for step in &clock.steps {
        of_worker("faults.clock.steps.worker", step.worker.into())?;
        span("faults.clock.steps.at", step.at)?;
        let years = step.by_ms.unsigned_abs() / (365 * 86_400_000);
        within("faults.clock.steps.by (in years)", years, 0, 100)?;
    }
    for suspension in &plan.faults.suspension.suspensions {
        of_worker("faults.suspension.suspensions.worker", suspension.worker.into())?;
        span("faults.suspension.suspensions.at", suspension.at)?;
        span("faults.suspension.suspensions.for", suspension.us)?;
        if let WallAfter::Late { us } = suspension.wall {
            span("faults.suspension.suspensions.wall.late.by", us)?;
        }
    }
    let table = &plan.faults.table;
    span_ms("faults.table.create", table.create_ms)?;
    rate("faults.table.stale", table.stale)?;
    span("faults.table.stale_by", table.stale_us)?;
    span("faults.table.slow_page", table.slow_page_us)?;
    rate("faults.table.hand_over_on_take", table.hand_over_on_take)?;
    for edit in &table.edits {
        span("faults.table.edits.at", edit.at)?;
    }
    let stream = &plan.faults.stream;
    for (name, ms) in [
        ("update", stream.update_ms),
        ("list_lag", stream.list_lag_ms),
        ("iterator_expiry", stream.iterator_expiry_ms),
        ("token_expiry", stream.token_expiry_ms),
    ] {
        span_ms(&format!("faults.stream.{name}"), ms)?;
    }
    for reshard in &stream.reshards {
        span("faults.stream.reshards.at", reshard.at)?;
    }
    for trim in &stream.trims {
        span("faults.stream.trims.at", trim.at)?;
        span("faults.stream.trims.keep", trim.keep)?;
    }
    if let Some(loss) = &plan.faults.permanent_loss {
        span("faults.permanent_loss.at", loss.at)?;
    }
    rate("faults.stream.read_throttled", stream.read_throttled)?;
    rate("faults.stream.empty_read", stream.empty_read)?;
    let application = &plan.faults.application;
    for (name, us) in [
        ("batch", application.batch_us),
        ("slow_by", application.slow_us),
        ("hang_for", application.hang_us),
        ("wait_for", application.wait_us),
        ("deaf_for", application.deaf_us),
        ("pause_for", application.pause_us),
        ("abort", application.abort_us),
    ] {
        span(&format!("faults.application.{name}"), us)?;
    }
    for (name, per_mille) in [
        ("slow", application.slow),
        ("fails", application.fails),
        ("hangs", application.hangs),
        ("partial", application.partial),
        ("checkpoint", application.checkpoint),
        ("stale_call", application.stale_call),
        ("waits", application.waits),
        ("deaf", application.deaf),
        ("says_again", application.says_again),
        ("pauses", application.pauses),
        ("keeps", application.keeps),
        ("gives_back", application.gives_back),
        ("poison", application.poison),
    ] {
        rate(&format!("faults.application.{name}"), per_mille)?;
    }
    for fault in plan.faults.request_faults.iter().flatten() {
        let us = match fault.fault {
            Chance::Slow { request_us, answer_us } => request_us.max(answer_us),
            Chance::Late { by_us, .. } | Chance::Stale { by_us } | Chance::HandlerSlow { by_us } => by_us,
            Chance::Twice { after_us, .. } => after_us,
            Chance::Pause { for_us }
            | Chance::OtherDawdles { for_us }
            | Chance::HandlerHangs { for_us }
            | Chance::HandlerWaits { for_us }
            | Chance::HandlerDeaf { for_us }
            | Chance::ShardPaused { for_us }
            | Chance::Cut { for_us }
            | Chance::Replica { for_us, .. }
            | Chance::PartialList { for_us, .. } => for_us,
            Chance::Crash { after_us, down_us } => after_us.max(down_us),
            Chance::HandOver { after_us, cut_us, .. } => after_us.max(cut_us),
            Chance::Stop { after_us, gap_us } | Chance::OtherMoves { after_us, gap_us, .. } => {
                after_us.max(gap_us)
            }
            _ => 0,
        };
        span(&format!("faults.request_faults, on \"{}\"", fault.on), us)?;
    }
    Ok(())
}

fn span_ms(name: &str, ms: i64) -> Result<(), String> {
    if (0..=86_400_000).contains(&ms) {
        Ok(())
    } else {
        Err(format!("`{name}`: expected 0 to 24 h, found {ms} ms"))
    }
}
