//! One operation, before it is written in either version.

use portico_machinery::gvk::GroupVersionKind;

use super::parameter::Parameter;

/// What an operation is called by and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation<'a> {
    /// `get`, `put`, ...
    pub method: &'static str,
    /// `readCoreV1NamespacedPod`
    pub id: String,
    pub tag: String,
    /// What it does, for people.
    pub about: String,
    /// `x-kubernetes-action` and its kind; nothing for the list of resources.
    pub action: Option<(&'static str, GroupVersionKind)>,
    pub body: Option<Body>,
    pub takes: Takes,
    /// Besides those that all operations of the path share.
    pub parameters: Vec<Parameter<'a>>,
    /// Code and what is answered, in order; 401 is added when writing.
    pub responses: Vec<(&'static str, Content)>,
    pub media: Media,
}

/// What an operation takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// An object of this type.
    Object(String),
    /// `DeleteOptions`, not required.
    DeleteOptions,
    /// A patch.
    Patch,
}

/// In which media types an operation takes its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Of built-in kinds: what the server reads, which documents do not list.
    Anything,
    /// Of custom resources.
    JsonOrYaml,
    /// Patches of built-in kinds.
    Patches,
    /// Patches of custom resources: no strategic merge.
    CustomPatches,
    /// It takes nothing; version 2 names what it answers with.
    Answered,
}

/// What an operation answers with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// An object of this type.
    Type(String),
    /// Text, or what something else answers.
    Text,
}

/// In which media types an operation answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    /// JSON, YAML, protobuf.
    Object,
    /// And their streams.
    Stream,
    /// And plain text.
    Log,
    /// Whatever something else answers.
    Any,
    /// JSON, YAML: all that custom resources have.
    Custom,
}

impl Media {
    /// Their names.
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

impl Takes {
    /// Their names, of an operation that answers in `media`.
    pub fn types(self, media: Media) -> &'static [&'static str] {
        match self {
            Self::Anything => &["*/*"],
            Self::JsonOrYaml => Media::Custom.types(),
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
            Self::Answered => media.types(),
        }
    }
}

/// A path with its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathItem<'a> {
    pub path: String,
    /// Shared by all operations, sorted by name.
    pub parameters: Vec<Parameter<'a>>,
    /// Sorted by method.
    pub operations: Vec<Operation<'a>>,
}

impl<'a> PathItem<'a> {
    /// Moves what all operations have to the path, beside the parameters that every one has anyway.
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
