//! Accessors of `metadata`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cursor, Object};

/// Entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// `apiVersion` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// True if this owner is the controller of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// True if foreground deletion of the owner waits for the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl Object {
    /// Returns a cursor at `metadata`.
    #[must_use]
    pub fn metadata(&self) -> Cursor<'_> {
        self.at(&["metadata"])
    }

    /// Returns `metadata.name`, or an empty string if it is absent.
    #[must_use]
    pub fn name(&self) -> &str {
        self.at(&["metadata", "name"]).str()
    }

    /// Returns `metadata.generateName`, or an empty string if it is absent.
    #[must_use]
    pub fn generate_name(&self) -> &str {
        self.at(&["metadata", "generateName"]).str()
    }

    /// Returns `metadata.namespace`, or an empty string at cluster scope.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.at(&["metadata", "namespace"]).str()
    }

    /// Returns `metadata.uid`, or an empty string if it is absent.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.at(&["metadata", "uid"]).str()
    }

    /// Returns `metadata.resourceVersion`, or an empty string if it is absent.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.at(&["metadata", "resourceVersion"]).str()
    }

    /// Returns `metadata.generation`, or 0 if it is absent.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.at(&["metadata", "generation"]).i64().unwrap_or(0)
    }

    /// Returns `metadata.deletionTimestamp` if the object is being deleted.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.at(&["metadata", "deletionTimestamp"]).opt_str()
    }

    /// Returns `metadata.creationTimestamp`.
    #[must_use]
    pub fn creation_timestamp(&self) -> Option<&str> {
        self.at(&["metadata", "creationTimestamp"]).opt_str()
    }

    /// Returns `metadata.finalizers`, in order.
    #[must_use]
    pub fn finalizers(&self) -> Vec<&str> {
        self.at(&["metadata", "finalizers"]).items().map(|c| c.str()).collect()
    }

    /// Returns `metadata.labels` as a sorted map of owned strings.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        string_map(&self.at(&["metadata", "labels"]))
    }

    /// Returns the entries of `metadata.labels` that are strings.
    pub fn label_entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.at(&["metadata", "labels"]).string_entries()
    }

    /// Returns the value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "labels"]).entry_str(key)
    }

    /// Returns the value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "annotations"]).entry_str(key)
    }

    /// Returns `metadata.ownerReferences`, or an empty list if they cannot be decoded.
    #[must_use]
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        self.decode(&["metadata", "ownerReferences"]).unwrap_or_default()
    }
}

fn string_map(cursor: &Cursor<'_>) -> BTreeMap<String, String> {
    cursor.entries().map(|(k, v)| (k.to_owned(), v.str().to_owned())).collect()
}
