//! What a world tells its oracles, its log and its recording.

use super::{Lease, World};
use crate::names::{self, shard_of};
use crate::oracles::fact::Verb;
use crate::oracles::{Fact, LifeNo};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::ids::{LeaseKey, WorkerId};
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

    /// The truth about a row may have changed.
    pub(super) fn row_written(&mut self, key: &LeaseKey, verb: Option<Verb>, by: Option<LifeNo>) {
        let Some(shard) = names::shard_of(key) else { return };
        let after = self.table.lease(key);
        let index = shard as usize;
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, Lease::default);
        }
        let from_record = match (
            self.cx.plan().config.initial_position(),
            &self.rows[index].row,
            &after,
        ) {
            (InitialPosition::AtTimestamp(wall), None, Some(_)) => self.source.first_at(shard, wall),
            _ => 1,
        };
        if after.is_none() {
            // What people had put on the row went with it.
            self.attributes.retain(|known| known != key);
        }
        let old = self.rows[index].row.take();
        self.check_description(shard, by, verb, old.as_ref(), after.as_ref());
        let [before_row, after_row] = [&old, &after].map(|row| Some(self.seen(shard, row.as_ref()?)));
        let lease = &mut self.rows[index];
        if after_row.map(|row| row.counter) != before_row.map(|row| row.counter) {
            lease.renewed = self.cx.now();
        }
        lease.tampered |= verb.is_none();
        lease.existed |= after.is_some();
        lease.row = after;
        let owner = lease.row.as_ref().and_then(|row| row.actual_owner());
        self.cx.owned(shard, owner);
        self.observe_stream();
        self.cx.fact(Fact::RowChanged {
            shard,
            by,
            verb,
            before: before_row,
            after: after_row,
            from_record,
        });
        // Others renew by whole items, with the checkpoint that they remember.
        let moves = before_row.map(|row| row.checkpoint) != after_row.map(|row| row.checkpoint);
        if verb != Some(Verb::Renew) || moves {
            self.note_state(shard, verb, before_row, after_row);
            let worker = by.map(|life| self.cx.names().worker(life));
            let by = || worker.map_or_else(|| "an operator".to_owned(), |worker| format!("w{worker}"));
            let verb = || match verb {
                Some(verb) => format!("{verb:?}").to_lowercase(),
                None if after_row.is_some() => "edits".to_owned(),
                None => "removes".to_owned(),
            };
            self.cx.line(|| match after_row {
                Some(row) => format!(
                    "{}: {} shard {shard}: {:?} counter {} {:?}",
                    by(),
                    verb(),
                    row.owner,
                    row.counter,
                    row.checkpoint
                ),
                None => format!("{}: {} shard {shard}", by(), verb()),
            });
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
