//! Parameters of operations: a fixed set, which version 2 shares under upstream's names.

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parameter {
    pub name: &'static str,
    /// `query` or `path`.
    pub place: &'static str,
    /// `string`, `integer`, `boolean`.
    pub kind: &'static str,
    /// Its name among the shared parameters of version 2; empty when it is written in place.
    pub shared: &'static str,
}

impl Parameter {
    pub fn required(&self) -> bool {
        self.place == "path"
    }
}

const fn query(name: &'static str, kind: &'static str, shared: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, shared }
}

pub(super) const NAME: Parameter = Parameter { name: "name", place: "path", kind: "string", shared: "" };
pub(super) const NAMESPACE: Parameter =
    Parameter { name: "namespace", place: "path", kind: "string", shared: "namespace-vgWSWtn3" };
pub(super) const PRETTY: Parameter = query("pretty", "string", "pretty-tJGM1-ng");

const CONTINUE: Parameter = query("continue", "string", "continue-QfD61s0i");
const DRY_RUN: Parameter = query("dryRun", "string", "");
const FIELD_SELECTOR: Parameter = query("fieldSelector", "string", "fieldSelector-xIcQKXFG");
const FIELD_VALIDATION: Parameter = query("fieldValidation", "string", "");
const GRACE: Parameter = query("gracePeriodSeconds", "integer", "gracePeriodSeconds--K5HaBOS");
const IGNORE_READ_ERROR: Parameter = query(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "ignoreStoreReadErrorWithClusterBreakingPotential-QbNkfIqj",
);
const LABEL_SELECTOR: Parameter = query("labelSelector", "string", "labelSelector-5Zw57w4C");
const LIMIT: Parameter = query("limit", "integer", "limit-1NfNmdNH");
const ORPHAN: Parameter = query("orphanDependents", "boolean", "orphanDependents-uRB25kX5");
const PROPAGATION: Parameter = query("propagationPolicy", "string", "propagationPolicy-6jk3prlO");
const REVISION: Parameter = query("resourceVersion", "string", "resourceVersion-5WAnf1kx");
const REVISION_MATCH: Parameter = query("resourceVersionMatch", "string", "resourceVersionMatch-t8XhRHeC");
const SEND_INITIAL: Parameter = query("sendInitialEvents", "boolean", "sendInitialEvents-rLXlEK_k");
const SHARD: Parameter = query("shardSelector", "string", "shardSelector-Kgyki_3_");
const TIMEOUT: Parameter = query("timeoutSeconds", "integer", "timeoutSeconds-yvYezaOC");

/// Of list and watch.
pub(super) const LIST: &[Parameter] = &[
    query("allowWatchBookmarks", "boolean", "allowWatchBookmarks-HC2hJt-J"),
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    REVISION,
    REVISION_MATCH,
    SEND_INITIAL,
    SHARD,
    TIMEOUT,
    query("watch", "boolean", "watch-XNNPZGbK"),
];

/// Of deletecollection.
pub(super) const DELETE_COLLECTION: &[Parameter] = &[
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
pub(super) const DELETE: &[Parameter] = &[DRY_RUN, GRACE, IGNORE_READ_ERROR, ORPHAN, PROPAGATION];

/// Of create and update.
pub(super) const WRITE: &[Parameter] =
    &[DRY_RUN, query("fieldManager", "string", "fieldManager-Qy4HdaTW"), FIELD_VALIDATION];

/// Of patch.
pub(super) const PATCH: &[Parameter] = &[
    DRY_RUN,
    query("fieldManager", "string", "fieldManager-7c6nTn1T"),
    FIELD_VALIDATION,
    query("force", "boolean", "force-tOGGb0Yi"),
];
