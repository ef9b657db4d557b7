//! The options of members of a fleet of KCL 3.x, in scenes.

use crate::kcl3::{JAVA, java_lives, of_3x, report_of};
use crate::rig::*;
use leasehold_engine::config::{AssignBy, FleetConfig};
use leasehold_engine::time::Span;

fn joined(shards: u32, options: FleetConfig) -> Rig {
    let mut rig = of_3x(shards);
    rig.configure(|config| config.with_fleet(options));
    rig.join();
    rig
}

/// Two leases each, and of one of the Java worker's a lot is read.
#[test]
fn a_leader_shares_out_by_load_or_by_number() {
    for (assign_by, moved) in [(AssignBy::Load, 1), (AssignBy::Number, 0)] {
        let mut rig = joined(4, FleetConfig::default().with_assign_by(assign_by));
        java_lives(&mut rig, 50);
        let ours = rig[0].me();
        for n in 0..4 {
            let owner = if n < 2 { JAVA.into() } else { ours.clone() };
            if rig.row(n).owner.as_ref() != Some(&owner) {
                rig.give(n, owner);
            }
            rig.row_mut(n).throughput = Some(if n == 0 { 90_000_000 } else { 1_000_000 });
        }
        java_lives(&mut rig, 60);
        let moving = (0..4).filter(|n| rig.row(*n).handing_over == Some(JAVA.into()));
        assert_eq!(moving.count(), moved, "{assign_by:?}");
    }
}

#[test]
fn a_member_reports_as_often_as_the_option_says() {
    let mut rig = joined(1, FleetConfig::default().with_report_interval(Span::from_secs(10)));
    let mut told = Vec::new();
    for _ in 0..60 {
        java_lives(&mut rig, 1);
        let at = report_of(&rig, 0).and_then(|item| item["lut"].as_n()?.parse::<u64>().ok());
        told.extend(at.filter(|at| told.last() != Some(at)));
    }
    let pauses: Vec<u64> = told.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.len() >= 5 && pauses.iter().all(|pause| (9..=11).contains(pause)), "{told:?}");
}
