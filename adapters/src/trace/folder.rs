//! A trace in segments: how lives and segments are named, and all segments of a life as one text.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The ending of a compressed segment's name.
pub(crate) const PACKED: &str = ".gz";

/// The folder of a life.
pub(crate) fn life(root: &Path, number: u64) -> PathBuf {
    root.join(format!("life-{number:06}"))
}

/// A segment that is not compressed.
pub(crate) fn segment(life: &Path, number: u64) -> PathBuf {
    life.join(format!("segment-{number:06}.jsonl"))
}

/// The number of a life or of a segment; none, if it is neither.
pub(crate) fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let digits = match name.strip_prefix("life-") {
        Some(number) => number,
        None => {
            let name = name.strip_suffix(PACKED).unwrap_or(name);
            name.strip_prefix("segment-")?.strip_suffix(".jsonl")?
        }
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// The lives in a folder, the oldest first.
pub(crate) fn lives(root: &Path) -> io::Result<Vec<PathBuf>> {
    numbered(root, "life-")
}

fn numbered(folder: &Path, begins: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with(begins))
            && let Some(number) = number_of(&path)
        {
            found.push((number, path));
        }
    }
    // After a crash a segment may exist both plain and compressed: the compressed file comes first.
    found.sort_by(|(one, path), (other, beside)| one.cmp(other).then(beside.cmp(path)));
    found.dedup_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The text of a trace: of a file, or of all segments of a life in their order. Compressed files are unpacked.
pub struct TraceText {
    files: VecDeque<PathBuf>,
    now: Box<dyn BufRead>,
}

impl std::fmt::Debug for TraceText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceText").field("files", &self.files).finish_non_exhaustive()
    }
}

impl TraceText {
    /// Opens a file, the folder of a life, or a folder of lives, of which the newest is read.
    ///
    /// # Errors
    /// If the file or folder does not exist, if reading fails, or if a folder holds no trace.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut files = VecDeque::from([path.to_owned()]);
        if path.is_dir() {
            let newest = lives(path)?.pop();
            let life = newest.as_deref().unwrap_or(path);
            files = numbered(life, "segment-")?.into();
            if files.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    "expected a folder life-… or segments segment-….jsonl of a trace in this folder, found neither",
                ));
            }
        }
        let mut text = Self { files, now: Box::new(io::empty()) };
        text.next_file()?;
        Ok(text)
    }

    /// Goes on with the next file. Whether there is one.
    fn next_file(&mut self) -> io::Result<bool> {
        let Some(path) = self.files.pop_front() else {
            return Ok(false);
        };
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = File::open(&path).map_err(named)?;
        self.now = match path.to_string_lossy().ends_with(PACKED) {
            true => unpacked(file).map_err(named)?,
            false => Box::new(BufReader::new(file)),
        };
        Ok(true)
    }
}

#[cfg(feature = "gzip")]
fn unpacked(file: File) -> io::Result<Box<dyn BufRead>> {
    Ok(Box::new(BufReader::new(flate2::read::GzDecoder::new(BufReader::new(file)))))
}

#[cfg(not(feature = "gzip"))]
fn unpacked(_: File) -> io::Result<Box<dyn BufRead>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "expected a segment that is not compressed, found one that is; unpack it with `gunzip`, or build with the feature `gzip`",
    ))
}

impl Read for TraceText {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut found = self.fill_buf()?;
        let read = found.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for TraceText {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.now.fill_buf()?.is_empty() && self.next_file()? {}
        self.now.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.now.consume(bytes);
    }
}
