//! Full traces on a disk, written by a thread of their own: a disk may block, and the worker must not.

use super::{NotTaken, Sink};
use crate::private;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// What takes the lines on the thread.
pub(super) trait Lines: Send + 'static {
    /// Takes a line without its line break.
    ///
    /// # Errors
    /// What the system said.
    fn line(&mut self, line: &str) -> io::Result<Took>;

    /// Hands everything that it has to the system.
    ///
    /// # Errors
    /// What the system said.
    fn hand_over(&mut self) -> io::Result<()>;
}

/// What became of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// It was taken.
    Yes,
    /// No line is taken any more: what is full, in words.
    Enough(String),
}

/// Writes a full trace from a separate thread: to a file, or to a folder of files.
#[derive(Debug)]
pub(crate) struct FileSink {
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<io::Result<Took>>>,
    /// What is written, in words.
    what: String,
}

impl FileSink {
    /// Creates (or empties) the file. Up to `backlog` lines wait to be written before a gap is recorded.
    ///
    /// # Errors
    /// If the file or the thread cannot be created.
    pub(crate) fn create(path: impl AsRef<Path>, backlog: usize) -> io::Result<Self> {
        let path = path.as_ref();
        let file = BufWriter::new(private::create(path)?);
        Self::start(file, format!("the trace file {path:?}"), backlog)
    }

    pub(super) fn start(mut to: impl Lines, what: String, backlog: usize) -> io::Result<Self> {
        let (lines, backlog) = sync_channel(backlog.max(1));
        #[expect(
            clippy::disallowed_methods,
            reason = "a disk may block: only a thread of its own keeps that from the worker"
        )]
        let writer = std::thread::Builder::new()
            .name("leasehold-trace".into())
            .spawn(move || write_lines(&mut to, &backlog))?;
        Ok(Self { lines: Some(lines), writer: Some(writer), what })
    }

    fn closed(&self) -> String {
        format!("{} is closed", self.what)
    }

    /// Waits for the writer. The writer ends at an error, at its limit, or after the last line.
    fn join(&mut self) -> Result<(), NotTaken> {
        self.lines = None;
        let why = match self.writer.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(Took::Yes))) => return Ok(()),
            Some(Ok(Ok(Took::Enough(what)))) => return Err(NotTaken::Enough(what)),
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(_)) => "its thread panicked".to_owned(),
        };
        Err(NotTaken::Broken(format!("{} cannot be written: {why}", self.what)))
    }
}

fn write_lines(to: &mut impl Lines, lines: &Receiver<String>) -> io::Result<Took> {
    loop {
        // Flush whenever the worker is idle: a killed process then loses only the last moment.
        let line = match lines.try_recv() {
            Ok(line) => line,
            Err(_) => {
                to.hand_over()?;
                match lines.recv() {
                    Ok(line) => line,
                    Err(_) => return to.hand_over().map(|()| Took::Yes),
                }
            }
        };
        if let enough @ Took::Enough(_) = to.line(&line)? {
            return Ok(enough);
        }
    }
}

impl Lines for BufWriter<File> {
    fn line(&mut self, line: &str) -> io::Result<Took> {
        self.write_all(line.as_bytes())?;
        self.write_all(b"\n")?;
        Ok(Took::Yes)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.flush()
    }
}

impl Sink for FileSink {
    fn offer(&mut self, line: String) -> Result<(), NotTaken> {
        let sent = match &self.lines {
            Some(lines) => lines.try_send(line),
            None => return Err(NotTaken::Broken(self.closed())),
        };
        match sent {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(NotTaken::Full),
            Err(TrySendError::Disconnected(_)) => {
                // The writer is gone: joining does not wait.
                Err(self.join().err().unwrap_or_else(|| NotTaken::Broken(self.closed())))
            }
        }
    }

    fn close(&mut self, last: Vec<String>) -> Result<(), String> {
        if let Some(lines) = &self.lines {
            for line in last {
                if lines.send(line).is_err() {
                    break;
                }
            }
        }
        self.join().map_err(|why| match why {
            NotTaken::Broken(why) | NotTaken::Enough(why) => why,
            NotTaken::Full => self.closed(),
        })
    }
}
