//! The tables of members, with correct rows and with wrong answers.

use super::Dice;
use super::world::{KEYS, OWNERS};
use leasehold_engine::config::Config;
use leasehold_engine::format::{Kinsumer, LeaseFormat};
use leasehold_engine::ids::WorkerId;
use leasehold_engine::input::{Outcome, Reply, TableState, Why};
use leasehold_engine::members::{Leader, Member, MembersChange, MembersOp, MembersPage, Shared};
use leasehold_engine::testkit::refused;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Members {
    rows: BTreeMap<WorkerId, u64>,
    leader: Option<Leader>,
    shared: Option<Shared>,
}

/// The same options where leases are assigned by rank.
pub fn ranked(config: Config) -> Config {
    let lease_duration = config.members().expiry();
    config.with_policies(Kinsumer.policies()).with_lease_duration(lease_duration).with_max_leases(0)
}

impl Members {
    pub fn perform(&mut self, op: &MembersOp, dice: &mut Dice<'_>) -> Outcome {
        if dice.one_in(8) {
            // A second member writes, too.
            let id = WorkerId::from(dice.pick(&OWNERS));
            self.rows.insert(id, dice.number());
        }
        Outcome::Applied(match op {
            MembersOp::Describe(_) => Reply::Table(TableState::Usable),
            MembersOp::Create(_) => Reply::Done,
            MembersOp::List { .. } => {
                let member = |(id, at): (&WorkerId, &u64)| Member { id: id.clone(), at: *at };
                let members = self.rows.iter().map(member).collect();
                Reply::Members(MembersPage { members, next: None })
            }
            MembersOp::ReadLeader => Reply::Leader(self.leader.clone()),
            MembersOp::ReadShards => Reply::Shared(self.shared.clone()),
            MembersOp::Write(change) => {
                if !self.write(change) {
                    return refused(Why::ConditionFailed, None);
                }
                Reply::Done
            }
        })
    }

    /// Whether the guard holds.
    fn write(&mut self, change: &MembersChange) -> bool {
        match change {
            MembersChange::Register(me) => {
                self.rows.insert(me.id.clone(), me.at);
            }
            MembersChange::Leave(me) => {
                self.rows.remove(me);
            }
            MembersChange::Reap(member) if self.rows.get(&member.id) == Some(&member.at) => {
                self.rows.remove(&member.id);
            }
            MembersChange::Lead { me, seen } if *seen == self.leader => {
                let (id, at) = (Some(me.id.clone()), me.at);
                self.leader = Some(Leader { id, at });
            }
            MembersChange::StepDown(_) => self.leader = None,
            MembersChange::Share { shared, seen }
                if *seen == self.shared.as_ref().map(|shared| shared.at) =>
            {
                self.shared = Some(shared.clone());
            }
            _ => return false,
        }
        true
    }
}

/// An answer about members, whatever was asked.
pub fn reply(dice: &mut Dice<'_>) -> Option<Reply> {
    let id = |dice: &mut Dice<'_>| WorkerId::from(dice.pick(&OWNERS));
    Some(match dice.below(4) {
        1 => Reply::Members(MembersPage {
            members: (0..dice.below(4)).map(|_| Member { id: id(dice), at: dice.number() }).collect(),
            next: dice.one_in(2).then(|| id(dice)),
        }),
        2 => Reply::Leader(
            dice.one_in(2).then(|| Leader { id: dice.one_in(2).then(|| id(dice)), at: dice.number() }),
        ),
        3 => Reply::Shared(dice.one_in(2).then(|| Shared {
            shards: (0..dice.below(4)).map(|_| dice.pick(&KEYS).into()).collect(),
            at: dice.number(),
        })),
        _ => return None,
    })
}
