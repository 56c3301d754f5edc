//! Makes the folder that KUBEBUILDER_ASSETS names. Every file appears whole, in the place of what had its name, so that several
//! may do it at the same time and tests may run meanwhile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use portico_gostd::os::error_text;
use portico_kit::platform::{file_id, is_program, symlink};

use super::names::{Name, SETUP_ENVTEST};

/// How the names lead to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Second names of its file, or copies of it on another file system: what is installed stays as it is, whatever becomes of the
    /// program.
    Lasting,
    /// Symbolic links: what is installed follows a program that is replaced in its place.
    Symbolic,
}

/// Whether all names are there, and lead to this program where they are its. Copies do not: they are made anew.
pub(super) fn is_current(dir: &Path) -> bool {
    let own = std::env::current_exe().and_then(|own| file_id(&own)).ok();
    Name::ALL.into_iter().all(|(name, file)| {
        let found = file_id(&dir.join(file)).ok();
        found.is_some() && (name == Name::Kubectl || found == own)
    })
}

/// Makes the names; says what was made.
///
/// # Errors
/// One line that names the file.
pub(super) fn install(dir: &Path, link: Link) -> Result<String, String> {
    fs::create_dir_all(dir).map_err(failed(dir))?;
    let own = own_file()?;
    let mut made = Vec::new();
    for (name, file) in Name::ALL {
        let path = dir.join(file);
        let other = (name == Name::Kubectl).then(|| kubectl_of_path(dir, &own)).flatten();
        let how = match other {
            Some(kubectl) => place(&path, |new| symlink(&kubectl, new).map(|()| "symbolic link to"))
                .map(|how| format!("{how} {}", kubectl.display())),
            None => {
                place(&path, |new| made_of(&own, new, link)).map(|how| format!("{how} {}", own.display()))
            }
        };
        made.push(format!("{}: {}", path.display(), how.map_err(failed(&path))?));
    }
    Ok(made.join("\n"))
}

/// Makes setup-envtest in a Makefile's LOCALBIN, as its `go-install-tool` leaves it for `ENVTEST_VERSION=portico`: a file with the
/// version in its name, and a symbolic link to it. Existing files are not fetched.
///
/// # Errors
/// One line that names the file.
pub(super) fn setup_envtest(dir: &Path) -> Result<String, String> {
    fs::create_dir_all(dir).map_err(failed(dir))?;
    let dir = super::place::absolute(dir)?;
    let own = own_file()?;
    let (file, name) = (dir.join(format!("{SETUP_ENVTEST}-portico")), dir.join(SETUP_ENVTEST));
    let how = place(&file, |new| made_of(&own, new, Link::Lasting)).map_err(failed(&file))?;
    place(&name, |new| symlink(&file, new).map(|()| "symbolic link to")).map_err(failed(&name))?;
    let made = format!("{}: {how} {}", file.display(), own.display());
    Ok(format!("{made}\n\n  make test ENVTEST_VERSION=portico"))
}

/// The file of this program.
fn own_file() -> Result<PathBuf, String> {
    let own = std::env::current_exe().and_then(fs::canonicalize);
    own.map_err(|error| format!("cannot find this program's file: {}", error_text(&error)))
}

fn made_of(own: &Path, new: &Path, link: Link) -> io::Result<&'static str> {
    if link == Link::Symbolic {
        return symlink(own, new).map(|()| "symbolic link to");
    }
    // Second names are refused across file systems, and by some systems to those who may not write the file.
    match fs::hard_link(own, new) {
        Ok(()) => Ok("the same file as"),
        Err(_) => fs::copy(own, new).map(|_| "copy of"),
    }
}

/// Makes a file beside its place and moves it there.
fn place(path: &Path, make: impl FnOnce(&Path) -> io::Result<&'static str>) -> io::Result<&'static str> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(new);
    let made = make(&new).and_then(|how| fs::rename(&new, path).map(|()| how));
    // Renaming one name of a file to another name of it does nothing, and leaves both.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => made.and(Err(error)),
        _ => made,
    }
}

/// The kubectl that a shell would run, unless it is this program or lies in the folder itself.
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
