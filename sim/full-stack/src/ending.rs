//! The conditions at the end of a world.

use crate::stage::{End, Scene};
use leasehold::internals::{TraceReader, replay};
use leasehold_engine::position::Checkpoint;

/// The reason why a healed world is not at rest; absent at rest.
pub fn unrest(scene: &Scene) -> Option<String> {
    let (written, processed) = (scene.records(), scene.ledger.processed);
    if processed < written {
        return Some(format!("{processed} of {written} records were processed"));
    }
    for shard in scene.cloud.stream().shards() {
        let index = shard.index();
        if !shard.is_open() {
            if !scene.ledger.has_ended(index) {
                return Some(format!("the lease of the closed {index} has not ended"));
            }
            continue;
        }
        match scene.ledger.row(&index.to_string()) {
            None => return Some(format!("there is no lease for {index}")),
            Some(row) if row.owner.is_none() => return Some(format!("nobody owns {index}")),
            Some(_) => {}
        }
    }
    None
}

/// Checks a world whose workers were all asked to shut down, in peace, and have had time to.
pub fn check(scene: &mut Scene) {
    let mut wrong = Vec::new();
    let (written, processed) = (scene.records(), scene.ledger.processed);
    if processed != written {
        wrong.push(format!("{processed} of {written} records were processed"));
    }
    for life in &scene.lives {
        match &life.end {
            None => wrong.push(format!("{} did not shut down", life.client)),
            Some(End::Returned(Err(error))) => wrong.push(format!("{} gave up: {error}", life.client)),
            Some(End::Killed | End::Returned(Ok(()))) => {}
        }
    }
    for shard in scene.cloud.stream().shards().filter(|shard| shard.is_open()) {
        let index = shard.index();
        let Some(row) = scene.ledger.row(&index.to_string()) else {
            wrong.push(format!("there is no lease for {index}"));
            continue;
        };
        if let Some(owner) = &row.owner {
            wrong.push(format!("{index} still belongs to {owner} after every shutdown"));
        }
        let covered = match row.checkpoint {
            Checkpoint::At(position) => crate::ledger::index_of(position).unwrap_or(0),
            _ => 0,
        };
        let done = scene.ledger.done(index);
        if covered != done {
            wrong
                .push(format!("{index} was checkpointed at record {covered} of {done} in the last shutdown"));
        }
    }
    scene.ledger.violations.extend(wrong);
}

/// Replays every life's trace through a bare engine; returns the number of replayed inputs.
pub fn replay_all(scene: &mut Scene) -> u64 {
    let mut inputs = 0;
    let mut wrong = Vec::new();
    for life in &scene.lives {
        let text = life.trace.text();
        let client = &life.client;
        match replay(TraceReader::new(text.as_bytes())) {
            Err(error) => wrong.push(format!("the trace of {client} cannot be read: {error}")),
            Ok(report) => {
                inputs += report.inputs;
                if let Some(divergence) = report.divergence {
                    wrong.push(format!(
                        "the replay of {client} diverges at input {}: expected {}, found {}",
                        divergence.input, divergence.expected, divergence.found
                    ));
                }
                if let Some(gap) = report.gap {
                    wrong.push(format!("the trace of {client} has a gap at input {gap}"));
                }
                if report.inputs == 0 {
                    wrong.push(format!("the trace of {client} is empty"));
                }
            }
        }
    }
    scene.ledger.violations.extend(wrong);
    inputs
}
