//! Panics within a world: caught, and told once, in the message of the failed world.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether panics of this thread belong to a world.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics of this thread from being printed, until a drop.
#[derive(Debug)]
pub struct Quiet {
    before: bool,
}

impl Quiet {
    pub fn begin() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let loud = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !QUIET.get() {
                    loud(info);
                }
            }));
        });
        Self { before: QUIET.replace(true) }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        QUIET.set(self.before);
    }
}

/// A function's result, or the message of its panic.
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<String>() {
        return text.clone();
    }
    let text = panic.downcast_ref::<&str>();
    text.map_or_else(|| "a panic without a text".to_owned(), |text| (*text).to_owned())
}
