//! The acts and the notices of workers by their names, to count commands and notices or to trap commands.

use leasehold_engine::notice::Notice;
use leasehold_engine::output::Effect;

/// Which commands, or which notices: a name, or a question.
pub trait Wanted<T> {
    fn is(&self, it: &T) -> bool;
}

impl<T, F: Fn(&T) -> bool> Wanted<T> for F {
    fn is(&self, it: &T) -> bool {
        self(it)
    }
}

/// Commands of one kind, by their name in `Effect::described`.
#[derive(Clone, Copy)]
pub struct Act(&'static str);

impl Wanted<Effect> for Act {
    fn is(&self, effect: &Effect) -> bool {
        effect.described().0 == self.0
    }
}

impl Act {
    /// Those of the shard with this number.
    pub fn of(self, n: u32) -> impl Fn(&Effect) -> bool + Clone {
        let id = super::shard_id(n);
        move |effect| effect.described() == (self.0, Some(id.as_str()))
    }
}

/// Notices of one kind, by their name.
#[derive(Clone, Copy)]
pub struct Told(&'static str);

impl Wanted<Notice> for Told {
    fn is(&self, notice: &Notice) -> bool {
        notice.name() == self.0
    }
}

/// Commands of either kind.
pub fn either(one: impl Wanted<Effect>, other: impl Wanted<Effect>) -> impl Fn(&Effect) -> bool {
    move |effect| one.is(effect) || other.is(effect)
}

/// A write of any row of a lease.
pub fn is_write(effect: &Effect) -> bool {
    matches!(effect, Effect::Table(leasehold_engine::output::TableOp::Write(_)))
}

pub const TAKE: Act = Act("take");
pub const RENEW: Act = Act("renew");
pub const CHECKPOINT: Act = Act("checkpoint");
pub const END: Act = Act("end");
pub const RELEASE: Act = Act("release");
pub const HAND_OVER: Act = Act("hand over");
pub const CREATE: Act = Act("create");
pub const CLAIM: Act = Act("claim");
pub const WEIGH: Act = Act("weigh");
pub const FORGET: Act = Act("forget");
pub const DELETE: Act = Act("delete");
pub const SCAN: Act = Act("scan the table");
pub const READ: Act = Act("read the row of");
pub const DESCRIBE_TABLE: Act = Act("describe the table");
pub const OWNED: Act = Act("query the index of owners");
pub const OWNER_INDEX: Act = Act("look for the index of owners");
pub const DESCRIBE_STREAM: Act = Act("describe the stream");
pub const LIST: Act = Act("list the shards");
pub const ITERATOR: Act = Act("get an iterator of");
pub const RECORDS: Act = Act("get records of");
pub const OPEN: Act = Act("open");
pub const DELIVER: Act = Act("hand over records of");
pub const ABORT: Act = Act("abort the handler of");
pub const CLOSE: Act = Act("close");
pub const READ_LEADER: Act = Act("read who leads");
pub const REGISTER: Act = Act("register as a member");
pub const REAP: Act = Act("remove a dead member");
pub const LEAD: Act = Act("become the leader");
pub const SHARE: Act = Act("share out the shards");
pub const REPORT: Act = Act("report the worker's metrics");
pub const BEAT: Act = Act("renew the leader's lock");
pub const MIGRATE: Act = Act("end the migration to KCL 3");

pub const TOOK: Told = Told("took");
pub const MISSED_TAKE: Told = Told("missed-take");
pub const SPARED: Told = Told("spared");
pub const CLAIMED: Told = Told("claimed");
pub const ADOPTED: Told = Told("adopted");
pub const FENCED: Told = Told("fenced");
pub const RESUMED: Told = Told("resumed");
pub const LOST: Told = Told("lost");
pub const RELEASED: Told = Told("released");
pub const RESTORING: Told = Told("restoring");
pub const MENDING: Told = Told("mending");
pub const ENDED: Told = Told("ended");
pub const PLANNED: Told = Told("planned");
pub const MOVING: Told = Told("moving");
pub const TRIMMED: Told = Told("trimmed");
pub const FATAL: Told = Told("fatal");
pub const SHUTTING_DOWN: Told = Told("shutting-down");
pub const TIME_MISSED: Told = Told("time-missed");
pub const WALL_IGNORED: Told = Told("wall-ignored");
