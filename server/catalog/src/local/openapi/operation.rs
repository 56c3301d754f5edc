//! An operation, independent of the version of OpenAPI.

use portico_machinery::gvk::GroupVersionKind;

use super::parameter::Parameter;

/// An operation of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation<'a> {
    /// HTTP method in lower case.
    pub method: &'static str,
    /// Operation ID, such as `readCoreV1NamespacedPod`.
    pub id: String,
    pub tag: String,
    /// Description of the operation.
    pub description: String,
    /// Value of `x-kubernetes-action`, and its kind; `None` for the list of resources.
    pub action: Option<(&'static str, GroupVersionKind)>,
    pub body: Option<Body>,
    pub request_media: RequestMedia,
    /// Parameters other than those shared by all operations of the path.
    pub parameters: Vec<Parameter<'a>>,
    /// Status codes and contents of responses, in order; 401 is added by the writers.
    pub responses: Vec<(&'static str, ResponseContent)>,
    pub response_media: ResponseMedia,
}

/// Request body of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// An object of this type.
    Object(String),
    /// `DeleteOptions`, which are optional.
    DeleteOptions,
    Patch,
}

/// Media types of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestMedia {
    /// All media types that the server accepts; documents of built-in kinds do not list them.
    Any,
    /// JSON and YAML, for custom resources.
    JsonOrYaml,
    /// Patches of built-in kinds.
    Patches,
    /// Patches of custom resources, without strategic merge patch.
    CustomPatches,
    /// No body; version 2 lists the media types of the response instead.
    LikeResponse,
}

/// Content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResponseContent {
    /// An object of this type.
    Type(String),
    /// Text, or the response of another server.
    Text,
}

/// Media types of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseMedia {
    /// JSON, YAML and protobuf.
    Object,
    /// JSON, YAML and protobuf, and their streams.
    Stream,
    /// JSON, YAML and protobuf, and plain text.
    Log,
    /// Any media type, for responses of another server.
    Any,
    /// JSON and YAML, for custom resources.
    Custom,
}

impl ResponseMedia {
    /// Returns the names of the media types.
    pub fn types(self) -> &'static [&'static str] {
        const ALL: [&str; 5] = [
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
            "application/json;stream=watch",
            "application/vnd.kubernetes.protobuf;stream=watch",
        ];
        match self {
            Self::Object => const { ALL.split_at(3).0 },
            Self::Stream => &ALL,
            Self::Log => const { &["text/plain", ALL[0], ALL[1], ALL[2]] },
            Self::Any => &["*/*"],
            Self::Custom => const { ALL.split_at(2).0 },
        }
    }
}

impl RequestMedia {
    /// Returns the names of the media types, for an operation with responses in `media`.
    pub fn types(self, media: ResponseMedia) -> &'static [&'static str] {
        match self {
            Self::Any => &["*/*"],
            Self::JsonOrYaml => ResponseMedia::Custom.types(),
            Self::Patches => &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ],
            Self::CustomPatches => &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ],
            Self::LikeResponse => media.types(),
        }
    }
}

/// A path with its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathItem<'a> {
    pub path: String,
    /// Parameters shared by all operations, sorted by name.
    pub parameters: Vec<Parameter<'a>>,
    /// Operations, sorted by method.
    pub operations: Vec<Operation<'a>>,
}

impl<'a> PathItem<'a> {
    /// Creates a path. Parameters that all operations have are moved to the path, in addition to the `common` ones.
    pub fn new(path: String, common: &[Parameter<'a>], mut operations: Vec<Operation<'a>>) -> Self {
        operations.sort_by_key(|o| o.method);
        let mut parameters = common.to_vec();
        if let Some((first, others)) = operations.split_first() {
            let shared = |p: &&Parameter<'a>| others.iter().all(|o| o.parameters.contains(p));
            parameters.extend(first.parameters.iter().filter(shared));
        }
        for operation in &mut operations {
            operation.parameters.retain(|p| !parameters.contains(p));
            operation.parameters.sort();
        }
        parameters.sort();
        Self { path, parameters, operations }
    }
}
