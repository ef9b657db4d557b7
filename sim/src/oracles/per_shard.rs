//! One state for each shard of a world, by the shard's number.

use super::ShardNo;
use std::ops::{Deref, DerefMut};

#[derive(Clone, Debug, Default)]
pub(super) struct PerShard<T>(Vec<T>);

impl<T: Clone + Default> PerShard<T> {
    /// The state of a shard; the first look makes it.
    pub(super) fn of(&mut self, shard: ShardNo) -> &mut T {
        let index = shard as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, T::default());
        }
        &mut self.0[index]
    }
}

impl<T> Deref for PerShard<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for PerShard<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
