//! Tests of draws over many seeds.

use super::*;

#[test]
fn every_drawn_configuration_is_accepted() {
    for seed in 0..5_000 {
        let plan = Plan::draw(seed);
        for config in plan.configs() {
            assert_eq!(config.check(), Ok(()), "seed {seed}");
        }
        assert!(plan.workers >= 1 && plan.shards >= 1);
    }
}

#[test]
fn every_format_accepts_what_is_drawn() {
    for (seed, format) in (0..400).flat_map(|seed| Format::ALL.map(|format| (seed, format))) {
        let plan = Plan::draw(seed).with_format(format);
        for config in plan.configs() {
            assert_eq!(config.check(), Ok(()), "seed {seed}, {format}");
        }
        assert_eq!(plan.clone().with_format(format), plan);
    }
}

#[test]
fn now_and_then_a_world_has_more_shards_than_a_page() {
    let wide: Vec<u64> = (0..15_000).filter(|&seed| Plan::draw(seed).shards == WIDE).collect();
    assert!((3..25).contains(&wide.len()), "{wide:?}");
}

#[test]
fn bounds_are_those_of_the_worse_configuration() {
    let mut plan = Plan::draw(0);
    let renewals = |seconds| Config::default().with_renew_interval(Span::from_secs(seconds));
    (plan.config, plan.upgraded) = (renewals(2), None);
    assert_eq!(plan.most(|config| config.renew_interval()), Span::from_secs(2));
    plan.upgraded = Some(renewals(3));
    assert_eq!(plan.most(|config| config.renew_interval()), Span::from_secs(3));
    plan.upgraded = Some(renewals(1));
    assert_eq!(plan.most(|config| config.renew_interval()), Span::from_secs(2));
    assert_eq!(plan.least(|config| config.renew_interval()), Span::from_secs(1));
}

#[test]
fn an_upgrade_keeps_what_a_fleet_promises_each_other() {
    let mut upgrades = 0;
    for seed in 0..2_000 {
        let plan = Plan::draw(seed);
        assert_eq!(plan.upgraded.is_some(), !plan.faults.upgrade.turns.is_empty());
        let Some(upgraded) = &plan.upgraded else { continue };
        upgrades += 1;
        assert_eq!(plan.config.disagreement(upgraded), None, "seed {seed}");
        assert_ne!(plan.config, *upgraded, "seed {seed}");
    }
    assert!((400..600).contains(&upgrades), "{upgrades} of 2000");
}

#[test]
fn every_family_is_on_in_about_half_of_the_worlds() {
    let on =
        |count: &dyn Fn(&Faults) -> bool| (0..1_000).filter(|&seed| count(&Plan::draw(seed).faults)).count();
    type Family<'a> = (&'a str, &'a dyn Fn(&Faults) -> bool);
    let families: [Family<'_>; 9] = [
        ("lost answer", &|f| f.call.lost_answer > 0),
        ("late", &|f| f.call.late > 0),
        ("outage at a moment that matters", &|f| f.outage.now > 0),
        ("storm", &|f| !f.storm.storms.is_empty()),
        ("stale", &|f| f.table.stale > 0),
        // Worlds whose stream changes during the table's first fill are counted in addition.
        ("reshard", &|f| f.stream.reshards.iter().any(|reshard| reshard.at >= 5_000_000)),
        ("interruptions on write", &|f| f.process.crash_on_write > 0),
        ("rate", &|f| !f.clock.rate_ppm.is_empty()),
        ("handler fails", &|f| f.application.fails > 0),
    ];
    for (name, family) in families {
        let count = on(family);
        assert!((430..570).contains(&count), "{name}: {count} of 1000");
    }
    let takes = on(&|faults| faults.process.crash_on_take > 0);
    assert!((360..470).contains(&takes), "four of ten have crashes during takes: {takes} of 1000");
}
