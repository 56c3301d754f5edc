//! All paths of a group version: the list of resources, collections, objects, subresources, and the old watch paths.
//!
//! Upstream rules: generic API server 6.1, and the shape of a real server's documents.

use portico_kinds::{KindInfo, Subresource};

use super::names::capitalised;
use super::operation::{Body, Media, Operation, PATCHES, PathItem};
use super::parameter::{self, NAME, NAMESPACE, PRETTY, Parameter};
use super::{META, names};
use crate::local::Fragment;

/// What the operations of one kind have in common.
struct Resource<'a> {
    kind: &'a KindInfo,
    root: String,
    prefix: String,
    tag: String,
}

/// All paths, in order.
pub(super) fn all(fragment: &Fragment) -> Vec<PathItem> {
    let names = names(fragment);
    let root = fragment.group_version.root();
    let mut paths = vec![resources(fragment, &root)];
    for kind in &fragment.kinds {
        let (prefix, tag) = (names.prefix.clone(), names.tag.clone());
        Resource { kind, root: root.clone(), prefix, tag }.paths(&mut paths);
    }
    paths.sort_by(|a, b| a.path.cmp(&b.path));
    paths
}

fn resources(fragment: &Fragment, root: &str) -> PathItem {
    let names = names(fragment);
    let get = Operation {
        method: "get",
        id: format!("get{}APIResources", names.prefix),
        tag: names.tag,
        action: None,
        body: None,
        parameters: Vec::new(),
        responses: vec![("200", format!("{META}APIResourceList"))],
        media: Media::Object,
    };
    PathItem::new(format!("{root}/"), &[], vec![get])
}

impl Resource<'_> {
    fn paths(&self, paths: &mut Vec<PathItem>) {
        let kind = self.kind;
        let (root, resource) = (&self.root, &kind.resource);
        let place = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let in_place: &[Parameter] = if kind.namespaced { &[NAMESPACE, PRETTY] } else { &[PRETTY] };
        let named: &[Parameter] = if kind.namespaced { &[NAME, NAMESPACE, PRETTY] } else { &[NAME, PRETTY] };
        let mut add = |path: String, common: &[Parameter], operations: Vec<Operation>| {
            if !operations.is_empty() {
                paths.push(PathItem::new(path, common, operations));
            }
        };
        if kind.namespaced && kind.has_verb("list") {
            add(format!("{root}/{resource}"), &[PRETTY], vec![self.list_everywhere()]);
        }
        let collection = format!("{root}{place}/{resource}");
        add(collection.clone(), in_place, self.collection());
        let object = format!("{collection}/{{name}}");
        add(object.clone(), named, self.object());
        for subresource in &kind.subresources {
            add(format!("{object}/{}", subresource.name), named, self.subresource(subresource));
        }
        if kind.has_verb("watch") {
            if kind.namespaced {
                let id = format!("{}ListForAllNamespaces", kind.gvk.kind);
                add(format!("{root}/watch/{resource}"), &[PRETTY], vec![self.watch("watchlist", &id)]);
            }
            let watched = format!("{root}/watch{place}/{resource}");
            let list = self.place() + &kind.gvk.kind + "List";
            add(watched.clone(), in_place, vec![self.watch("watchlist", &list)]);
            let one = self.place() + &kind.gvk.kind;
            add(format!("{watched}/{{name}}"), named, vec![self.watch("watch", &one)]);
        }
    }

    fn place(&self) -> String {
        if self.kind.namespaced { "Namespaced".to_owned() } else { String::new() }
    }

    fn type_name(&self) -> String {
        self.kind.schema.root().name.to_string()
    }

    fn list_type(&self) -> String {
        let name = self.type_name();
        let package = name.rsplit_once('.').map_or("", |(package, _)| package);
        format!("{package}.{}", self.kind.list_kind)
    }

    fn operation(&self, method: &'static str, action: &'static str, id: String) -> Operation {
        Operation {
            method,
            id,
            tag: self.tag.clone(),
            action: Some((action, self.kind.gvk.clone())),
            body: None,
            parameters: Vec::new(),
            responses: Vec::new(),
            media: Media::Object,
        }
    }

    fn list_everywhere(&self) -> Operation {
        let id = format!("list{}{}ForAllNamespaces", self.prefix, self.kind.gvk.kind);
        self.listing(self.operation("get", "list", id))
    }

    fn listing(&self, operation: Operation) -> Operation {
        Operation {
            parameters: parameter::LIST.to_vec(),
            responses: vec![("200", self.list_type())],
            media: Media::Stream,
            ..operation
        }
    }

    fn watch(&self, action: &'static str, what: &str) -> Operation {
        Operation {
            parameters: parameter::LIST.to_vec(),
            responses: vec![("200", format!("{META}WatchEvent"))],
            media: Media::Stream,
            ..self.operation("get", action, format!("watch{}{what}", self.prefix))
        }
    }

    fn collection(&self) -> Vec<Operation> {
        let (prefix, what) = (&self.prefix, self.place() + &self.kind.gvk.kind);
        let mut operations = Vec::new();
        if self.kind.has_verb("list") {
            operations.push(self.listing(self.operation("get", "list", format!("list{prefix}{what}"))));
        }
        if self.kind.has_verb("create") {
            let create = self.operation("post", "post", format!("create{prefix}{what}"));
            operations.push(written(create, &self.type_name(), &["200", "201", "202"]));
        }
        if self.kind.has_verb("deletecollection") {
            let id = format!("delete{prefix}Collection{what}");
            operations.push(Operation {
                body: Some(Body::DeleteOptions),
                parameters: parameter::DELETE_COLLECTION.to_vec(),
                responses: vec![("200", format!("{META}Status"))],
                ..self.operation("delete", "deletecollection", id)
            });
        }
        operations
    }

    fn object(&self) -> Vec<Operation> {
        let what = self.place() + &self.kind.gvk.kind;
        let mut operations = self.instance(&what, &self.type_name(), &self.kind.verbs, &self.kind.gvk);
        if self.kind.has_verb("delete") {
            let answer = match self.kind.deletion.answers_object {
                true => self.type_name(),
                false => format!("{META}Status"),
            };
            operations.push(Operation {
                body: Some(Body::DeleteOptions),
                parameters: parameter::DELETE.to_vec(),
                responses: ["200", "202"].into_iter().map(|code| (code, answer.clone())).collect(),
                ..self.operation("delete", "delete", format!("delete{}{what}", self.prefix))
            });
        }
        operations
    }

    fn subresource(&self, subresource: &Subresource) -> Vec<Operation> {
        let what = self.place() + &self.kind.gvk.kind + &capitalised(&subresource.name);
        let own = subresource.kind.group_version() == self.kind.gvk.group_version()
            && subresource.kind.kind == self.kind.gvk.kind;
        let type_name =
            if own { Some(self.type_name()) } else { super::types::of_kind(self.kind, &subresource.kind) };
        // A kind that is not described here: the subresource is served, its types are not published.
        let Some(type_name) = type_name else { return Vec::new() };
        let mut operations = self.instance(&what, &type_name, &subresource.verbs, &subresource.kind);
        if subresource.has_verb("create") {
            let create = self.operation("post", "post", format!("create{}{what}", self.prefix));
            let mut create = written(create, &type_name, &["200", "201", "202"]);
            create.action = Some(("post", subresource.kind.clone()));
            operations.push(create);
        }
        operations
    }

    /// get, put and patch of an object or a subresource.
    fn instance(
        &self,
        what: &str,
        type_name: &str,
        verbs: &[String],
        gvk: &portico_machinery::GroupVersionKind,
    ) -> Vec<Operation> {
        let has = |verb: &str| verbs.iter().any(|v| v == verb);
        let operation = |method, action, verb: &str| Operation {
            action: Some((action, gvk.clone())),
            ..self.operation(method, action, format!("{verb}{}{what}", self.prefix))
        };
        let mut operations = Vec::new();
        if has("get") {
            let responses = vec![("200", type_name.to_owned())];
            operations.push(Operation { responses, ..operation("get", "get", "read") });
        }
        if has("update") {
            operations.push(written(operation("put", "put", "replace"), type_name, &["200", "201"]));
        }
        if has("patch") {
            operations.push(Operation {
                body: Some(Body::Patch(PATCHES)),
                parameters: parameter::PATCH.to_vec(),
                ..written(operation("patch", "patch", "patch"), type_name, &["200", "201"])
            });
        }
        operations
    }
}

fn written(operation: Operation, type_name: &str, codes: &[&'static str]) -> Operation {
    Operation {
        body: Some(Body::Object(type_name.to_owned())),
        parameters: parameter::WRITE.to_vec(),
        responses: codes.iter().map(|code| (*code, type_name.to_owned())).collect(),
        ..operation
    }
}
