//! Parameters of operations: a fixed set, which version 2 shares under upstream's names.

use portico_kinds::QueryParameter;

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parameter<'a> {
    pub name: &'a str,
    /// `query` or `path`.
    pub place: &'static str,
    /// `string`, `integer`, `boolean`.
    pub kind: &'a str,
    /// Its name among the shared parameters of version 2; empty when it is written in place.
    pub shared: &'a str,
    /// What it does, for people.
    pub about: &'a str,
}

impl Parameter<'_> {
    pub fn required(&self) -> bool {
        self.place == "path"
    }
}

impl<'a> From<&'a QueryParameter> for Parameter<'a> {
    fn from(own: &'a QueryParameter) -> Self {
        Self { name: &own.name, place: "query", kind: &own.ty, shared: &own.shared, about: &own.about }
    }
}

const fn query(
    name: &'static str,
    kind: &'static str,
    shared: &'static str,
    about: &'static str,
) -> Parameter<'static> {
    Parameter { name, place: "query", kind, shared, about }
}

const fn path(name: &'static str, shared: &'static str, about: &'static str) -> Parameter<'static> {
    Parameter { name, place: "path", kind: "string", shared, about }
}

pub(super) const NAME: Parameter<'_> = path("name", "", "The name of the object.");
pub(super) const NAMESPACE: Parameter<'_> = path(
    "namespace",
    "namespace-vgWSWtn3",
    "The namespace of the objects, which is also who may reach them.",
);
pub(super) const BELOW: Parameter<'_> = path("path", "path-z6Ciiujn", "What follows in the path.");
pub(super) const PRETTY: Parameter<'_> = query(
    "pretty",
    "string",
    "pretty-tJGM1-ng",
    "Whether the answer is indented ('true'). Browsers and curl get it so anyway.",
);

const CONTINUE: Parameter<'_> = query(
    "continue",
    "string",
    "continue-QfD61s0i",
    "Where to go on with a list: the token of the page before. It expires after a while; the answer is 410 then.",
);
const DRY_RUN: Parameter<'_> =
    query("dryRun", "string", "", "'All': go through every stage and answer, but keep nothing.");
const FIELD_SELECTOR: Parameter<'_> = query(
    "fieldSelector",
    "string",
    "fieldSelector-xIcQKXFG",
    "Which objects, by their fields. Everything when left out.",
);
const FIELD_VALIDATION: Parameter<'_> = query(
    "fieldValidation",
    "string",
    "",
    "What becomes of unknown and duplicate fields: 'Ignore' drops them, 'Warn' (the default) drops them with a warning, 'Strict' refuses the request.",
);
const GRACE: Parameter<'_> = query(
    "gracePeriodSeconds",
    "integer",
    "gracePeriodSeconds--K5HaBOS",
    "How many seconds the object may take to end. 0 deletes at once; the kind's own value when left out.",
);
const IGNORE_READ_ERROR: Parameter<'_> = query(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "ignoreStoreReadErrorWithClusterBreakingPotential-QbNkfIqj",
    "Whether to delete an object that cannot be read, without finalizers and preconditions. Dangerous; off unless the server has the feature.",
);
const LABEL_SELECTOR: Parameter<'_> = query(
    "labelSelector",
    "string",
    "labelSelector-5Zw57w4C",
    "Which objects, by their labels. Everything when left out.",
);
const LIMIT: Parameter<'_> = query(
    "limit",
    "integer",
    "limit-1NfNmdNH",
    "How many objects a page may have. There is more when the answer has a continue token.",
);
const ORPHAN: Parameter<'_> = query(
    "orphanDependents",
    "boolean",
    "orphanDependents-uRB25kX5",
    "Deprecated: use propagationPolicy. Whether dependents are left alone.",
);
const PROPAGATION: Parameter<'_> = query(
    "propagationPolicy",
    "string",
    "propagationPolicy-6jk3prlO",
    "What becomes of dependents: 'Orphan', 'Background' or 'Foreground'.",
);
const REVISION: Parameter<'_> = query(
    "resourceVersion",
    "string",
    "resourceVersion-5WAnf1kx",
    "At which resourceVersion to read, together with resourceVersionMatch.",
);
const REVISION_MATCH: Parameter<'_> = query(
    "resourceVersionMatch",
    "string",
    "resourceVersionMatch-t8XhRHeC",
    "How resourceVersion is meant: 'Exact' or 'NotOlderThan'.",
);
const SEND_INITIAL: Parameter<'_> = query(
    "sendInitialEvents",
    "boolean",
    "sendInitialEvents-rLXlEK_k",
    "Whether a watch begins with what exists and, where bookmarks are allowed, marks the end of that.",
);
const SHARD: Parameter<'_> = query(
    "shardSelector",
    "string",
    "shardSelector-Kgyki_3_",
    "Which objects, by a range of a hash of one of their fields.",
);
const TIMEOUT: Parameter<'_> = query(
    "timeoutSeconds",
    "integer",
    "timeoutSeconds-yvYezaOC",
    "After how many seconds a list or watch ends, whatever happens.",
);

/// Of get: upstream names it for custom resources only.
pub(super) const GET: &[Parameter<'_>] = &[REVISION];

/// Of list and watch.
pub(super) const LIST: &[Parameter<'_>] = &[
    query(
        "allowWatchBookmarks",
        "boolean",
        "allowWatchBookmarks-HC2hJt-J",
        "Whether a watch may send bookmarks: revisions up to which nothing more happened.",
    ),
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    REVISION,
    REVISION_MATCH,
    SEND_INITIAL,
    SHARD,
    TIMEOUT,
    query("watch", "boolean", "watch-XNNPZGbK", "Whether to go on with what happens, as a stream of events."),
];

/// Of deletecollection.
pub(super) const DELETE_COLLECTION: &[Parameter<'_>] = &[
    CONTINUE,
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE,
    IGNORE_READ_ERROR,
    LABEL_SELECTOR,
    LIMIT,
    ORPHAN,
    PROPAGATION,
    REVISION,
    REVISION_MATCH,
    SEND_INITIAL,
    SHARD,
    TIMEOUT,
];

/// Of delete.
pub(super) const DELETE: &[Parameter<'_>] = &[DRY_RUN, GRACE, IGNORE_READ_ERROR, ORPHAN, PROPAGATION];

/// Of create and update.
pub(super) const WRITE: &[Parameter<'_>] = &[
    DRY_RUN,
    query(
        "fieldManager",
        "string",
        "fieldManager-Qy4HdaTW",
        "In whose name fields are written; the first part of User-Agent when left out.",
    ),
    FIELD_VALIDATION,
];

/// Of patch.
pub(super) const PATCH: &[Parameter<'_>] = &[
    DRY_RUN,
    query(
        "fieldManager",
        "string",
        "fieldManager-7c6nTn1T",
        "In whose name fields are written; required by apply.",
    ),
    FIELD_VALIDATION,
    query(
        "force",
        "boolean",
        "force-tOGGb0Yi",
        "Whether an apply takes fields over that others own. Not for other patches.",
    ),
];
