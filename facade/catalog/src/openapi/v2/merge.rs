//! Merges version 2 parts: the first part with a path keeps it; types with the same name are shared if they are equal and renamed
//! if they are not.
//!
//! Mirrors upstream's `MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters`. Pure functions.

use std::collections::{BTreeSet, HashMap};

use portico_machinery::Object;
use portico_machinery::openapi::{RawMembers, Section, SpecV2, rename};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const KINDS: &str = "x-kubernetes-group-version-kind";
/// Maximum passes over types that refer to each other.
const MAX_PASSES: usize = 64;

/// The document merged so far.
#[derive(Debug, Default)]
pub(super) struct Merger {
    spec: SpecV2,
}

/// Kind of a type, ordered as in upstream: by `group/version.kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KindRef {
    group: String,
    version: String,
    kind: String,
}

impl Merger {
    /// Merges one part.
    pub fn add(&mut self, mut part: SpecV2) {
        let existing = part.paths.keys().filter(|path| self.spec.paths.contains_key(*path)).count();
        if existing == part.paths.len() {
            return;
        }
        if existing > 0 {
            part.retain_paths(|path| !self.spec.paths.contains_key(path));
        }
        self.resolve_conflicts(&mut part);
        self.spec.paths.extend(part.paths);
        for (name, piece) in part.parameters {
            self.spec.parameters.entry(name).or_insert(piece);
        }
        for (name, piece) in part.definitions {
            match self.spec.definitions.get_mut(&name) {
                None => {
                    self.spec.definitions.insert(name, piece);
                }
                Some(shared) => {
                    if let Some(united) = unite_kinds(shared, &piece) {
                        *shared = united;
                    }
                }
            }
        }
    }

    /// Renames conflicting types. A type that refers to a renamed one has changed, so the check is repeated; upstream stops after
    /// one pass, after which a path can refer to a type of another part.
    fn resolve_conflicts(&self, part: &mut SpecV2) {
        for _ in 0..MAX_PASSES {
            let definitions =
                conflict_renames(&self.spec.definitions, &part.definitions, is_equal_except_kinds);
            let parameters =
                conflict_renames(&self.spec.parameters, &part.parameters, |a, b| is_equal(a.get(), b.get()));
            if definitions.is_empty() && parameters.is_empty() {
                return;
            }
            rename_all(part, &definitions, &parameters);
        }
    }

    /// Returns the merged document, sorted as upstream's encoder sorts maps.
    pub fn finish(mut self) -> SpecV2 {
        self.spec.paths.sort_unstable_keys();
        self.spec.definitions.sort_unstable_keys();
        self.spec.parameters.sort_unstable_keys();
        self.spec
    }
}

/// Returns new names for pieces of `source` that differ in `target`: `_v2`, `_v3`, ...; an equal piece under such a
/// name is reused.
fn conflict_renames(
    target: &RawMembers,
    source: &RawMembers,
    equal: impl Fn(&RawValue, &RawValue) -> bool,
) -> HashMap<String, String> {
    let mut renames = HashMap::new();
    let mut used: BTreeSet<String> = BTreeSet::new();
    for (name, piece) in source {
        let clash = target.get(name).is_some_and(|existing| !equal(existing, piece));
        if !clash {
            continue;
        }
        let candidates = (2..).map(|n: u32| format!("{name}_v{n}"));
        let free = |candidate: &String| match target.get(candidate) {
            Some(existing) => equal(existing, piece),
            None => !source.contains_key(candidate) && !used.contains(candidate),
        };
        // There are more candidates than used names.
        if let Some(new) = candidates.into_iter().find(free) {
            used.insert(new.clone());
            renames.insert(name.clone(), new);
        }
    }
    renames
}

fn rename_all(
    part: &mut SpecV2,
    definitions: &HashMap<String, String>,
    parameters: &HashMap<String, String>,
) {
    let rewritten = |piece: Box<RawValue>| {
        let first = rename(piece.get(), Section::Definitions, definitions);
        let second = rename(first.as_deref().unwrap_or(piece.get()), Section::Parameters, parameters);
        match second.or(first).map(RawValue::from_string) {
            Some(Ok(renamed)) => renamed,
            _ => piece,
        }
    };
    let moved = |pieces: &mut RawMembers, names: &HashMap<String, String>| {
        let old = std::mem::take(pieces);
        let name = |n: String| names.get(&n).cloned().unwrap_or(n);
        *pieces = old.into_iter().map(|(n, piece)| (name(n), rewritten(piece))).collect();
    };
    moved(&mut part.paths, &HashMap::new());
    moved(&mut part.definitions, definitions);
    moved(&mut part.parameters, parameters);
}

fn is_equal(a: &str, b: &str) -> bool {
    a == b || matches!((object(a), object(b)), (Some(a), Some(b)) if a == b)
}

/// True if two types are equal apart from their `x-kubernetes-group-version-kind`.
fn is_equal_except_kinds(a: &RawValue, b: &RawValue) -> bool {
    if a.get() == b.get() {
        return true;
    }
    let plain = |text: &str| {
        object(text).map(|mut o| {
            o.remove(&[KINDS]);
            o
        })
    };
    matches!((plain(a.get()), plain(b.get())), (Some(a), Some(b)) if a == b)
}

fn object(text: &str) -> Option<Object> {
    Object::from_json(text.as_bytes()).ok()
}

/// Adds the kinds of the other type to the shared one; `None` if it already has them all.
fn unite_kinds(shared: &RawValue, other: &RawValue) -> Option<Box<RawValue>> {
    if shared.get() == other.get() {
        return None;
    }
    let mut object = object(shared.get())?;
    let mut kinds: Vec<KindRef> = object.decode(&[KINDS]).unwrap_or_default();
    let other_kinds: Vec<KindRef> = self::object(other.get())?.decode(&[KINDS]).unwrap_or_default();
    let previous_len = kinds.len();
    kinds.extend(other_kinds.into_iter().filter(|k| !kinds.contains(k)).collect::<Vec<_>>());
    if kinds.len() == previous_len {
        return None;
    }
    kinds.sort_by_cached_key(|k| format!("{}/{}.{}", k.group, k.version, k.kind));
    object.set(&[KINDS], kinds);
    RawValue::from_string(String::from_utf8(object.to_json()).ok()?).ok()
}

#[cfg(test)]
mod tests;
