//! Files and folders readable by one user: dead letters hold payloads, and traces hold names of processed streams and
//! workers.
//!
//! On Unix, a file created here has the mode 0600 and a folder 0700, or less if the process's umask asks for less.
//! Existing files and folders keep their mode. Elsewhere, files have the permissions of their folder.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// How such a file is opened.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Creates a file, or empties it.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Creates a folder. With `all`: also creates its parent folders, and accepts an existing folder.
pub(crate) fn create_folder(path: &Path, all: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.recursive(all).create(path)
}

/// The permissions of what is there, for tests.
#[cfg(all(test, unix))]
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().expect("it is there").permissions().mode() & 0o777
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_new_file_is_private_and_an_old_one_keeps_its_mode() {
        let root = std::env::temp_dir().join(format!("leasehold-private-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let (inner, file) = (root.join("a/b"), root.join("a/b/file"));
        create_folder(&inner, true).unwrap();
        create(&file).unwrap();
        assert_eq!((mode(&root), mode(&inner), mode(&file)), (0o700, 0o700, 0o600));
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o750)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        create_folder(&inner, true).unwrap();
        create(&file).unwrap();
        assert_eq!((mode(&inner), mode(&file)), (0o750, 0o640));
        assert!(create_folder(&inner, false).is_err(), "it is there");
        fs::remove_dir_all(&root).unwrap();
    }
}
