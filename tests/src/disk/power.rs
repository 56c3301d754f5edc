//! A power loss: the data folder gets the content of a disk that kept everything that was synced, and any part of the unsynced
//! writes, torn at sector boundaries.
//!
//! The library (shim.c) records the synced content of each file, and a journal of names. A name that was created, changed or
//! removed since its folder was synced may have its old or its new state; such changes are lost from the last one backwards.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rand::RngExt;
use rand::rngs::StdRng;

use super::Failure;

const SECTOR: usize = 512;
/// Mode of the files in data folders.
const FILE_MODE: u32 = 0o600;

/// Unsynced sectors that survive the loss.
#[derive(Clone, Copy, Debug)]
enum Survival {
    Nothing,
    Everything,
    Some,
}

/// Marks everything in a data folder as synced.
pub(super) fn mark_synced(shadow: &Path, data: &Path) -> Result<(), Failure> {
    let files = shadow.join("files");
    if files.exists() {
        fs::remove_dir_all(&files)?;
    }
    fs::create_dir_all(&files)?;
    let mut names = String::new();
    for (number, path) in files_of(data, data)?.into_iter().enumerate() {
        fs::copy(data.join(&path), files.join(number.to_string()))?;
        names.push_str(&format!("{number}\t{path}\n"));
    }
    fs::write(shadow.join("names"), names)?;
    Ok(fs::write(shadow.join("journal"), "")?)
}

/// Returns the paths of all files below a folder, relative to `base`.
fn files_of(base: &Path, folder: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    if !folder.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_of(base, &path)?);
        } else {
            found.push(path.strip_prefix(base)?.to_string_lossy().into_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Changes the folder of a killed process to its state after a power loss; returns a description of the lost data.
pub fn lose_power(shadow: &Path, data: &Path, random: &mut StdRng) -> Result<String, Failure> {
    let survives = match random.random_range(0..4) {
        0 => Survival::Nothing,
        1 => Survival::Everything,
        _ => Survival::Some,
    };
    let names = fs::read_to_string(shadow.join("names"))?;
    let journal = fs::read_to_string(shadow.join("journal"))?;
    let (durable, last, forgotten) = names_after(&names, &journal, survives, random);
    let mut written = BTreeMap::new();
    for (path, number) in &last {
        // The kill may have happened between a change of names and its journal entry.
        if let Ok(content) = fs::read(data.join(path)) {
            let mode = fs::metadata(data.join(path))?.permissions().mode();
            written.insert(*number, (content, mode));
        }
    }
    for path in files_of(data, data)? {
        fs::remove_file(data.join(path))?;
    }
    let mut lost = 0;
    for (path, number) in &durable {
        let synced = fs::read(shadow.join("files").join(number.to_string())).unwrap_or_default();
        let (content, mode) = match written.get(number) {
            Some((content, mode)) => (tear(&synced, content, survives, random, &mut lost), *mode),
            None => (synced, FILE_MODE),
        };
        let path = data.join(path);
        fs::create_dir_all(path.parent().unwrap_or(data))?;
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    Ok(format!("{lost} sectors and {forgotten} changes of names lost, of what was not synced {survives:?}"))
}

type Names = BTreeMap<PathBuf, u64>;

/// Returns the names after the loss and before it, and the number of lost changes.
fn names_after(names: &str, journal: &str, survives: Survival, random: &mut StdRng) -> (Names, Names, usize) {
    let begin = names.lines().filter_map(|line| line.split_once('\t'));
    let begin: Names = begin.filter_map(|(number, path)| Some((path.into(), number.parse().ok()?))).collect();
    let changes: Vec<Vec<&str>> = journal.lines().map(|line| line.split('\t').collect()).collect();
    let folder = |change: &[&str]| -> PathBuf {
        match change {
            ["sync", folder, ..] => PathBuf::from(folder),
            ["create", _, path] | ["rename" | "unlink", path, ..] => {
                Path::new(path).parent().unwrap_or(Path::new("")).to_owned()
            }
            _ => PathBuf::new(),
        }
    };
    // For each folder, the line up to which its changes survive: at least up to its last sync.
    let mut until: HashMap<PathBuf, usize> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        if change.first() == Some(&"sync") {
            until.insert(folder(change), at);
        }
    }
    for folder in changes.iter().map(|change| folder(change)).collect::<BTreeSet<_>>() {
        let synced = until.get(&folder).copied().unwrap_or_default();
        let more = match survives {
            Survival::Nothing => 0,
            Survival::Everything => changes.len(),
            Survival::Some => random.random_range(0..=changes.len() - synced),
        };
        until.entry(folder).and_modify(|until| *until += more).or_insert(more);
    }
    let (mut durable, mut last, mut forgotten) = (begin.clone(), begin, 0);
    for (at, change) in changes.iter().enumerate() {
        apply(&mut last, change);
        if until.get(&folder(change)).is_some_and(|until| at < *until) {
            apply(&mut durable, change);
        } else if change.first() != Some(&"sync") {
            forgotten += 1;
        }
    }
    (durable, last, forgotten)
}

fn apply(names: &mut Names, change: &[&str]) {
    match change {
        ["create", number, path] => {
            if let Ok(number) = number.parse() {
                names.insert((*path).into(), number);
            }
        }
        ["rename", from, to] => {
            if let Some(number) = names.remove(Path::new(from)) {
                names.insert((*to).into(), number);
            }
        }
        ["unlink", path, ..] => {
            names.remove(Path::new(path));
        }
        _ => {}
    }
}

/// Returns the content of a file after the loss: each sector is the synced or the written one.
fn tear(synced: &[u8], written: &[u8], survives: Survival, random: &mut StdRng, lost: &mut u64) -> Vec<u8> {
    let keep = |random: &mut StdRng| match survives {
        Survival::Nothing => false,
        Survival::Everything => true,
        Survival::Some => random.random_bool(0.5),
    };
    let size = if synced.len() != written.len() && keep(random) { written.len() } else { synced.len() };
    let mut content = vec![0; size];
    for (at, sector) in content.chunks_mut(SECTOR).enumerate() {
        let part = |data: &[u8]| -> Vec<u8> {
            let from = (at * SECTOR).min(data.len());
            let mut part = data[from..(from + sector.len()).min(data.len())].to_vec();
            part.resize(sector.len(), 0);
            part
        };
        let (old, new) = (part(synced), part(written));
        let written_survives = old == new || keep(random);
        *lost += u64::from(!written_survives);
        sector.copy_from_slice(if written_survives { &new } else { &old });
    }
    *lost += (written.len().saturating_sub(size)).div_ceil(SECTOR) as u64;
    content
}

#[cfg(test)]
#[path = "power_tests.rs"]
mod tests;
