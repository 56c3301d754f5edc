//! Creates the programs in the folder of KUBEBUILDER_ASSETS. A new file replaces an existing file atomically, so that several
//! processes can create the programs at the same time, and while tests run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use portico_gostd::os::error_text;
use portico_kit::platform::{file_id, is_program, symlink};

use super::names::{Name, SETUP_ENVTEST};

/// Kind of link from the files to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Hard links, or copies on another file system: installed files do not change when the program is replaced.
    Lasting,
    /// Symbolic links: installed files follow the program when it is replaced.
    Symbolic,
}

/// Returns true if all files exist and are links to this program; kubectl may be another program. Copies of this program
/// do not count.
pub(super) fn is_current(dir: &Path) -> bool {
    let own_id = std::env::current_exe().and_then(|path| file_id(&path)).ok();
    Name::ALL.into_iter().all(|(name, file)| {
        let id = file_id(&dir.join(file)).ok();
        id.is_some() && (name == Name::Kubectl || id == own_id)
    })
}

/// Creates the programs in `dir`, and returns a description of each file.
///
/// # Errors
/// Returns a message of one line that names the file.
pub(super) fn install(dir: &Path, link: Link) -> Result<String, String> {
    fs::create_dir_all(dir).map_err(file_error(dir))?;
    let own = own_path()?;
    let mut descriptions = Vec::new();
    for (name, file) in Name::ALL {
        let path = dir.join(file);
        let existing_kubectl = (name == Name::Kubectl).then(|| find_kubectl(dir, &own)).flatten();
        let how = match existing_kubectl {
            Some(kubectl) => {
                create_atomically(&path, |new| symlink(&kubectl, new).map(|()| "symbolic link to"))
                    .map(|how| format!("{how} {}", kubectl.display()))
            }
            None => create_atomically(&path, |new| link_or_copy(&own, new, link))
                .map(|how| format!("{how} {}", own.display())),
        };
        descriptions.push(format!("{}: {}", path.display(), how.map_err(file_error(&path))?));
    }
    Ok(descriptions.join("\n"))
}

/// Creates setup-envtest in the folder LOCALBIN of a Makefile: a file whose name ends in the version `portico`, and a symbolic
/// link to it. The Makefile's `go-install-tool` does not download setup-envtest if these files exist.
///
/// # Errors
/// Returns a message of one line that names the file.
pub(super) fn setup_envtest(dir: &Path) -> Result<String, String> {
    fs::create_dir_all(dir).map_err(file_error(dir))?;
    let dir = super::assets::absolute(dir)?;
    let own = own_path()?;
    let (file, name) = (dir.join(format!("{SETUP_ENVTEST}-portico")), dir.join(SETUP_ENVTEST));
    let how =
        create_atomically(&file, |new| link_or_copy(&own, new, Link::Lasting)).map_err(file_error(&file))?;
    create_atomically(&name, |new| symlink(&file, new).map(|()| "symbolic link to"))
        .map_err(file_error(&name))?;
    let description = format!("{}: {how} {}", file.display(), own.display());
    Ok(format!("{description}\n\n  make test ENVTEST_VERSION=portico"))
}

/// Returns the path of this program's file.
fn own_path() -> Result<PathBuf, String> {
    let own = std::env::current_exe().and_then(fs::canonicalize);
    own.map_err(|error| format!("cannot find this program's file: {}", error_text(&error)))
}

fn link_or_copy(own: &Path, new: &Path, link: Link) -> io::Result<&'static str> {
    if link == Link::Symbolic {
        return symlink(own, new).map(|()| "symbolic link to");
    }
    // Hard links fail across file systems, and on some systems for files that the user may not write.
    match fs::hard_link(own, new) {
        Ok(()) => Ok("the same file as"),
        Err(_) => fs::copy(own, new).map(|_| "copy of"),
    }
}

/// Creates a file under a temporary name with `make`, and renames it to `path`.
fn create_atomically(
    path: &Path,
    make: impl FnOnce(&Path) -> io::Result<&'static str>,
) -> io::Result<&'static str> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(new);
    let result = make(&new).and_then(|how| fs::rename(&new, path).map(|()| how));
    // Renaming a file to another hard link of the same file does nothing, so the temporary name may still exist.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => result.and(Err(error)),
        _ => result,
    }
}

/// Returns the first kubectl on the PATH that is neither this program nor in `dir`.
fn find_kubectl(dir: &Path, own: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(dir).ok()?;
    let folders = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
    let folders = folders.into_iter().filter_map(|folder| fs::canonicalize(folder).ok());
    let candidates = folders.filter(|candidate| *candidate != folder).map(|folder| folder.join("kubectl"));
    candidates.into_iter().find(|kubectl| {
        fs::metadata(kubectl).is_ok_and(|file| is_program(&file))
            && fs::canonicalize(kubectl).is_ok_and(|path| path != own)
    })
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {}", path.display(), error_text(&error))
}
