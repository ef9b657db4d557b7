//! A trace to be read: a file, or a folder of segments.

use crate::exit::Failure;
use leasehold::internals::{LONGEST_LINE, TraceText};
use std::io::{self, BufRead, Read};
use std::path::Path;

/// Opens a trace.
pub(super) fn open(path: &Path) -> Result<TraceText, Failure> {
    TraceText::open(path).map_err(|error| {
        Failure::unusable(format!(
            "expected a readable trace file, or a folder of one, but {}: {error}",
            path.display()
        ))
    })
}

/// A text, read line by line. Counts lines, and may leave out a last line without a line break. Memory holds one line,
/// of no more than [`LONGEST_LINE`] bytes: a small file may be the compressed form of a huge text.
#[derive(Debug)]
pub(super) struct Lines<R> {
    text: R,
    line: Vec<u8>,
    /// How much of `line` was read already.
    at: usize,
    whole_only: bool,
    /// The number of lines read.
    pub(super) lines: u64,
    /// The number of bytes of a last line that was left out.
    pub(super) left_out: usize,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(text: R, whole_only: bool) -> Self {
        Self { text, line: Vec::new(), at: 0, whole_only, lines: 0, left_out: 0 }
    }
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Lines<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.line.len() {
            self.at = 0;
            self.line.clear();
            // A line over the limit is handed on up to the limit; the trace's reader refuses it.
            let mut most = (&mut self.text).take(LONGEST_LINE);
            if most.read_until(b'\n', &mut self.line)? > 0 {
                let whole = self.line.last() == Some(&b'\n') || self.line.len() as u64 == LONGEST_LINE;
                if self.whole_only && !whole {
                    self.left_out = self.line.len();
                    self.line.clear();
                } else {
                    self.lines += 1;
                }
            }
        }
        Ok(&self.line[self.at..])
    }

    fn consume(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.line.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::internals::TraceReader;
    use std::cell::Cell;
    use std::rc::Rc;

    fn read(text: &str, whole_only: bool) -> (String, u64, usize) {
        let mut lines = Lines::of(text.as_bytes(), whole_only);
        let mut found = String::new();
        lines.read_to_string(&mut found).expect("a text");
        (found, lines.lines, lines.left_out)
    }

    /// An endless line, with a count of the bytes read.
    struct Endless(Rc<Cell<u64>>);

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            into.fill(b'x');
            self.0.set(self.0.get() + into.len() as u64);
            Ok(into.len())
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_read_no_further_than_its_limit() {
        for whole_only in [true, false] {
            let read = Rc::<Cell<u64>>::default();
            let text = io::BufReader::new(Endless(read.clone()));
            let mut reader = TraceReader::new(Lines::of(text, whole_only));
            let error = reader.next().expect("an error").expect_err("no trace");
            assert_eq!(error.expected, format!("a line of at most {LONGEST_LINE} bytes"));
            assert!(read.get() <= LONGEST_LINE + (1 << 16), "{}", read.get());
            assert!(reader.next().is_none());
        }
    }

    #[test]
    fn an_unended_line_is_left_out_where_whole_ones_are_wanted() {
        assert_eq!(read("a\nbc\nd", true), ("a\nbc\n".to_owned(), 2, 1));
        assert_eq!(read("a\nbc\nd", false), ("a\nbc\nd".to_owned(), 3, 0));
        assert_eq!(read("a\n\nb\n", true), ("a\n\nb\n".to_owned(), 3, 0));
        assert_eq!(read("", true), (String::new(), 0, 0));
    }
}
