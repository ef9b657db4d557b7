//! The application pauses a shard for a while.

use super::Fleet;
use crate::oracles::ShardNo;
use crate::world::context::Context;
use crate::world::heap::WorkerEvent;
use crate::world::request::Request;
use leasehold_engine::input::Call;

impl Fleet {
    /// Pauses a shard for this time, in µs, while its handler processes a batch; 0: no pause. Foreign programs have no
    /// pauses.
    pub(super) fn pause_shard(&self, cx: &mut Context, w: usize, shard: ShardNo, for_us: u64) {
        if for_us == 0 || self.workers[w].peer.is_some() {
            return;
        }
        self.plan(cx, w, cx.now() + for_us, WorkerEvent::PauseEnds { shard });
        let lease = cx.names_mut().shard(shard).to_lease();
        self.say(cx, w, Call::Pause { lease });
    }

    /// Resumes a shard, whether still paused and owned, or not.
    pub(in crate::world) fn end_shard_pause(&self, cx: &mut Context, w: usize, shard: ShardNo) {
        let lease = cx.names_mut().shard(shard).to_lease();
        self.say(cx, w, Call::Resume { lease });
    }

    fn say(&self, cx: &mut Context, w: usize, call: Call) {
        let life = self.workers[w].life;
        let calls = vec![call];
        cx.request(Request::Calls { w, life, calls });
    }
}
