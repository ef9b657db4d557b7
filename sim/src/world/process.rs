//! Processes of workers: they start, stand still, are told to stop, stop, die and come back.

use super::World;
use super::heap::What;
use crate::oracles::Fact;
use leasehold_engine::Engine;
use leasehold_engine::input::{Body, Boot, Call};
use leasehold_engine::internals::draw;

impl World {
    /// Begins a new process of a worker.
    pub(super) fn start(&mut self, w: usize, loops: u32) {
        let now = self.cx.now();
        let worker = &mut self.workers[w];
        let generation = worker.generation;
        let key = (w as u64) << 32 | u64::from(generation);
        worker
            .clock
            .restart(now, self.cx.draws().below("clock-offset", key, 1 << 40));
        worker.fatal = None;
        worker.gap_us = 1_000_000;
        if !self.start_original(w) {
            self.start_engine(w, key);
        }
        if loops > 0 {
            let soon = self.cx.draws().magnitude("crash-loop", key, 1_000, 2_000_000);
            let down_us = self
                .cx
                .draws()
                .magnitude("crash-loop-down", key, 10_000, 1_000_000);
            self.cx.push(
                now + soon,
                What::Crash {
                    worker: w as u16,
                    generation,
                    down_us,
                    loops: loops - 1,
                },
            );
        }
    }

    fn start_engine(&mut self, w: usize, key: u64) {
        let now = self.cx.now();
        self.workers[w].engine = Some(Engine::new());
        let reached = self.cx.plan().faults.upgrade.reached(w as u32, now);
        if reached && self.cx.plan().upgraded.is_some() {
            self.cx.mark("upgrade");
        }
        let plan = self.cx.plan();
        let upgraded = plan.upgraded.as_ref().filter(|_| reached);
        let boot = Boot {
            worker: plan.fleet.name.clone().unwrap_or_else(|| format!("w{w}")),
            incarnation: self.incarnation(w),
            seed: draw(plan.seed, "engine", "", key),
            config: upgraded.unwrap_or(&plan.config).clone(),
        };
        self.handle(w, Body::Boot(Box::new(boot)));
    }

    pub(super) fn incarnation(&self, w: usize) -> u64 {
        let key = (w as u64) << 32 | u64::from(self.workers[w].generation);
        draw(self.cx.plan().seed, "incarnation", "", key)
    }

    pub(super) fn stopped(&mut self, w: usize) {
        let life = self.workers[w].life;
        let fatal = self.workers[w].fatal.clone();
        let is_fatal = fatal.is_some();
        // The line shows the worker as it was until now.
        self.cx.line(|| {
            format!(
                "w{w} has stopped{}",
                fatal.map(|why| format!(": {why}")).unwrap_or_default()
            )
        });
        self.cx.fact(Fact::Stopped {
            life,
            fatal: is_fatal,
        });
        let worker = &mut self.workers[w];
        worker.end();
        let generation = worker.generation;
        let over = self.cx.is_lost_for_good() && self.cx.is_healed();
        if worker.core && !over {
            self.cx.push(
                self.cx.now() + worker.gap_us,
                What::Start {
                    worker: w as u16,
                    generation,
                    loops: 0,
                },
            );
        }
    }

    pub(super) fn crash(&mut self, w: usize, down_us: u64, loops: u32) {
        let worker = &mut self.workers[w];
        if !worker.lives() {
            return;
        }
        let life = worker.life;
        worker.end();
        let generation = worker.generation;
        self.cx.mark("crash");
        self.cx.fact(Fact::Died { life });
        self.cx.line(|| format!("w{w} dies"));
        if self.workers[w].core {
            self.cx.push(
                self.cx.now() + down_us,
                What::Start {
                    worker: w as u16,
                    generation,
                    loops,
                },
            );
        }
    }

    pub(super) fn pause(&mut self, w: usize, us: u64) {
        let now = self.cx.now();
        let worker = &mut self.workers[w];
        if !worker.lives() || worker.paused.is_some() {
            return;
        }
        worker.paused = Some(now);
        worker.pauses += 1;
        let (pause, life) = (worker.pauses, worker.life);
        self.cx.push(
            now + us,
            What::Resume {
                worker: w as u16,
                pause,
            },
        );
        self.cx.fact(Fact::Paused { life });
        self.cx
            .line(|| format!("w{w} stands still for {} ms", us / 1_000));
    }

    pub(super) fn resume(&mut self, w: usize, pause: u32) {
        let worker = &mut self.workers[w];
        if worker.pauses != pause {
            return;
        }
        let Some(since) = worker.paused.take() else { return };
        let life = worker.life;
        let backlog = std::mem::take(&mut worker.backlog);
        self.cx.fact(Fact::Resumed {
            life,
            stood: self.cx.now() - since,
        });
        self.cx.line(|| format!("w{w} goes on"));
        for what in backlog {
            match what {
                // It has waited; it does not make the worker stand still once more.
                What::Answer { flight } if self.addressee(flight).is_some_and(|(_, lives)| lives) => {
                    self.answer(flight)
                }
                what => self.happen(what),
            }
        }
    }

    pub(super) fn ask_to_stop(&mut self, w: usize, gap_us: u64) {
        let worker = &mut self.workers[w];
        if !worker.lives() || worker.stopping || worker.paused.is_some() {
            return;
        }
        worker.stopping = true;
        worker.gap_us = gap_us;
        let life = worker.life;
        self.cx.mark("replace");
        self.cx.fact(Fact::ShutdownAsked { life });
        self.cx.line(|| format!("w{w} is told to stop"));
        self.handle(w, Body::Call(Call::Shutdown));
    }
}
