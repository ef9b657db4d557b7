//! stdout, with waits of any length.
//!
//! Bytes given to the system cannot be taken back: a pipe with a paused reader delivers them minutes later. So the
//! writer gives the system only as many bytes as it takes at once, and can change its mind before each write.

use std::io;

pub(super) use system::Output;

#[cfg(unix)]
mod system {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::pipe::PIPE_BUF;
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::{AsFd, OwnedFd};

    /// While there is no room, the interval between two questions whether the write is still wanted.
    const ASK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

    /// Where lines go.
    #[derive(Debug)]
    pub(crate) struct Output {
        file: File,
        piece: usize,
    }

    impl Output {
        /// This process's stdout, without the lock and buffer of Rust's own handle.
        pub(crate) fn stdout() -> io::Result<Self> {
            Self::to(io::stdout().as_fd().try_clone_to_owned()?)
        }

        pub(super) fn to(descriptor: OwnedFd) -> io::Result<Self> {
            let file = File::from(descriptor);
            // A file always has room. For other outputs, room is known for this many bytes only.
            let piece = match file.metadata()?.is_file() {
                true => usize::MAX,
                false => PIPE_BUF,
            };
            Ok(Self { file, piece })
        }

        /// No more than so many bytes are written without waiting for room again.
        pub(crate) fn piece(&self) -> usize {
            self.piece
        }

        /// Whether a piece has room now.
        pub(crate) fn has_room(&self) -> io::Result<bool> {
            self.poll(&Timespec::default())
        }

        /// Waits for room for a piece, or until the write is no longer `wanted`.
        pub(crate) fn wait_for_room(&self, mut wanted: impl FnMut() -> bool) -> io::Result<()> {
            while wanted() && !self.poll(&ASK_EVERY)? {}
            Ok(())
        }

        fn poll(&self, patience: &Timespec) -> io::Result<bool> {
            let mut fds = [PollFd::new(&self.file, PollFlags::OUT)];
            match poll(&mut fds, Some(patience)) {
                Ok(0) | Err(Errno::INTR) => Ok(false),
                // If an error is ready, the next write tells which. Some systems cannot poll a device.
                Ok(_) => Ok(true),
                Err(error) => Err(error.into()),
            }
        }

        /// Writes the beginning of `bytes`, at most one piece, and returns the number of bytes written.
        pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.file.write(&bytes[..bytes.len().min(self.piece)]) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) =>
                {
                    Ok(0)
                }
                result => result,
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io::{self, Write};

    /// The output for lines. This system cannot tell whether there is room, so a write may wait.
    #[derive(Debug)]
    pub struct Output(io::Stdout);

    impl Output {
        pub fn stdout() -> io::Result<Self> {
            Ok(Self(io::stdout()))
        }

        pub fn piece(&self) -> usize {
            4_096
        }

        pub fn has_room(&self) -> io::Result<bool> {
            Ok(true)
        }

        pub fn wait_for_room(&self, _wanted: impl FnMut() -> bool) -> io::Result<()> {
            Ok(())
        }

        pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let piece = &bytes[..bytes.len().min(self.piece())];
            self.0.write_all(piece)?;
            self.0.flush()?;
            Ok(piece.len())
        }
    }
}

impl Output {
    /// Writes all of `bytes`, with a wait for room before each piece.
    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.wait_for_room(|| true)?;
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_pipe_is_filled_and_never_waited_for_in_a_write() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut output = Output::to(writer.into()).expect("an output");
        let piece = vec![b'x'; output.piece()];
        let mut written = 0;
        while output.has_room().expect("a pipe") {
            // A blocking write would never end here: nothing reads the pipe yet.
            written += output.write(&piece).expect("a write");
        }
        assert!(written >= piece.len());
        let mut asked = 0;
        let wanted = || {
            asked += 1;
            asked < 3
        };
        output.wait_for_room(wanted).expect("a pipe");
        assert_eq!((asked, output.has_room().expect("a pipe")), (3, false));

        let mut read = vec![0; written];
        reader.read_exact(&mut read).expect("what was written");
        output.wait_for_room(|| true).expect("a pipe");
        drop(reader);
        assert!(output.has_room().expect("a pipe"), "a write tells that the reader is gone");
        let error = output.write(&piece).expect_err("nothing reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_file_takes_all_at_once() {
        let file = std::fs::File::open("/dev/null").expect("a device");
        assert!(Output::to(file.into()).expect("an output").piece() < usize::MAX);
        let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).expect("a file");
        let output = Output::to(file.into()).expect("an output");
        assert_eq!(output.piece(), usize::MAX);
        assert!(output.has_room().expect("a file"));
    }
}
