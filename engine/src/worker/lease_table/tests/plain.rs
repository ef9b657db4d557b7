//! Counting by what is known of plain leases comes to what a look at every lease does.

use crate::format::Format;
use crate::ids::WorkerId;
use crate::position::Checkpoint;
use crate::row::{HandsOver, LeaseRow};
use crate::worker::context::Context;
use crate::worker::lease_table::{Aside, BesideLane, LeaseTable};
use crate::worker::testing::{config, owned, row, running, seconds, shows, stage, table, takes};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a test makes few of them")]
enum Doing {
    /// A row is shown.
    Show(LeaseRow),
    /// A lease is taken; an answer says whether that succeeded.
    Take { key: String, answered: bool },
    /// A row was removed by us.
    Remove(String),
    /// So many seconds pass.
    Pass(u64),
    /// What is known of plain leases is forgotten, with the names of their owners.
    Forget,
}

const WORKERS: [&str; 4] = ["me", "a", "b", "c"];

fn keys() -> impl Strategy<Value = String> {
    (0..10u8).prop_map(|n| format!("shard-{n}"))
}

fn rows() -> impl Strategy<Value = LeaseRow> {
    let worker = || proptest::option::weighted(0.8, proptest::sample::select(&WORKERS[..]));
    let handing = proptest::option::weighted(0.2, proptest::sample::select(&WORKERS[..]));
    let hands_over = proptest::sample::select(&[HandsOver::No, HandsOver::Later, HandsOver::Yes][..]);
    (keys(), worker(), handing, 0..4u64, hands_over, proptest::bool::weighted(0.1)).prop_map(
        |(key, owner, handing, counter, hands_over, ended)| LeaseRow {
            owner: owner.map(Into::into),
            handing_over: handing.filter(|_| owner.is_some()).map(Into::into),
            counter,
            hands_over,
            checkpoint: if ended { Checkpoint::ShardEnd } else { Checkpoint::TrimHorizon },
            ..row(&key)
        },
    )
}

fn doings() -> impl Strategy<Value = Doing> {
    prop_oneof![
        8 => rows().prop_map(Doing::Show),
        2 => (keys(), any::<bool>()).prop_map(|(key, answered)| Doing::Take { key, answered }),
        1 => keys().prop_map(Doing::Remove),
        2 => (1..20u64).prop_map(Doing::Pass),
        1 => Just(Doing::Forget),
    ]
}

fn act(cx: &mut Context, leases: &mut LeaseTable, doing: Doing) {
    match doing {
        Doing::Show(row) => {
            shows(cx, leases, row);
        }
        Doing::Take { key, answered } => {
            let Some(ix) = leases.find(&key) else { return };
            takes(cx, leases, ix, answered);
        }
        Doing::Remove(key) => leases.wrote_beside(cx, &key, BesideLane::Removed),
        Doing::Pass(time) => cx.later(seconds(time)),
        Doing::Forget => leases.plain = Aside::default(),
    }
}

/// All leases by the owners that their rows name, from a look at every row.
fn owned_leases(leases: &LeaseTable) -> BTreeMap<WorkerId, BTreeSet<String>> {
    let mut owned: BTreeMap<WorkerId, BTreeSet<String>> = BTreeMap::new();
    for row in leases.unordered().filter_map(|lease| lease.row()) {
        if let Some(owner) = &row.owner {
            let keys = owned.entry(owner.clone()).or_default();
            keys.insert(row.key.as_str().to_string());
        }
    }
    owned
}

proptest! {
    #[test]
    fn plain_leases_are_counted_as_all_leases_are(
        format in proptest::sample::select(&[Format::Kcl, Format::VmwareGoKcl, Format::Kinsumer][..]),
        doings in proptest::collection::vec(doings(), 0..60),
    ) {
        let mut cx = running(config(format));
        let mut leases = table(&cx);
        for doing in doings {
            act(&mut cx, &mut leases, doing);
            prop_assert_eq!(leases.shares(&cx).balance(), leases.shares(&cx).balance_anew());
            let owned = owned_leases(&leases);
            prop_assert!(leases.owners().names().iter().eq(owned.keys()));
            let by_owner = leases.owners().leases();
            for (owner, keys) in &owned {
                let key = |ix| leases.get(ix).map(|lease| lease.key().as_str().to_string());
                let found: BTreeSet<_> = by_owner[owner].iter().filter_map(|ix| key(*ix)).collect();
                prop_assert_eq!(&found, keys);
                let perhaps: BTreeSet<_> = leases.owners().perhaps_of(owner).filter_map(|(ix, _)| key(ix)).collect();
                prop_assert!(perhaps.is_superset(keys));
            }
        }
    }
}

/// Without this test, the comparison above would hold for an empty table.
#[test]
fn a_lease_of_a_live_other_worker_is_plain_until_that_changes() {
    let (mut cx, mut leases) = stage();
    let plain = |leases: &LeaseTable| 1 - leases.owners().not_plain().count();
    shows(&cx, &mut leases, owned("a", "other", 1));
    assert_eq!(plain(&leases), 0, "its owner was not seen to renew it");
    shows(&cx, &mut leases, owned("a", "other", 2));
    assert_eq!(plain(&leases), 1);
    let handed = LeaseRow { handing_over: Some("other".into()), ..owned("a", "next", 2) };
    shows(&cx, &mut leases, handed);
    assert_eq!(plain(&leases), 0, "it is being handed over");
    shows(&cx, &mut leases, owned("a", "next", 3));
    assert_eq!(plain(&leases), 0, "its next owner was not seen to renew it");
    shows(&cx, &mut leases, owned("a", "next", 4));
    assert_eq!(plain(&leases), 1);
    cx.later(cx.config().lease_duration);
    shows(&cx, &mut leases, owned("a", "next", 4));
    assert_eq!(plain(&leases), 0, "it is expired");
    shows(&cx, &mut leases, owned("a", "next", 5));
    assert_eq!(plain(&leases), 1);
    let ix = leases.find("a").unwrap();
    takes(&mut cx, &mut leases, ix, false);
    assert_eq!(plain(&leases), 0, "it is being taken");
}
