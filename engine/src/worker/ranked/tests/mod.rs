//! Leases by rank, by method.

mod leader;
mod members;
mod ranks;

use super::members::Members;
use crate::format::Format;
use crate::ids::{OpId, WorkerId};
use crate::input::{Outcome, Reply};
use crate::members::{Member, MembersOp, MembersPage, Shared, Side};
use crate::output::{Effect, TableOp};
use crate::rank::Turns;
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;
use crate::worker::testing::{Did, config, done, running, table, taken};

fn turns(cx: &Context, leases: &mut LeaseTable, members: &[&str], shards: &[&str]) {
    let members = members.iter().map(|id| WorkerId::from(*id)).collect();
    let shards = shards.iter().map(|id| (*id).into()).collect();
    leases.set_turns(Turns::new(cx.me(), members, shards));
}

/// The one operation on the tables of members.
#[track_caller]
fn asked(did: &Did) -> (OpId, MembersOp) {
    match did.command() {
        (op, Effect::Table(TableOp::Members(asked))) => (op, asked),
        other => panic!("expected an operation on the tables of members, found {other:?}"),
    }
}

/// What a member reads in the tables of members.
struct Shown {
    members: Vec<Member>,
    shards: Vec<&'static str>,
}

impl Shown {
    fn answer(&self, asked: &MembersOp) -> Outcome {
        match asked {
            MembersOp::Describe(_) => Outcome::Applied(Reply::Table(crate::input::TableState::Usable)),
            MembersOp::List { .. } => {
                Outcome::Applied(Reply::Members(MembersPage { members: self.members.clone(), next: None }))
            }
            MembersOp::ReadShards => Outcome::Applied(Reply::Shared(Some(Shared {
                shards: self.shards.iter().map(|id| (*id).into()).collect(),
                at: 1,
            }))),
            MembersOp::ReadLeader => Outcome::Applied(Reply::Leader(None)),
            MembersOp::Create(_) | MembersOp::Write(_) => done(),
        }
    }

    /// Answers everything that is due. Returns what was asked.
    fn round(&self, cx: &mut Context, leases: &mut LeaseTable, members: &mut Members) -> Vec<MembersOp> {
        let mut all = Vec::new();
        members.step(cx, false);
        loop {
            let did = cx.did();
            if did.effects().is_empty() {
                return all;
            }
            let (op, effect) = asked(&did);
            let now = cx.now();
            members.on_outcome(cx, leases, op, now, self.answer(&effect));
            all.push(effect);
            members.step(cx, false);
        }
    }
}

fn member(cx: &Context, id: &str) -> Member {
    Member { id: id.into(), at: cx.wall().0 as u64 * 1_000_000 + 1 }
}

/// A running worker that is a member.
fn ranked() -> (Context, LeaseTable, Members) {
    let cx = running(config(Format::Kinsumer));
    let leases = table(&cx);
    (cx, leases, Members::default())
}

fn looks() -> Vec<MembersOp> {
    Side::ALL.map(MembersOp::Describe).to_vec()
}
