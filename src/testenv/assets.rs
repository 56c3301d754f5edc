//! Selects the folder of the programs: a folder on the command line, a subfolder of `--bin-dir`, or a folder of the user.

use std::path::{Path, PathBuf};

use portico_gostd::os::error_text;

use super::format::{go_architecture, version};

/// Arguments that select the folder.
pub(super) struct Selection<'a> {
    /// Folder or version of Kubernetes, if given.
    pub(super) text: Option<&'a str>,
    /// Value of `--bin-dir`, if given.
    pub(super) bin_dir: Option<&'a Path>,
}

/// Selected folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assets {
    pub(super) dir: PathBuf,
    /// Warning to print, if another version than the served version was requested.
    pub(super) warning: Option<String>,
}

/// Returns the selected folder. If another version was requested, this is the folder of the served version, with a warning.
///
/// # Errors
/// Returns an error if the version is invalid or the home folder of the user is not known.
pub(super) fn select(selection: &Selection<'_>) -> Result<Assets, String> {
    let mut warning = None;
    match selection.text {
        Some(text) if !is_version(text) && (selection.bin_dir.is_some() || is_like_a_version(text)) => {
            return Err(format!(
                "{text} is not a version of Kubernetes; write ./{text} for a folder of this name"
            ));
        }
        Some(text) if !is_version(text) => return Ok(Assets { dir: PathBuf::from(text), warning }),
        Some(text) if !is_served(text) => {
            warning = Some(format!(
                "Kubernetes {text} was requested; this program serves {}, which is used instead. To emulate an earlier one, set \
                  APIServer.Configure().Set(\"emulated-version\", ...)",
                version()
            ));
        }
        _ => {}
    }
    let base = match selection.bin_dir {
        Some(dir) => dir.to_owned(),
        None => user_folder()?,
    };
    let (os, arch) = (std::env::consts::OS, go_architecture());
    let dir = base.join("k8s").join(format!("{}-portico-{os}-{arch}", version()));
    Ok(Assets { dir, warning })
}

/// Returns the user's folder for these programs.
fn user_folder() -> Result<PathBuf, String> {
    let path_in =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = path_in("XDG_DATA_HOME").or_else(|| Some(path_in("HOME")?.join(".local/share")));
    let data = data.ok_or("neither HOME nor XDG_DATA_HOME is set: name a folder")?;
    Ok(data.join("portico/testenv"))
}

/// Returns true if `text` is a version as setup-envtest accepts it: `1.36.3`, `1.36`, `1.36.x`, `~1.36` or `latest`, also with
/// a final `!`.
fn is_version(text: &str) -> bool {
    let bare = without_operators(text);
    let is_part = |part: &str| matches!(part, "x" | "*") || part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<_> = bare.split('.').collect();
    bare == "latest" || (parts.len() >= 2 && parts.iter().all(|part| !part.is_empty() && is_part(part)))
}

/// Returns true if `text` resembles a version, such as `1.3x`.
fn is_like_a_version(text: &str) -> bool {
    let is_number = without_operators(text).starts_with(|first: char| first.is_ascii_digit());
    is_number && text.contains('.') && !text.contains(std::path::is_separator)
}

/// Returns true if the version `text` includes the served version.
fn is_served(text: &str) -> bool {
    let served = version();
    let is_same_part =
        |(requested, served): (&str, &str)| matches!(requested, "x" | "*") || requested == served;
    // ~1.36.1 selects 1.36.1 and all later patch versions.
    let parts = if text.starts_with('~') { 2 } else { 3 };
    without_operators(text) == "latest"
        || without_operators(text).split('.').zip(served.split('.')).take(parts).all(is_same_part)
}

fn without_operators(text: &str) -> &str {
    text.trim_end_matches('!').trim_start_matches(['~', 'v'])
}

/// Returns the absolute path of the folder.
///
/// # Errors
/// Returns an error if the current directory does not exist.
pub(super) fn absolute(dir: &Path) -> Result<PathBuf, String> {
    std::path::absolute(dir).map_err(|error| format!("{}: {}", dir.display(), error_text(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_distinguished_from_folders_and_the_served_one_is_used_for_all() {
        for folder in ["bin", "./1.36", "/opt/1.36.3", "1", "testbin.d"] {
            assert!(!is_version(folder), "{folder}");
        }
        let served = version();
        let (minor, _) = served.rsplit_once('.').unwrap();
        for valid in
            [served.clone(), minor.to_owned(), format!("{minor}.x!"), format!("~{minor}.0"), "latest".into()]
        {
            assert!(is_version(&valid) && is_served(&valid), "{valid}");
        }
        for (mistyped, bin_dir) in [("1.3x", None), ("v1.36.y", None), ("bin", Some(Path::new("d")))] {
            let error = select(&Selection { text: Some(mistyped), bin_dir }).unwrap_err();
            assert!(error.contains(&format!("{mistyped} is not a version")), "{error}");
        }
        assert!(is_version("1.20.x") && !is_served("1.20.x"));
        let select_version =
            |text| select(&Selection { text: Some(text), bin_dir: Some(Path::new("d")) }).unwrap();
        let (unserved, served_minor) = (select_version("1.20"), select_version(minor));
        assert_eq!((&unserved.dir, served_minor.warning), (&served_minor.dir, None));
        let warning = unserved.warning.unwrap();
        assert!(warning.contains("1.20") && warning.contains(&served), "{warning}");
    }
}
