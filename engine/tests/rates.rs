//! Scenes of what is done at most so often, or so many at a time.

use crate::rig::{Rig, Trick};
use leasehold_engine::notice::{Fatal, Notice};
use leasehold_engine::output::*;
use leasehold_engine::time::Wall;

fn sent(rig: &Rig, worker: usize, what: impl Fn(&Effect) -> bool) -> usize {
    let sent = rig.workers[worker].sent.iter();
    sent.filter(|(_, effect)| what(effect)).count()
}

/// Found by simulation: whoever reads nothing for as long as a stream is gone went on with another of the same name.
#[test]
fn a_stream_made_anew_is_noticed_though_no_read_tells_of_it() {
    let mut rig = Rig::new(2, 1);
    rig.secs(20);
    let reads = |effect: &Effect| matches!(effect, Effect::Stream(StreamOp::GetRecords { .. }));
    rig.workers[0].trap = Some(Box::new(move |effect| reads(effect).then_some(Trick::Hang)));
    rig.secs(2);
    rig.stream_created = Some(Wall(99));
    rig.secs(90);
    let notices = &rig.workers[0].notices;
    let gone = notices
        .iter()
        .any(|(_, notice)| matches!(notice, Notice::Fatal(Fatal::StreamGone { .. })));
    assert!(gone, "{notices:?}");
}

#[test]
fn a_fleet_looks_at_its_stream_about_once_a_minute() {
    for workers in [1, 4] {
        let mut rig = Rig::new(4, workers);
        rig.secs(1_800);
        let looks = |effect: &Effect| matches!(effect, Effect::Stream(StreamOp::Describe));
        let looks: usize = (0..workers as usize).map(|w| sent(&rig, w, looks)).sum();
        assert!((20..=31 + workers as usize).contains(&looks), "{looks}");
    }
}
