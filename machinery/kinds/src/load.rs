//! Reads the embedded descriptions and links them.

use std::io::Read;
use std::sync::Arc;

use flate2::read::DeflateDecoder;
use portico_machinery::digest::sha256_hex;
use portico_machinery::effective_version::KUBERNETES;
use portico_machinery::expiration::{Lifecycle, Release};
use portico_machinery::gvk::{GroupResource, GroupVersion, GroupVersionKind};
use portico_machinery::table::Column;
use portico_schema::model::{TypeSet, TypeSetBuilder};
use portico_schema::{Schema, description};

use crate::column::{CellRule, ColumnRule};
use crate::error::LoadError;
use crate::file::{ColumnEntry, File, GroupEntry, KindEntry, ParameterEntry, SubresourceEntry};
use crate::group::GroupVersionInfo;
use crate::kind::{Deletion, Generation, KindInfo, QueryParameter, StatusRule, Subresource};
use crate::ownership::Ownership;
use crate::registry::Kinds;

/// The data files as JSON, made when this crate was built; compressed.
const KINDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kinds.deflate"));
const GROUPS: &str = include_str!(concat!(env!("OUT_DIR"), "/groups.json"));

/// Distinguishes these data from any others.
pub(crate) fn fingerprint() -> String {
    sha256_hex(KINDS)
}

pub(crate) fn all() -> Result<Kinds, LoadError> {
    let mut kinds = Vec::with_capacity(KINDS.len() * 10);
    DeflateDecoder::new(KINDS)
        .read_to_end(&mut kinds)
        .map_err(|error| LoadError::Format(error.to_string()))?;
    parse(&kinds, GROUPS)
}

fn parse(kinds: &[u8], groups: &str) -> Result<Kinds, LoadError> {
    let format = |error: serde_json::Error| LoadError::Format(error.to_string());
    let files: Vec<File> = serde_json::from_slice(kinds).map_err(format)?;
    let groups: Vec<GroupEntry> = serde_json::from_str(groups).map_err(format)?;
    let mut builder = TypeSetBuilder::default();
    let mut entries = Vec::new();
    for File { imports, group, kinds, types } in files {
        description::add(&mut builder, &imports, types)?;
        entries.extend(kinds.into_iter().map(|kind| (group.clone(), kind)));
    }
    let types = Arc::new(builder.build()?);
    let groups = priorities(groups);
    let infos: Result<Vec<Arc<KindInfo>>, LoadError> =
        entries.into_iter().map(|(group, entry)| kind(group, entry, &types).map(Arc::new)).collect();
    Kinds::new(infos?, groups, types)
}

/// Group versions in discovery order: by falling priority, then name; versions by falling priority.
fn priorities(groups: Vec<GroupEntry>) -> Vec<GroupVersionInfo> {
    let mut infos: Vec<GroupVersionInfo> = groups
        .into_iter()
        .flat_map(|GroupEntry { group, priority, versions, api_service }| {
            versions.into_iter().map(move |(version, version_priority)| GroupVersionInfo {
                group_version: GroupVersion::new(&group, version),
                group_priority: priority,
                version_priority,
                api_service,
            })
        })
        .collect();
    infos.sort_by(|a, b| {
        let key = |i: &GroupVersionInfo| (std::cmp::Reverse(i.group_priority), i.group_version.group.clone());
        key(a).cmp(&key(b)).then(b.version_priority.cmp(&a.version_priority))
    });
    infos
}

fn kind(group: String, entry: KindEntry, types: &Arc<TypeSet>) -> Result<KindInfo, LoadError> {
    let gvk = GroupVersionKind { group, version: entry.version, kind: entry.kind };
    let missing = |name: &str| LoadError::Missing { kind: gvk.kind.clone(), name: name.to_owned() };
    let list_schema = if entry.verbs.iter().any(|verb| verb == "list") {
        let name = format!("{}List", entry.ty);
        Some(Schema::named(types, &name).ok_or_else(|| missing(&name))?)
    } else {
        None
    };
    let storage = match entry.storage.as_deref().map(|text| text.split_once('/')) {
        None => GroupResource::new(&gvk.group, &entry.resource),
        Some(Some((group, resource))) => GroupResource::new(group, resource),
        Some(None) => return Err(missing("a storage of the form group/resource")),
    };
    let lifecycle = Lifecycle { introduced: entry.introduced, removed: entry.removed };
    let deprecation = deprecation(&gvk, entry.deprecated, &lifecycle, entry.replacement.as_deref());
    let columns: Result<Arc<[ColumnRule]>, LoadError> =
        entry.columns.into_iter().map(|c| column(&gvk.kind, c)).collect();
    Ok(KindInfo {
        schema: Schema::named(types, &entry.ty).ok_or_else(|| missing(&entry.ty))?,
        list_schema,
        stored: entry.stored,
        list_kind: format!("{}List", gvk.kind),
        resource: entry.resource,
        singular: entry.singular,
        short_names: entry.short_names,
        categories: entry.categories,
        namespaced: entry.namespaced,
        verbs: entry.verbs.into(),
        subresources: entry.subresources.into_iter().map(|s| subresource(&gvk, s, types)).collect(),
        columns: columns?,
        selectable: entry.selectable,
        storage,
        upstream_storage_version: entry
            .upstream_storage_version
            .or_else(|| entry.storage_version.clone())
            .unwrap_or_else(|| gvk.version.clone()),
        storage_version: entry.storage_version.unwrap_or_else(|| gvk.version.clone()),
        name_rule: entry.name_rule,
        uncached: entry.uncached,
        allow_create_on_update: entry.create_on_update,
        allow_unconditional_update: entry.unconditional_update,
        deletion: Deletion {
            answers_object: entry.delete_answers_object,
            documented_as_status: entry.delete_documented_as_status,
            graceful: entry.graceful,
            dependents: entry.dependents,
        },
        generation: generation(entry.generation.as_deref(), entry.generation_counts_empty),
        ownership: Ownership::new(
            &entry.resets,
            &entry.keeps,
            entry.status.as_ref().map(|status| &status.owns[..]),
        ),
        status: entry.status.map(|s| {
            Arc::new(StatusRule {
                owns: s.owns,
                keeps_metadata: s.keeps_metadata,
                kept_on_create: s.kept_on_create,
            })
        }),
        allow_unqualified_finalizers: entry.unqualified_finalizers,
        expires: entry.expires,
        deprecation,
        off_by_default: entry.off,
        lifecycle,
        gvk,
    })
}

/// Upstream's `deprecation.WarningMessage`: by the release that this is, not by one that it emulates.
fn deprecation(
    gvk: &GroupVersionKind,
    deprecated: Option<Release>,
    lifecycle: &Lifecycle,
    replacement: Option<&str>,
) -> String {
    let Some(deprecated) = deprecated.filter(|release| *release <= KUBERNETES) else {
        return String::new();
    };
    let mut warning = format!("{} {} is deprecated in v{deprecated}+", gvk.group_version(), gvk.kind);
    if let Some(removed) = lifecycle.removed {
        warning.push_str(&format!(", unavailable in v{removed}+"));
    }
    if let Some(replacement) = replacement {
        warning.push_str(&format!("; use {replacement}"));
    }
    warning
}

fn subresource(parent: &GroupVersionKind, entry: SubresourceEntry, types: &Arc<TypeSet>) -> Subresource {
    let kind = GroupVersionKind {
        group: entry.group.unwrap_or_else(|| parent.group.clone()),
        version: entry.version.unwrap_or_else(|| parent.version.clone()),
        kind: entry.kind.unwrap_or_else(|| parent.kind.clone()),
    };
    let gvk = format!("{}/{}/{}", kind.group, kind.version, kind.kind);
    let ty = types.iter().find(|ty| ty.gvks.iter().any(|served| **served == *gvk));
    let schema = ty.and_then(|ty| Schema::named(types, &ty.name));
    Subresource {
        name: entry.name,
        kind,
        schema,
        verbs: entry.verbs.into(),
        connect: entry.connect,
        below: entry.below,
        parameters: entry.parameters.into_iter().map(parameter).collect(),
    }
}

fn parameter((shared, entry): (String, ParameterEntry)) -> QueryParameter {
    let name = shared.split('-').next().unwrap_or_default().to_owned();
    QueryParameter { name, shared, ty: entry.ty, about: entry.about }
}

fn column(kind: &str, entry: ColumnEntry) -> Result<ColumnRule, LoadError> {
    let mut cells = cells(&entry);
    let (Some(cell), true) = (cells.pop(), cells.is_empty()) else {
        return Err(LoadError::Column { kind: kind.to_owned(), column: entry.name });
    };
    let column = Column {
        name: entry.name,
        kind: entry.ty,
        format: entry.format,
        description: entry.description,
        priority: entry.priority,
    };
    Ok(ColumnRule { column, cell })
}

/// Everything that an entry says about where its cells come from.
fn cells(entry: &ColumnEntry) -> Vec<CellRule> {
    let at = |text: &Option<String>| text.as_deref().map(path);
    let joined = |mut list: Vec<String>| list.pop().map(|field| CellRule::Joined { list, field });
    let count = (!entry.count.is_empty())
        .then(|| CellRule::Count { paths: entry.count.iter().map(|text| path(text)).collect() });
    [
        at(&entry.path).map(|path| CellRule::Path { path, absent: entry.absent.clone() }),
        at(&entry.number).map(|path| CellRule::Number { path }),
        at(&entry.age).map(|path| CellRule::Age { path }),
        count,
        at(&entry.joined).and_then(joined),
        at(&entry.labels).map(|path| CellRule::Labels { path }),
        at(&entry.selector).map(|path| CellRule::Selector { path }),
        entry.function.clone().map(|name| CellRule::Function { name }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn generation(paths: Option<&[String]>, counts_empty: bool) -> Generation {
    match paths {
        None => Generation::Untouched,
        Some(paths) => Generation::Changes { paths: paths.iter().map(|at| path(at)).collect(), counts_empty },
    }
}

/// The field names of `.spec.x`.
fn path(text: &str) -> Vec<String> {
    text.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
