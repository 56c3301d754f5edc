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
    let own = std::env::current_exe().and_then(|own| file_id(&own)).ok();
    Name::ALL.into_iter().all(|(name, file)| {
        let found = file_id(&dir.join(file)).ok();
        found.is_some() && (name == Name::Kubectl || found == own)
    })
}

/// Creates the programs in `dir`, and returns a description of each file.
///
/// # Errors
/// Returns a message of one line that names the file.
pub(super) fn install(dir: &Path, link: Link) -> Result<String, String> {
    fs::create_dir_all(dir).map_err(failed(dir))?;
    let own = own_file()?;
    let mut made = Vec::new();
    for (name, file) in Name::ALL {
        let path = dir.join(file);
        let other = (name == Name::Kubectl).then(|| kubectl_of_path(dir, &own)).flatten();
        let how = match other {
            Some(kubectl) => create(&path, |new| symlink(&kubectl, new).map(|()| "symbolic link to"))
                .map(|how| format!("{how} {}", kubectl.display())),
            None => {
                create(&path, |new| made_of(&own, new, link)).map(|how| format!("{how} {}", own.display()))
            }
        };
        made.push(format!("{}: {}", path.display(), how.map_err(failed(&path))?));
    }
    Ok(made.join("\n"))
}

/// Creates setup-envtest in the folder LOCALBIN of a Makefile: a file whose name ends in the version `portico`, and a symbolic
/// link to it. The Makefile's `go-install-tool` does not download setup-envtest if these files exist.
///
/// # Errors
/// Returns a message of one line that names the file.
pub(super) fn setup_envtest(dir: &Path) -> Result<String, String> {
    fs::create_dir_all(dir).map_err(failed(dir))?;
    let dir = super::assets::absolute(dir)?;
    let own = own_file()?;
    let (file, name) = (dir.join(format!("{SETUP_ENVTEST}-portico")), dir.join(SETUP_ENVTEST));
    let how = create(&file, |new| made_of(&own, new, Link::Lasting)).map_err(failed(&file))?;
    create(&name, |new| symlink(&file, new).map(|()| "symbolic link to")).map_err(failed(&name))?;
    let made = format!("{}: {how} {}", file.display(), own.display());
    Ok(format!("{made}\n\n  make test ENVTEST_VERSION=portico"))
}

/// Returns the path of this program's file.
fn own_file() -> Result<PathBuf, String> {
    let own = std::env::current_exe().and_then(fs::canonicalize);
    own.map_err(|error| format!("cannot find this program's file: {}", error_text(&error)))
}

fn made_of(own: &Path, new: &Path, link: Link) -> io::Result<&'static str> {
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
fn create(path: &Path, make: impl FnOnce(&Path) -> io::Result<&'static str>) -> io::Result<&'static str> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(new);
    let made = make(&new).and_then(|how| fs::rename(&new, path).map(|()| how));
    // Renaming a file to another hard link of the same file does nothing, so the temporary name may still exist.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => made.and(Err(error)),
        _ => made,
    }
}

/// Returns the first kubectl on the PATH that is neither this program nor in `dir`.
fn kubectl_of_path(dir: &Path, own: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(dir).ok()?;
    let folders = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
    let found = folders.into_iter().filter_map(|folder| fs::canonicalize(folder).ok());
    let found = found.filter(|candidate| *candidate != folder).map(|folder| folder.join("kubectl"));
    found.into_iter().find(|kubectl| {
        fs::metadata(kubectl).is_ok_and(|file| is_program(&file))
            && fs::canonicalize(kubectl).is_ok_and(|path| path != own)
    })
}

fn failed(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {}", path.display(), error_text(&error))
}
