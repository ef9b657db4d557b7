//! What the crash of a worker of ours costs beside workers of KCL 3, all at their defaults, ten shards a worker. The
//! test prints tables by the leader and by the time of the restart. A shard gets a record each second, so that a time is
//! too long by a second at most.

use super::led::{ASSIGNED, Tables};
use crate::interop::fleet::{Fleet, program};
use leasehold_tests::history::{Cause, Handover};
use leasehold_tests::kcl_java::{Kcl, Program};
use leasehold_tests::member::Member;
use leasehold_tests::wait::{until, until_or};
use std::collections::BTreeSet;
use std::time::Duration;

/// KCL's leader balances the leases every third minute.
const SETTLES: Duration = Duration::from_secs(420);
/// A leader of KCL that died is missed after 140 s.
const READ_AGAIN: Duration = Duration::from_secs(240);
const QUIET: Duration = Duration::from_secs(20);

#[derive(Clone, Copy)]
enum Leads {
    Kcl,
    Ours,
}

/// When the killed worker starts again.
const RESTARTS: [(&str, Option<u64>); 3] = [("at once", Some(0)), ("after 5 s", Some(5)), ("never", None)];

struct Crash {
    test: &'static str,
    /// The number of workers of ours, and of KCL.
    each: usize,
    leads: Leads,
    restart: Option<u64>,
}

impl Crash {
    /// Starts the fleet; gives workers of ours, and workers of KCL.
    async fn start(&self, fleet: &Fleet, program: &Program) -> (Vec<Member>, Vec<Member>) {
        let ours = || (0..self.each).map(|number| fleet.ours_with(&format!("w{number}"), &[])).collect();
        let theirs = |from: usize| {
            (from..self.each).map(|number| fleet.theirs_by_default(program, &format!("k{number}"))).collect()
        };
        match self.leads {
            Leads::Kcl => {
                let mut kcl = vec![fleet.theirs_by_default(program, "k0")];
                Tables::One.until_leads(fleet, &["k0"], SETTLES).await;
                let later: Vec<Member> = theirs(1);
                kcl.extend(later);
                (ours(), kcl)
            }
            Leads::Ours => {
                // Its lock is short, and workers of KCL look for a lock every 40 s.
                let mut first = fleet.theirs(program, "first", ASSIGNED);
                Tables::One.until_leads(fleet, &["first"], SETTLES).await;
                let ours: Vec<Member> = ours();
                let kcl = theirs(0);
                for who in ["w0", "k0"] {
                    Tables::One.until_reports(fleet, who).await;
                }
                fleet.kill(&mut first);
                Tables::One.until_leads(fleet, &["w"], SETTLES).await;
                (ours, kcl)
            }
        }
    }

    /// The longest standstill of a shard of the killed worker.
    async fn standstill(self, program: &Program) -> Duration {
        let shards = 20 * self.each;
        let (fleet, producer) = Fleet::with_shards(self.test, shards as i32).await;
        let (mut ours, kcl) = self.start(&fleet, program).await;
        let workers: BTreeSet<String> = ours.iter().chain(&kcl).map(|worker| worker.name.clone()).collect();
        until(&format!("{}: each worker to have leases", self.test), SETTLES, || async {
            let ledger = fleet.watch.ledger();
            let leases = ledger.now();
            let owners: BTreeSet<String> = leases.values().map(|lease| lease.holder().to_owned()).collect();
            leases.len() == shards && owners == workers && leases.values().all(|lease| lease.from.is_none())
        })
        .await;
        tokio::time::sleep(QUIET).await;
        let victim = match self.leads {
            Leads::Kcl => 0,
            Leads::Ours => {
                let leader = Tables::One.leader(&fleet).await.unwrap_or_default();
                let leads = |worker: &Member| leader.starts_with(&worker.name);
                ours.iter().position(leads).unwrap_or_else(|| panic!("{}: {leader} leads", self.test))
            }
        };
        let mut victim = ours.swap_remove(victim);
        let read = shards_of(&fleet, &victim.name);
        fleet.kill(&mut victim);
        if let Some(seconds) = self.restart {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            ours.push(fleet.ours_with(&format!("{}-again", victim.name), &[]));
        }
        let moved = || from(&fleet, &victim.name);
        let left = || {
            let moved: BTreeSet<String> = moved().into_iter().map(|moved| moved.shard).collect();
            format!("nobody reads {:?}", read.difference(&moved).collect::<Vec<_>>())
        };
        let all = || async { moved().len() >= read.len() };
        until_or(&format!("{}: all its shards to be read", self.test), READ_AGAIN, all, left).await;
        let longest =
            moved().iter().map(|moved| moved.standstill).max().expect("shards of the killed worker");
        println!("{}: {} shards, {:.1} s", self.test, read.len(), longest.as_secs_f64());
        ours.extend(kcl);
        fleet.finish(producer, ours).await;
        longest
    }
}

/// The shards of a worker that records come from.
fn shards_of(fleet: &Fleet, worker: &str) -> BTreeSet<String> {
    let read: BTreeSet<String> = fleet.watch.seen().into_iter().map(|seen| seen.record.shard).collect();
    let ledger = fleet.watch.ledger();
    let owned = ledger.now().into_iter().filter(|(_, lease)| lease.holder() == worker);
    owned.map(|(shard, _)| shard.to_owned()).filter(|shard| read.contains(shard)).collect()
}

/// The first hand-over of each shard of a killed worker.
fn from(fleet: &Fleet, worker: &str) -> Vec<Handover> {
    let mut moved = fleet.watch.handovers();
    let killed = |moved: &Handover| moved.from == worker && moved.cause == Cause::Killed;
    moved.retain(killed);
    moved
}

async fn table(each: usize, tests: [[&'static str; 3]; 2]) {
    let Some(program) = program(tests[0][0], Kcl::Three).await else {
        return;
    };
    let mut rows = [format!("| {} | KCL |", 2 * each), format!("| {} | ours |", 2 * each)];
    for (number, (_, restart)) in RESTARTS.into_iter().enumerate() {
        let crash = |leads, test: [&'static str; 3]| Crash { test: test[number], each, leads, restart };
        let led_by_kcl = crash(Leads::Kcl, tests[0]).standstill(&program);
        let led_by_ours = crash(Leads::Ours, tests[1]).standstill(&program);
        let (by_kcl, by_ours) = tokio::join!(led_by_kcl, led_by_ours);
        for (row, time) in rows.iter_mut().zip([by_kcl, by_ours]) {
            row.push_str(&format!(" {:.1} s |", time.as_secs_f64()));
        }
    }
    let [at_once, later, never] = RESTARTS.map(|(name, _)| name);
    println!("| workers | leader | {at_once} | {later} | {never} |\n|---|---|---|---|---|");
    rows.iter().for_each(|row| println!("{row}"));
}

/// Takes a quarter of an hour: `cargo test … kcl_java::crashes -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures for a quarter of an hour"]
async fn crashes_beside_a_worker_of_kcl() {
    let names = [
        ["crash-kcl-1-0", "crash-kcl-1-5", "crash-kcl-1-never"],
        ["crash-ours-1-0", "crash-ours-1-5", "crash-ours-1-never"],
    ];
    table(1, names).await;
}

/// Takes half an hour.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures for half an hour"]
async fn crashes_beside_three_workers_of_kcl() {
    let names = [
        ["crash-kcl-3-0", "crash-kcl-3-5", "crash-kcl-3-never"],
        ["crash-ours-3-0", "crash-ours-3-5", "crash-ours-3-never"],
    ];
    table(3, names).await;
}
