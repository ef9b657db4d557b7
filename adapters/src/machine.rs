//! The engine's contract as a trait: tests of the loop around the engine use a scripted stand-in.

use leasehold_engine::ids::LeaseIx;
use leasehold_engine::input::Input;
use leasehold_engine::notice::Stall;
use leasehold_engine::output::Output;
use leasehold_engine::time::Mono;
use leasehold_engine::{Engine, Held};

/// Takes inputs and answers each with outputs and a time to be woken at.
pub trait Machine: Send {
    /// Takes one input, gives its outputs to `each` in order, and returns the next wake-up time.
    fn feed(&mut self, input: Input, each: &mut dyn FnMut(Output)) -> Mono;

    /// Whether nothing will follow.
    fn is_stopped(&self) -> bool;

    /// Shows every lease it holds.
    fn each_held(&self, each: &mut dyn FnMut(&Held<'_>));

    /// Moves all leases changed since the last call into `into`; by default none.
    fn touched(&mut self, into: &mut Vec<LeaseIx>) {
        let _ = into;
    }

    /// What it holds of a lease; absent if nothing.
    fn held_in(&self, lease: LeaseIx) -> Option<Held<'_>> {
        let _ = lease;
        None
    }

    /// What a lease that it holds waits for; by default nothing.
    fn waits_for(&self, lease: LeaseIx) -> Option<Stall> {
        let _ = lease;
        None
    }

    /// How many rows of the lease table cannot be read; by default none.
    fn unreadable(&self) -> usize {
        0
    }
}

impl Machine for Engine {
    fn feed(&mut self, input: Input, each: &mut dyn FnMut(Output)) -> Mono {
        let outbox = self.handle(input);
        let wake_at = outbox.wake_at();
        outbox.for_each(each);
        wake_at
    }

    fn is_stopped(&self) -> bool {
        Engine::is_stopped(self)
    }

    fn each_held(&self, each: &mut dyn FnMut(&Held<'_>)) {
        for held in self.held() {
            each(&held);
        }
    }

    fn touched(&mut self, into: &mut Vec<LeaseIx>) {
        Engine::touched(self, into);
    }

    fn waits_for(&self, lease: LeaseIx) -> Option<Stall> {
        Engine::waits_for(self, lease)
    }

    fn held_in(&self, lease: LeaseIx) -> Option<Held<'_>> {
        Engine::held_in(self, lease)
    }

    fn unreadable(&self) -> usize {
        Engine::unreadable(self)
    }
}
