//! What a world tells its oracles, its log and its recording.

use super::World;
use crate::names::{self, shard_of};
use crate::oracles::{Fact, LifeNo};
use leasehold_engine::ids::WorkerId;
use leasehold_engine::input::{Outcome, Refusal, Reply};
use leasehold_engine::notice::Notice;
use leasehold_engine::row::RowRead;

impl World {
    pub(super) fn begin_life(&mut self, w: usize, name: &WorkerId) {
        self.workers[w].life = self.cx.begin_life(w, name);
    }

    pub(super) fn told(&mut self, w: usize, notice: &Notice) {
        self.cx.told(w, notice);
        if let Some(shard) = notice.lease().and_then(names::shard_of) {
            let life = self.workers[w].life;
            match notice {
                Notice::Moving { .. } => self.cx.fact(Fact::Moving { life, shard }),
                Notice::Stalled { .. } => self.cx.fact(Fact::Stalled { life, shard }),
                Notice::Yields { .. } => self.cx.fact(Fact::Yields { life, shard }),
                _ => {}
            }
        }
        if let Notice::Fatal(fatal) = notice {
            self.workers[w].fatal = Some(fatal.to_string());
            let life = self.workers[w].life;
            self.cx.fact(Fact::GivesUp { life });
        }
        if crate::report::is_worth_a_line(notice) {
            self.cx.line(|| format!("w{w}: {notice}"));
        }
    }

    /// Which rows an answer shows.
    pub(super) fn show(&mut self, life: LifeNo, outcome: &Outcome) {
        match outcome {
            Outcome::Applied(Reply::Page(page)) => {
                for read in &page.rows {
                    self.show_row(life, read, true);
                }
            }
            Outcome::Applied(Reply::Row(Some(read))) => self.show_row(life, read, false),
            Outcome::Refused(Refusal {
                current: Some(read), ..
            }) => self.show_row(life, read, false),
            _ => {}
        }
    }

    fn show_row(&mut self, life: LifeNo, read: &RowRead, scanned: bool) {
        if let RowRead::Lease(lease) = read
            && let Some(shard) = shard_of(&lease.key)
        {
            let row = self.cx.names().row(lease);
            self.cx.fact(Fact::Shown {
                life,
                shard,
                row,
                scanned,
            });
        }
    }
}
