//! All paths of a group version: the list of resources, collections, objects, subresources, and the deprecated watch paths.
//!
//! The rules follow upstream's generic API server (section 6.1 of the specification) and the documents of a kube-apiserver.

use portico_machinery::GroupVersionKind;

use super::meta::META_PREFIX;
use super::names;
use super::names::{capitalize, with_article};
use super::operation::{Body, Operation, PathItem, RequestMedia, ResponseContent, ResponseMedia};
use super::parameter::{self, NAMESPACE, PRETTY, Parameter, SUBPATH, object_name};
use crate::local::{GroupDescription, KindDescription, SubresourceDescription};

/// Common properties of the operations of one kind.
struct KindPaths<'a> {
    group: &'a GroupDescription<'a>,
    kind: &'a KindDescription<'a>,
    root: String,
    prefix: String,
    tag: String,
}

/// Returns all paths, in order.
pub(super) fn all_paths<'a>(group: &'a GroupDescription<'a>) -> Vec<PathItem<'a>> {
    let names = names(group);
    let root = group.group_version.root();
    let mut paths = Vec::new();
    if !group.is_custom {
        paths.push(resource_list_path(group, &root));
    }
    for kind in &group.kinds {
        let (prefix, tag) = (names.prefix.clone(), names.tag.clone());
        KindPaths { group, kind, root: root.clone(), prefix, tag }.paths(&mut paths);
    }
    paths.sort_by(|a, b| a.path.cmp(&b.path));
    paths
}

fn resource_list_path<'a>(group: &GroupDescription<'_>, root: &str) -> PathItem<'a> {
    let names = names(group);
    let get = Operation {
        method: "get",
        id: format!("get{}APIResources", names.prefix),
        tag: names.tag,
        description: "get available resources".to_owned(),
        action: None,
        body: None,
        request_media: RequestMedia::LikeResponse,
        parameters: Vec::new(),
        responses: vec![("200", ResponseContent::Type(format!("{META_PREFIX}APIResourceList")))],
        response_media: ResponseMedia::Object,
    };
    PathItem::new(format!("{root}/"), &[], vec![get])
}

impl<'a> KindPaths<'a> {
    fn paths(&self, paths: &mut Vec<PathItem<'a>>) {
        let kind = self.kind;
        let (root, resource) = (&self.root, &kind.resource);
        let namespace_path = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection_parameters: &[Parameter<'a>] =
            if kind.namespaced { &[NAMESPACE, PRETTY] } else { &[PRETTY] };
        let mut add = |path: String, common: &[Parameter<'a>], operations: Vec<Operation<'a>>| {
            if !operations.is_empty() {
                paths.push(PathItem::new(path, common, operations));
            }
        };
        if kind.namespaced && kind.has_verb("list") {
            add(format!("{root}/{resource}"), &[PRETTY], vec![self.list_all_namespaces()]);
        }
        let collection = format!("{root}{namespace_path}/{resource}");
        add(collection.clone(), collection_parameters, self.collection_operations());
        let object = format!("{collection}/{{name}}");
        add(object.clone(), &self.object_parameters(&kind.name_description), self.object_operations());
        for subresource in &kind.subresources {
            let path = format!("{object}/{}", subresource.name);
            if subresource.is_connect {
                self.add_connect_paths(subresource, &path, &mut add);
            } else {
                add(
                    path,
                    &self.object_parameters(&subresource.name_description),
                    self.subresource_operations(subresource),
                );
            }
        }
        if kind.has_verb("watch") && !self.group.is_custom {
            self.add_watch_paths(namespace_path, collection_parameters, &mut add);
        }
    }

    /// Returns the parameters of every path of one object; `name_description` describes its name.
    fn object_parameters(&self, name_description: &'a str) -> Vec<Parameter<'a>> {
        self.path_parameters(name_description).into_iter().chain([PRETTY]).collect()
    }

    /// Returns the path parameters of an object.
    fn path_parameters(&self, name_description: &'a str) -> Vec<Parameter<'a>> {
        let namespace = self.kind.namespaced.then_some(NAMESPACE);
        [object_name(name_description)].into_iter().chain(namespace).collect()
    }

    fn scope_infix(&self) -> String {
        if self.kind.namespaced { "Namespaced".to_owned() } else { String::new() }
    }

    /// Creates an operation; in `description`, `{}` is replaced by the kind.
    fn operation(
        &self,
        method: &'static str,
        action: &'static str,
        id: String,
        description: &str,
    ) -> Operation<'a> {
        Operation {
            method,
            id,
            tag: self.tag.clone(),
            description: description.replace("{}", &self.kind.gvk.kind),
            action: Some((action, self.kind.gvk.clone())),
            body: None,
            request_media: if self.group.is_custom { RequestMedia::JsonOrYaml } else { RequestMedia::Any },
            parameters: Vec::new(),
            responses: Vec::new(),
            response_media: if self.group.is_custom { ResponseMedia::Custom } else { ResponseMedia::Object },
        }
    }

    fn list_all_namespaces(&self) -> Operation<'a> {
        let id = format!("list{}{}ForAllNamespaces", self.prefix, self.kind.gvk.kind);
        self.list_operation(id)
    }

    fn list_operation(&self, id: String) -> Operation<'a> {
        let can_watch = self.kind.has_verb("watch");
        let description =
            if can_watch { "list or watch objects of kind {}" } else { "list objects of kind {}" };
        Operation {
            parameters: parameter::LIST.to_vec(),
            responses: vec![("200", ResponseContent::Type(self.kind.list_type()))],
            response_media: if self.group.is_custom { ResponseMedia::Custom } else { ResponseMedia::Stream },
            ..self.operation("get", "list", id, description)
        }
    }

    /// Adds the deprecated watch paths.
    fn add_watch_paths(
        &self,
        namespace_path: &str,
        collection_parameters: &[Parameter<'a>],
        add: &mut impl FnMut(String, &[Parameter<'a>], Vec<Operation<'a>>),
    ) {
        let (root, resource, kind) = (&self.root, &self.kind.resource, &self.kind.gvk.kind);
        if self.kind.namespaced {
            let id = format!("{kind}ListForAllNamespaces");
            add(format!("{root}/watch/{resource}"), &[PRETTY], vec![self.watch_operation("watchlist", &id)]);
        }
        let watch_path = format!("{root}/watch{namespace_path}/{resource}");
        let list = self.scope_infix() + kind + "List";
        add(watch_path.clone(), collection_parameters, vec![self.watch_operation("watchlist", &list)]);
        let object_id = self.scope_infix() + kind;
        add(
            format!("{watch_path}/{{name}}"),
            &self.object_parameters(&self.kind.name_description),
            vec![self.watch_operation("watch", &object_id)],
        );
    }

    fn watch_operation(&self, action: &'static str, id_suffix: &str) -> Operation<'a> {
        let description = match action {
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
            responses: vec![("200", ResponseContent::Type(format!("{META_PREFIX}WatchEvent")))],
            response_media: ResponseMedia::Stream,
            ..self.operation("get", action, format!("watch{}{id_suffix}", self.prefix), description)
        }
    }

    fn collection_operations(&self) -> Vec<Operation<'a>> {
        let (prefix, id_suffix) = (&self.prefix, self.scope_infix() + &self.kind.gvk.kind);
        let mut operations = Vec::new();
        if self.kind.has_verb("list") {
            operations.push(self.list_operation(format!("list{prefix}{id_suffix}")));
        }
        if self.kind.has_verb("create") {
            let create = self.operation(
                "post",
                "post",
                format!("create{prefix}{id_suffix}"),
                &format!("create {}", with_article(&self.kind.gvk.kind)),
            );
            operations.push(with_object_body(create, &self.kind.type_name, &["200", "201", "202"]));
        }
        if self.kind.has_verb("deletecollection") {
            let id = format!("delete{prefix}Collection{id_suffix}");
            let (body, parameters) = match self.group.is_custom {
                true => (None, parameter::LIST),
                false => (Some(Body::DeleteOptions), parameter::DELETE_COLLECTION),
            };
            operations.push(Operation {
                body,
                parameters: parameters.to_vec(),
                responses: vec![("200", ResponseContent::Type(format!("{META_PREFIX}Status")))],
                ..self.operation("delete", "deletecollection", id, "delete collection of {}")
            });
        }
        operations
    }

    fn object_operations(&self) -> Vec<Operation<'a>> {
        let id_suffix = self.scope_infix() + &self.kind.gvk.kind;
        let content = ResponseContent::Type(self.kind.type_name.clone());
        let verbs = &self.kind.verbs;
        let mut operations =
            self.get_put_patch(&id_suffix, &content, verbs, &self.kind.gvk, "the specified {}");
        if self.kind.has_verb("delete") {
            let response_type = match self.kind.delete_returns_object {
                true => self.kind.type_name.clone(),
                false => format!("{META_PREFIX}Status"),
            };
            let response = |code| (code, ResponseContent::Type(response_type.clone()));
            let id = format!("delete{}{id_suffix}", self.prefix);
            operations.push(Operation {
                body: Some(Body::DeleteOptions),
                parameters: parameter::DELETE.to_vec(),
                responses: ["200", "202"].into_iter().map(response).collect(),
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

    fn subresource_operations(&self, subresource: &'a SubresourceDescription<'a>) -> Vec<Operation<'a>> {
        let id_suffix = self.scope_infix() + &self.kind.gvk.kind + &capitalize(subresource.name);
        let description = format!("{} of the specified {{}}", subresource.name);
        if !subresource.parameters.is_empty() {
            let operations = self.get_put_patch(
                &id_suffix,
                &ResponseContent::Text,
                &subresource.verbs,
                &subresource.kind,
                &description,
            );
            let parameters: Vec<_> = subresource.parameters.iter().map(Parameter::from).collect();
            let with_parameters = |o: Operation<'a>| Operation {
                parameters: parameters.clone(),
                response_media: ResponseMedia::Log,
                ..o
            };
            return operations.into_iter().map(with_parameters).collect();
        }
        let is_same_kind = subresource.kind.group_version() == self.kind.gvk.group_version()
            && subresource.kind.kind == self.kind.gvk.kind;
        let type_name = match is_same_kind {
            true => Some(self.kind.type_name.clone()),
            false => super::types::type_of_kind(self.group.types, &subresource.kind),
        };
        // The document does not describe the kind: the subresource is served, but its types are not published.
        let Some(type_name) = type_name else { return Vec::new() };
        let content = ResponseContent::Type(type_name.clone());
        // Upstream documents all paths of a custom resource with its kind.
        let documented_kind = if self.group.is_custom { &self.kind.gvk } else { &subresource.kind };
        let mut operations =
            self.get_put_patch(&id_suffix, &content, &subresource.verbs, documented_kind, &description);
        if subresource.has_verb("create") {
            let id = format!("create{}{id_suffix}", self.prefix);
            let description = format!("create {} of {}", subresource.name, with_article(&self.kind.gvk.kind));
            let create = self.operation("post", "post", id, &description);
            let mut create = with_object_body(create, &type_name, &["200", "201", "202"]);
            create.action = Some(("post", subresource.kind.clone()));
            operations.push(create);
        }
        operations
    }

    /// Adds the paths of connections: all methods for a proxy, get and post for a stream.
    fn add_connect_paths(
        &self,
        subresource: &'a SubresourceDescription<'a>,
        path: &str,
        add: &mut impl FnMut(String, &[Parameter<'a>], Vec<Operation<'a>>),
    ) {
        const ALL: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];
        let common = self.path_parameters(&subresource.name_description);
        let methods: &[&'static str] = if subresource.has_subpaths { &ALL } else { &["get", "post"] };
        let id_suffix = self.scope_infix() + &self.kind.gvk.kind + &capitalize(subresource.name);
        let operations = |suffix: &str| -> Vec<Operation<'a>> {
            let operation_for = |method: &&'static str| {
                let id = format!("connect{}{}{id_suffix}{suffix}", self.prefix, capitalize(method));
                let description =
                    format!("connect {} requests to {} of {{}}", method.to_uppercase(), subresource.name);
                Operation {
                    action: Some(("connect", subresource.kind.clone())),
                    parameters: subresource.parameters.iter().map(Parameter::from).collect(),
                    responses: vec![("200", ResponseContent::Text)],
                    response_media: ResponseMedia::Any,
                    ..self.operation(method, "connect", id, &description)
                }
            };
            methods.iter().map(operation_for).collect()
        };
        add(path.to_owned(), &common, operations(""));
        if subresource.has_subpaths {
            let common: Vec<Parameter<'a>> = common.into_iter().chain([SUBPATH]).collect();
            add(format!("{path}/{{path}}"), &common, operations("WithPath"));
        }
    }

    /// Returns the get, put and patch operations of an object or a subresource.
    fn get_put_patch(
        &self,
        id_suffix: &str,
        content: &ResponseContent,
        verbs: &[&str],
        gvk: &GroupVersionKind,
        object_text: &str,
    ) -> Vec<Operation<'a>> {
        let has = |verb: &str| verbs.contains(&verb);
        let custom = self.group.is_custom;
        let operation = |method, action, verb: &str| {
            let description = if verb == "patch" { "partially update" } else { verb };
            let id = format!("{verb}{}{id_suffix}", self.prefix);
            Operation {
                action: Some((action, gvk.clone())),
                ..self.operation(method, action, id, &format!("{description} {object_text}"))
            }
        };
        let mut operations = Vec::new();
        if has("get") {
            let responses = vec![("200", content.clone())];
            let parameters = if custom { parameter::GET.to_vec() } else { Vec::new() };
            operations.push(Operation { responses, parameters, ..operation("get", "get", "read") });
        }
        let ResponseContent::Type(type_name) = content else { return operations };
        if has("update") {
            operations.push(with_object_body(operation("put", "put", "replace"), type_name, &["200", "201"]));
        }
        if has("patch") {
            let codes: &[_] = if custom { &["200"] } else { &["200", "201"] };
            operations.push(Operation {
                body: Some(Body::Patch),
                request_media: if custom { RequestMedia::CustomPatches } else { RequestMedia::Patches },
                parameters: parameter::PATCH.to_vec(),
                ..with_object_body(operation("patch", "patch", "patch"), type_name, codes)
            });
        }
        operations
    }
}

fn with_object_body<'a>(operation: Operation<'a>, type_name: &str, codes: &[&'static str]) -> Operation<'a> {
    let content = || ResponseContent::Type(type_name.to_owned());
    Operation {
        body: Some(Body::Object(type_name.to_owned())),
        parameters: parameter::WRITE.to_vec(),
        responses: codes.iter().map(|code| (*code, content())).collect(),
        ..operation
    }
}
