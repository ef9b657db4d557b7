//! A dead-letter sink that writes a file.

use super::{DeadLetter, Letter, NotStored};
use crate::private;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// Appends records that a handler cannot process to a file, one line of JSON each. A record counts as processed when
/// its line is on the disk (`fsync`).
///
/// ```json
/// {"stream_shard":"shardId-000000000000","sequence_number":"4951…","sub_sequence_number":0,"partition_key":"customer-7",
///  "arrival_ms":1700000000000,"attempts":3,"error":"no such customer","data":"eyJpZCI6N30="}
/// ```
///
/// `data` is the payload in Base64; `explicit_hash_key` is present if known, in decimal digits. A separate thread
/// writes the file, and opens the file anew after an error. A file moved away while the worker is idle is noticed
/// only after the next error: give every worker a separate file and read the file in place.
///
/// A new file has the mode 0600 on Unix, since payloads are private: only the process's user reads the file. An
/// existing file keeps its mode.
#[derive(Debug)]
pub struct DeadLetterFile {
    path: PathBuf,
    lines: Mutex<Sender<Line>>,
}

struct Line {
    text: String,
    done: oneshot::Sender<io::Result<()>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    stream_shard: &'a str,
    sequence_number: String,
    sub_sequence_number: u64,
    partition_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    explicit_hash_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival_ms: Option<i64>,
    attempts: u32,
    error: &'a str,
    data: String,
}

impl DeadLetterFile {
    /// A sink that appends to this file, and creates a missing file.
    ///
    /// # Errors
    /// If the file cannot be opened, or the thread cannot be started.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let file = open(&path)?;
        let (lines, waiting) = channel();
        let of = path.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "a disk may block: only a thread of its own keeps that from the worker"
        )]
        std::thread::Builder::new()
            .name("leasehold-dead-letters".into())
            .spawn(move || write_lines(&of, file, &waiting))?;
        Ok(Self { path, lines: Mutex::new(lines) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl DeadLetter for DeadLetterFile {
    type Error = NotStored;

    async fn store(&self, letter: Letter) -> Result<(), NotStored> {
        let (done, written) = oneshot::channel();
        let text =
            line(&letter).map_err(|error| NotStored::new(format!("the record has no JSON: {error}")))?;
        let sent = {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.send(Line { text, done })
        };
        let path = &self.path;
        match (sent, written.await) {
            (Ok(()), Ok(Ok(()))) => Ok(()),
            (Ok(()), Ok(Err(error))) => Err(NotStored::new(format!(
                "expected to be able to append to the dead-letter file {path:?}: {error}; correct that, and the record is written"
            ))),
            _ => Err(NotStored::new(format!(
                "expected the thread that writes the dead-letter file {path:?}, found that it has ended; restart the worker"
            ))),
        }
    }
}

fn line(letter: &Letter) -> serde_json::Result<String> {
    let record = &letter.record;
    let entry = Entry {
        stream_shard: record.shard.as_str(),
        sequence_number: record.position.sequence.to_string(),
        sub_sequence_number: record.position.sub,
        partition_key: &record.partition_key,
        explicit_hash_key: record.explicit_hash_key.map(|key| key.0.to_string()),
        arrival_ms: record.arrival.map(|arrival| arrival.0),
        attempts: letter.attempts,
        error: &letter.error,
        data: STANDARD.encode(&record.data),
    };
    serde_json::to_string(&entry)
}

/// Opens the file for appending, at the start of a line.
fn open(path: &Path) -> io::Result<File> {
    let mut file = private::options().create(true).append(true).read(true).open(path)?;
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        // An incomplete line does not count as a line.
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

fn write_lines(path: &Path, file: File, lines: &Receiver<Line>) {
    let mut file = Some(file);
    while let Ok(Line { text, done }) = lines.recv() {
        let written = write_line(path, &mut file, text);
        if written.is_err() {
            file = None;
        }
        // The shard may have been lost meanwhile.
        let _ = done.send(written);
    }
}

fn write_line(path: &Path, file: &mut Option<File>, mut text: String) -> io::Result<()> {
    let file = match file {
        Some(file) => file,
        none => none.insert(open(path)?),
    };
    text.push('\n');
    file.write_all(text.as_bytes())?;
    file.sync_data()
}
