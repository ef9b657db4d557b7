//! Consecutive lines in one buffer.

use super::line::{Line, Payload};

/// Whole lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Lines {
    pub(super) fn push(&mut self, line: &Line<'_>, payload: Payload) {
        line.append_to(&mut self.bytes, payload);
        self.ends.push(self.bytes.len());
    }

    /// The number of lines.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Lines from number `from` on, before number `until`: as many as fit into `most` bytes, but at least one. Returns
    /// the number of the following line, too.
    pub(super) fn piece(&self, from: usize, until: usize, most: usize) -> (&[u8], usize) {
        let begin = match from {
            0 => 0,
            _ => self.ends[from - 1],
        };
        let fit = self.ends[from..until].partition_point(|end| end - begin <= most);
        let next = from + fit.max(1);
        (&self.bytes[begin..self.ends[next - 1]], next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_lines_that_fit_or_one_that_does_not() {
        let mut lines = Lines::default();
        let mut sizes = Vec::new();
        for bytes in [1, 2, 300, 3] {
            let before = lines.bytes();
            let line = Line {
                shard: "s",
                token: 1,
                position: Default::default(),
                partition_key: "",
                data: &vec![0; bytes],
                arrival: None,
            };
            lines.push(&line, Payload::Base64);
            sizes.push(lines.bytes() - before);
        }
        let size = |piece: (&[u8], usize)| (piece.0.len(), piece.1);
        let small = sizes[0] + sizes[1];
        assert_eq!(size(lines.piece(0, 4, small)), (small, 2));
        assert_eq!(size(lines.piece(0, 4, small - 1)), (sizes[0], 1));
        assert_eq!(size(lines.piece(0, 1, small)), (sizes[0], 1), "no more are wanted");
        assert_eq!(size(lines.piece(2, 4, small)), (sizes[2], 3), "too long to fit anywhere");
        assert_eq!(size(lines.piece(0, 4, usize::MAX)), (lines.bytes(), 4));
    }
}
