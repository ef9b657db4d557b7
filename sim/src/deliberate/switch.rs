//! The switch of the deliberate bugs: the number of the bug on in this thread.
//!
//! An ordinary program has no deliberate bug and never asks the switch. In the copy made by `workspace`, this file is a
//! module of the engine, and each bug's place asks [`on`].

use std::cell::Cell;
use std::marker::PhantomData;

/// Whether this program has the deliberate bugs, each behind its switch. Only a program built from the copy has bugs.
pub const HAS_BUGS: bool = false;

/// The number for no bug.
const NONE: u16 = u16::MAX;

thread_local! {
    static ON: Cell<u16> = const { Cell::new(NONE) };
}

/// Whether the bug of this number is on in this thread.
#[inline]
pub fn on(number: u16) -> bool {
    ON.get() == number
}

/// Turns the bug of this number on in this thread, or turns all bugs off, until the returned guard is dropped.
pub fn switch(number: Option<u16>) -> Switched {
    Switched { before: ON.replace(number.unwrap_or(NONE)), this_thread: PhantomData }
}

/// Restores the switch on drop.
#[derive(Debug)]
#[must_use = "dropping it turns the switch back"]
pub struct Switched {
    before: u16,
    /// The guard must be dropped in the thread of its creation.
    this_thread: PhantomData<*const ()>,
}

impl Drop for Switched {
    fn drop(&mut self) {
        ON.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what a thread sees is tested")]
    fn a_bug_is_on_in_its_thread_until_the_guard_is_dropped() {
        assert!(!on(1));
        let outer = switch(Some(1));
        assert!(on(1) && !on(2));
        {
            let _inner = switch(None);
            assert!(!on(1));
        }
        assert!(on(1));
        std::thread::scope(|threads| {
            threads.spawn(|| assert!(!on(1)));
        });
        drop(outer);
        assert!(!on(1));
    }

    #[test]
    fn a_panic_turns_the_switch_back() {
        let panicked = std::panic::catch_unwind(|| {
            let _on = switch(Some(1));
            panic!("as an engine with a bug may");
        });
        assert!(panicked.is_err() && !on(1));
    }
}
