//! A full trace as a folder of files that has a limit of size.

use super::file::{FileSink, Lines, Took};
use crate::private;
use crate::trace::folder::{self, PACKED};
use crate::trace::{limit_line, segment_line};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The least size of a segment, in bytes.
const LEAST: u64 = 4 << 10;
/// The disk space of a file is counted in blocks of this size.
const BLOCK: u64 = 4 << 10;

/// A folder for the traces of a worker: files of a limited size, and a limit for all of them. For
/// [`Builder::trace_folder`](crate::Builder::trace_folder).
///
/// Each life of a worker, from start to end, gets a folder `life-000001`, `life-000002`, … within this folder. The
/// trace of the life is written there in segments: `segment-000001.jsonl`, `segment-000002.jsonl`, … A full segment
/// is compressed with gzip (feature `gzip`, on by default), to about a sixth. `leasehold replay` reads the folder:
/// the newest life, or the life of a named life folder.
///
/// When all files together reach the limit, the oldest lives are removed, each as a whole. When only the present life
/// is left, its recording ends: the last line says this, and so does one warning in the log. The worker and the
/// flight recorder go on.
///
/// The trace of a long life therefore keeps the beginning. The end without the beginning would be of no use: a replay
/// starts at the first input, since the engine's state follows from all inputs. A copy of the state would be a
/// beginning, too, but only the writing version could read the copy, while later versions can read inputs. For the
/// last minutes before an event, use the [flight recorder](crate::Builder::flight_recorder). A restarted worker, as
/// in each deployment, begins a new life.
///
/// On Unix, new files have the mode 0600 and new folders 0700: only the process's user reads them. Existing folders
/// keep their modes.
///
/// The size of a trace grows with the worker's leases and with their reads. At 0.65 GB of lines a day, about 0.11 GB
/// after compression, the default limit of 2 GiB lasts for more than two weeks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFolder {
    path: PathBuf,
    segment: u64,
    limit: u64,
}

impl TraceFolder {
    /// Segments of 64 MiB, and 2 GiB for all lives together, in this folder. The folder is created if it is missing. It is for one
    /// worker at a time: a second one is refused when it starts.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), segment: 64 << 20, limit: 2 << 30 }
    }

    /// The size at which a segment ends, in bytes before compression; by default 64 MiB. Less than 4 KiB counts as 4
    /// KiB. A line is never divided: a longer line gets a segment alone.
    pub fn with_segment_bytes(mut self, bytes: u64) -> Self {
        self.segment = bytes.max(LEAST);
        self
    }

    /// The size of all files in the folder together, in bytes, counted in blocks of 4 KiB; by default 2 GiB. Less
    /// than two segments count as two segments. A segment is on the disk twice for a moment during its compression.
    pub fn with_limit_bytes(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Begins a life in the folder.
    pub(crate) fn create(&self, backlog: usize) -> io::Result<FileSink> {
        let limit = self.limit.max(self.segment.saturating_mul(2));
        let writer = Writer::begin(self, limit)?;
        FileSink::start(writer, format!("the trace folder {:?}", self.path), backlog)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes the segments of a life.
struct Writer {
    root: PathBuf,
    life: PathBuf,
    segment: u64,
    limit: u64,
    /// The number of the present segment, its path, and its bytes by now.
    number: u64,
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    /// The bytes of this life's earlier segments.
    finished: u64,
    /// Other lives, the newest first, and their bytes.
    others: Vec<(PathBuf, u64)>,
    /// Held as long as the folder is written to.
    _lock: File,
}

impl Writer {
    fn begin(folder: &TraceFolder, limit: u64) -> io::Result<Self> {
        let root = folder.path.clone();
        private::create_folder(&root, true)?;
        let lock = lock(&root)?;
        let mut others = Vec::new();
        for life in folder::lives(&root)?.into_iter().rev() {
            let bytes = size_of(&life)?;
            others.push((life, bytes));
        }
        let last = others.first().and_then(|(life, _)| folder::number_of(life));
        let life = folder::life(&root, last.unwrap_or(0) + 1);
        private::create_folder(&life, false)?;
        let path = folder::segment(&life, 1);
        Ok(Self {
            file: BufWriter::new(private::create(&path)?),
            root,
            life,
            segment: folder.segment,
            limit,
            number: 1,
            path,
            written: 0,
            finished: 0,
            others,
            _lock: lock,
        })
    }

    /// Ends the present segment and begins the next.
    fn next_segment(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.finished += blocks(finish(&self.path)?);
        self.number += 1;
        self.path = folder::segment(&self.life, self.number);
        self.file = BufWriter::new(private::create(&self.path)?);
        self.written = 0;
        self.write(&segment_line(self.number))
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")?;
        self.written += line.len() as u64 + 1;
        Ok(())
    }

    /// Makes room for `bytes` more bytes by removing earlier lives; whether the room suffices.
    fn has_room(&mut self, bytes: u64) -> io::Result<bool> {
        loop {
            let others: u64 = self.others.iter().map(|(_, bytes)| bytes).sum();
            if others + self.finished + blocks(self.written + bytes) <= self.limit {
                return Ok(true);
            }
            let Some((oldest, _)) = self.others.pop() else {
                return Ok(false);
            };
            fs::remove_dir_all(oldest)?;
        }
    }
}

impl Lines for Writer {
    fn line(&mut self, line: &str) -> io::Result<Took> {
        let bytes = line.len() as u64 + 1;
        if self.written > 0 && self.written + bytes > self.segment {
            self.next_segment()?;
        }
        // The last line fits with the line that tells of the limit.
        let last = limit_line(self.limit);
        if self.has_room(bytes + last.len() as u64 + 1)? {
            self.write(line)?;
            return Ok(Took::Yes);
        }
        self.write(&last)?;
        self.file.flush()?;
        Ok(Took::Enough(format!(
            "the trace folder {:?} has reached its limit of {} bytes",
            self.root, self.limit
        )))
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Keeps a second worker from a folder. A file system without locks gives no protection.
fn lock(root: &Path) -> io::Result<File> {
    let file = private::create(&root.join("lock"))?;
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "expected a folder that no other worker writes to, found one that is in use",
        )),
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(file),
    }
}

/// The disk space of a life's files.
fn size_of(life: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(life)? {
        bytes += blocks(entry?.metadata()?.len());
    }
    Ok(bytes)
}

fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK) * BLOCK
}

/// Compresses a segment that is complete, in place of the segment itself. Gives the bytes of what is there then.
#[cfg(feature = "gzip")]
fn finish(segment: &Path) -> io::Result<u64> {
    let named = |end: &str| {
        let mut name = segment.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let (part, packed) = (named(".part"), named(PACKED));
    let mut from = File::open(segment)?;
    let mut to = flate2::write::GzEncoder::new(private::create(&part)?, flate2::Compression::default());
    io::copy(&mut from, &mut to)?;
    let to = to.finish()?;
    to.sync_all()?;
    fs::rename(&part, &packed)?;
    fs::remove_file(segment)?;
    Ok(to.metadata()?.len())
}

#[cfg(not(feature = "gzip"))]
fn finish(segment: &Path) -> io::Result<u64> {
    let _ = PACKED;
    Ok(fs::metadata(segment)?.len())
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
