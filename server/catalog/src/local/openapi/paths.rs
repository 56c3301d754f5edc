//! All paths of a group version: the list of resources, collections, objects, subresources, and the deprecated watch paths.
//!
//! The rules follow upstream's generic API server (section 6.1 of the specification) and the documents of a kube-apiserver.

use portico_machinery::GroupVersionKind;

use super::meta::META;
use super::names;
use super::names::{capitalised, with_article};
use super::operation::{Body, Content, Media, Operation, PathItem, Takes};
use super::parameter::{self, BELOW, NAMESPACE, PRETTY, Parameter, object_name};
use crate::local::{Described, Kind, Subresource};

/// Common properties of the operations of one kind.
struct Resource<'a> {
    described: &'a Described<'a>,
    kind: &'a Kind<'a>,
    root: String,
    prefix: String,
    tag: String,
}

/// Returns all paths, in order.
pub(super) fn all<'a>(described: &'a Described<'a>) -> Vec<PathItem<'a>> {
    let names = names(described);
    let root = described.group_version.root();
    let mut paths = Vec::new();
    if !described.custom {
        paths.push(resources(described, &root));
    }
    for kind in &described.kinds {
        let (prefix, tag) = (names.prefix.clone(), names.tag.clone());
        Resource { described, kind, root: root.clone(), prefix, tag }.paths(&mut paths);
    }
    paths.sort_by(|a, b| a.path.cmp(&b.path));
    paths
}

fn resources<'a>(described: &Described<'_>, root: &str) -> PathItem<'a> {
    let names = names(described);
    let get = Operation {
        method: "get",
        id: format!("get{}APIResources", names.prefix),
        tag: names.tag,
        about: "get available resources".to_owned(),
        action: None,
        body: None,
        takes: Takes::Answered,
        parameters: Vec::new(),
        responses: vec![("200", Content::Type(format!("{META}APIResourceList")))],
        media: Media::Object,
    };
    PathItem::new(format!("{root}/"), &[], vec![get])
}

impl<'a> Resource<'a> {
    fn paths(&self, paths: &mut Vec<PathItem<'a>>) {
        let kind = self.kind;
        let (root, resource) = (&self.root, &kind.resource);
        let place = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let in_place: &[Parameter<'a>] = if kind.namespaced { &[NAMESPACE, PRETTY] } else { &[PRETTY] };
        let mut add = |path: String, common: &[Parameter<'a>], operations: Vec<Operation<'a>>| {
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
        add(object.clone(), &self.named(&kind.name_about), self.object());
        for subresource in &kind.subresources {
            let path = format!("{object}/{}", subresource.name);
            if subresource.connect {
                self.connected(subresource, &path, &mut add);
            } else {
                add(path, &self.named(&subresource.name_about), self.subresource(subresource));
            }
        }
        if kind.has_verb("watch") && !self.described.custom {
            self.watched(place, in_place, &mut add);
        }
    }

    /// Returns the parameters of every path of one object; `name_description` describes its name.
    fn named(&self, name_about: &'a str) -> Vec<Parameter<'a>> {
        self.path_parameters(name_about).into_iter().chain([PRETTY]).collect()
    }

    /// Returns the path parameters of an object.
    fn path_parameters(&self, name_about: &'a str) -> Vec<Parameter<'a>> {
        let namespace = self.kind.namespaced.then_some(NAMESPACE);
        [object_name(name_about)].into_iter().chain(namespace).collect()
    }

    fn place(&self) -> String {
        if self.kind.namespaced { "Namespaced".to_owned() } else { String::new() }
    }

    /// Creates an operation; in `description`, `{}` is replaced by the kind.
    fn operation(
        &self,
        method: &'static str,
        action: &'static str,
        id: String,
        about: &str,
    ) -> Operation<'a> {
        Operation {
            method,
            id,
            tag: self.tag.clone(),
            about: about.replace("{}", &self.kind.gvk.kind),
            action: Some((action, self.kind.gvk.clone())),
            body: None,
            takes: if self.described.custom { Takes::JsonOrYaml } else { Takes::Anything },
            parameters: Vec::new(),
            responses: Vec::new(),
            media: if self.described.custom { Media::Custom } else { Media::Object },
        }
    }

    fn list_everywhere(&self) -> Operation<'a> {
        let id = format!("list{}{}ForAllNamespaces", self.prefix, self.kind.gvk.kind);
        self.listing(id)
    }

    fn listing(&self, id: String) -> Operation<'a> {
        let can_watch = self.kind.has_verb("watch");
        let about = if can_watch { "list or watch objects of kind {}" } else { "list objects of kind {}" };
        Operation {
            parameters: parameter::LIST.to_vec(),
            responses: vec![("200", Content::Type(self.kind.list_type()))],
            media: if self.described.custom { Media::Custom } else { Media::Stream },
            ..self.operation("get", "list", id, about)
        }
    }

    /// Adds the deprecated watch paths.
    fn watched(
        &self,
        place: &str,
        in_place: &[Parameter<'a>],
        add: &mut impl FnMut(String, &[Parameter<'a>], Vec<Operation<'a>>),
    ) {
        let (root, resource, kind) = (&self.root, &self.kind.resource, &self.kind.gvk.kind);
        if self.kind.namespaced {
            let id = format!("{kind}ListForAllNamespaces");
            add(format!("{root}/watch/{resource}"), &[PRETTY], vec![self.watch("watchlist", &id)]);
        }
        let watched = format!("{root}/watch{place}/{resource}");
        let list = self.place() + kind + "List";
        add(watched.clone(), in_place, vec![self.watch("watchlist", &list)]);
        let one = self.place() + kind;
        add(
            format!("{watched}/{{name}}"),
            &self.named(&self.kind.name_about),
            vec![self.watch("watch", &one)],
        );
    }

    fn watch(&self, action: &'static str, what: &str) -> Operation<'a> {
        let about = match action {
            "watch" => {
                "watch changes to an object of kind {}. deprecated: use the 'watch' parameter with a list operation \
                 instead, filtered to a single item with the 'fieldSelector' parameter."
            }
            _ => {
                "watch individual changes to a list of {}. deprecated: use the 'watch' parameter with a list operation \
                 instead."
            }
        };
        Operation {
            parameters: parameter::LIST.to_vec(),
            responses: vec![("200", Content::Type(format!("{META}WatchEvent")))],
            media: Media::Stream,
            ..self.operation("get", action, format!("watch{}{what}", self.prefix), about)
        }
    }

    fn collection(&self) -> Vec<Operation<'a>> {
        let (prefix, what) = (&self.prefix, self.place() + &self.kind.gvk.kind);
        let mut operations = Vec::new();
        if self.kind.has_verb("list") {
            operations.push(self.listing(format!("list{prefix}{what}")));
        }
        if self.kind.has_verb("create") {
            let create = self.operation(
                "post",
                "post",
                format!("create{prefix}{what}"),
                &format!("create {}", with_article(&self.kind.gvk.kind)),
            );
            operations.push(written(create, &self.kind.type_name, &["200", "201", "202"]));
        }
        if self.kind.has_verb("deletecollection") {
            let id = format!("delete{prefix}Collection{what}");
            let (body, parameters) = match self.described.custom {
                true => (None, parameter::LIST),
                false => (Some(Body::DeleteOptions), parameter::DELETE_COLLECTION),
            };
            operations.push(Operation {
                body,
                parameters: parameters.to_vec(),
                responses: vec![("200", Content::Type(format!("{META}Status")))],
                ..self.operation("delete", "deletecollection", id, "delete collection of {}")
            });
        }
        operations
    }

    fn object(&self) -> Vec<Operation<'a>> {
        let what = self.place() + &self.kind.gvk.kind;
        let content = Content::Type(self.kind.type_name.clone());
        let verbs = &self.kind.verbs;
        let mut operations = self.instance(&what, &content, verbs, &self.kind.gvk, "the specified {}");
        if self.kind.has_verb("delete") {
            let answer = match self.kind.delete_answers_object {
                true => self.kind.type_name.clone(),
                false => format!("{META}Status"),
            };
            let answered = |code| (code, Content::Type(answer.clone()));
            let id = format!("delete{}{what}", self.prefix);
            operations.push(Operation {
                body: Some(Body::DeleteOptions),
                parameters: parameter::DELETE.to_vec(),
                responses: ["200", "202"].into_iter().map(answered).collect(),
                ..self.operation(
                    "delete",
                    "delete",
                    id,
                    &format!("delete {}", with_article(&self.kind.gvk.kind)),
                )
            });
        }
        operations
    }

    fn subresource(&self, subresource: &'a Subresource<'a>) -> Vec<Operation<'a>> {
        let what = self.place() + &self.kind.gvk.kind + &capitalised(subresource.name);
        let about = format!("{} of the specified {{}}", subresource.name);
        if !subresource.parameters.is_empty() {
            let read = self.instance(&what, &Content::Text, &subresource.verbs, &subresource.kind, &about);
            let parameters: Vec<_> = subresource.parameters.iter().map(Parameter::from).collect();
            let with =
                |o: Operation<'a>| Operation { parameters: parameters.clone(), media: Media::Log, ..o };
            return read.into_iter().map(with).collect();
        }
        let own = subresource.kind.group_version() == self.kind.gvk.group_version()
            && subresource.kind.kind == self.kind.gvk.kind;
        let type_name = match own {
            true => Some(self.kind.type_name.clone()),
            false => super::types::of_kind(self.described.types, &subresource.kind),
        };
        // The document does not describe the kind: the subresource is served, but its types are not published.
        let Some(type_name) = type_name else { return Vec::new() };
        let content = Content::Type(type_name.clone());
        // Upstream documents all paths of a custom resource with its kind.
        let acts_on = if self.described.custom { &self.kind.gvk } else { &subresource.kind };
        let mut operations = self.instance(&what, &content, &subresource.verbs, acts_on, &about);
        if subresource.has_verb("create") {
            let id = format!("create{}{what}", self.prefix);
            let does = format!("create {} of {}", subresource.name, with_article(&self.kind.gvk.kind));
            let create = self.operation("post", "post", id, &does);
            let mut create = written(create, &type_name, &["200", "201", "202"]);
            create.action = Some(("post", subresource.kind.clone()));
            operations.push(create);
        }
        operations
    }

    /// Adds the paths of connections: all methods for a proxy, get and post for a stream.
    fn connected(
        &self,
        subresource: &'a Subresource<'a>,
        path: &str,
        add: &mut impl FnMut(String, &[Parameter<'a>], Vec<Operation<'a>>),
    ) {
        const ALL: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];
        let common = self.path_parameters(&subresource.name_about);
        let methods: &[&'static str] = if subresource.below { &ALL } else { &["get", "post"] };
        let what = self.place() + &self.kind.gvk.kind + &capitalised(subresource.name);
        let operations = |suffix: &str| -> Vec<Operation<'a>> {
            let one = |method: &&'static str| {
                let id = format!("connect{}{}{what}{suffix}", self.prefix, capitalised(method));
                let about =
                    format!("connect {} requests to {} of {{}}", method.to_uppercase(), subresource.name);
                Operation {
                    action: Some(("connect", subresource.kind.clone())),
                    parameters: subresource.parameters.iter().map(Parameter::from).collect(),
                    responses: vec![("200", Content::Text)],
                    media: Media::Any,
                    ..self.operation(method, "connect", id, &about)
                }
            };
            methods.iter().map(one).collect()
        };
        add(path.to_owned(), &common, operations(""));
        if subresource.below {
            let common: Vec<Parameter<'a>> = common.into_iter().chain([BELOW]).collect();
            add(format!("{path}/{{path}}"), &common, operations("WithPath"));
        }
    }

    /// Returns the get, put and patch operations of an object or a subresource.
    fn instance(
        &self,
        what: &str,
        content: &Content,
        verbs: &[&str],
        gvk: &GroupVersionKind,
        about: &str,
    ) -> Vec<Operation<'a>> {
        let has = |verb: &str| verbs.contains(&verb);
        let custom = self.described.custom;
        let operation = |method, action, verb: &str| {
            let does = if verb == "patch" { "partially update" } else { verb };
            let id = format!("{verb}{}{what}", self.prefix);
            Operation {
                action: Some((action, gvk.clone())),
                ..self.operation(method, action, id, &format!("{does} {about}"))
            }
        };
        let mut operations = Vec::new();
        if has("get") {
            let responses = vec![("200", content.clone())];
            let parameters = if custom { parameter::GET.to_vec() } else { Vec::new() };
            operations.push(Operation { responses, parameters, ..operation("get", "get", "read") });
        }
        let Content::Type(type_name) = content else { return operations };
        if has("update") {
            operations.push(written(operation("put", "put", "replace"), type_name, &["200", "201"]));
        }
        if has("patch") {
            let codes: &[_] = if custom { &["200"] } else { &["200", "201"] };
            operations.push(Operation {
                body: Some(Body::Patch),
                takes: if custom { Takes::CustomPatches } else { Takes::Patches },
                parameters: parameter::PATCH.to_vec(),
                ..written(operation("patch", "patch", "patch"), type_name, codes)
            });
        }
        operations
    }
}

fn written<'a>(operation: Operation<'a>, type_name: &str, codes: &[&'static str]) -> Operation<'a> {
    let content = || Content::Type(type_name.to_owned());
    Operation {
        body: Some(Body::Object(type_name.to_owned())),
        parameters: parameter::WRITE.to_vec(),
        responses: codes.iter().map(|code| (*code, content())).collect(),
        ..operation
    }
}
