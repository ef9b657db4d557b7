//! Shrinks a failing world to fewer faults.

/// Leaves out faults without a part in a failure. `fails` tells whether the world still fails with a subset of `all`.
///
/// Tries halves first, then quarters, and so on down to single faults, until every remaining fault is needed. Makes at
/// most `most` runs.
pub fn shrink(all: &[usize], most: u32, mut fails: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let mut kept = all.to_vec();
    let mut runs = 0;
    let mut size = kept.len().div_ceil(2).max(1);
    loop {
        let mut spared = false;
        let mut from = 0;
        while from < kept.len() {
            if runs >= most {
                return kept;
            }
            runs += 1;
            let mut rest = kept.clone();
            rest.drain(from..(from + size).min(kept.len()));
            if fails(&rest) {
                kept = rest;
                spared = true;
            } else {
                from += size;
            }
        }
        if size == 1 && !spared {
            return kept;
        }
        size = size.div_ceil(2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_parts_are_kept_and_nothing_else() {
        let all: Vec<usize> = (0..20).collect();
        for needed in [&[][..], &[7], &[0, 19], &[3, 4, 11]] {
            let kept = shrink(&all, 1_000, |left| needed.iter().all(|n| left.contains(n)));
            assert_eq!(kept, needed);
        }
        let mut runs = 0;
        shrink(&all, 5, |_| {
            runs += 1;
            false
        });
        assert_eq!(runs, 5);
    }
}
