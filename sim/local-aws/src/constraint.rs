//! The words of both services about a member of a request that violates a constraint.

use std::fmt::Display;

/// The message about one member: `place` is the member and its value, such as `Value '0' at 'limit'`.
pub(crate) fn unmet(place: impl Display, constraint: impl Display) -> String {
    format!("1 validation error detected: {place} failed to satisfy constraint: Member must {constraint}")
}

/// The bound that a value violates, in words.
pub(crate) fn beyond<T: PartialOrd + Display>(value: T, least: T, most: T) -> Option<String> {
    match value {
        value if value < least => Some(format!("greater than or equal to {least}")),
        value if value > most => Some(format!("less than or equal to {most}")),
        _ => None,
    }
}

/// Refuses a request if this is so.
pub(crate) fn refuse_if<E>(is_so: bool, error: impl FnOnce() -> E) -> Result<(), E> {
    match is_so {
        true => Err(error()),
        false => Ok(()),
    }
}
