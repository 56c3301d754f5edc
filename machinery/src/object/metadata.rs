//! `metadata`: what every object has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cursor, Object};

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// The owner's `apiVersion`.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name.
    pub name: String,
    /// The owner's uid.
    pub uid: String,
    /// Whether this owner manages the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether foreground deletion of the owner waits for the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl Object {
    /// A cursor at `metadata`.
    #[must_use]
    pub fn metadata(&self) -> Cursor<'_> {
        self.at(&["metadata"])
    }

    /// `metadata.name`, empty when absent.
    #[must_use]
    pub fn name(&self) -> &str {
        self.at(&["metadata", "name"]).str()
    }

    /// `metadata.generateName`, empty when absent.
    #[must_use]
    pub fn generate_name(&self) -> &str {
        self.at(&["metadata", "generateName"]).str()
    }

    /// `metadata.namespace`, empty at cluster scope.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.at(&["metadata", "namespace"]).str()
    }

    /// `metadata.uid`, empty when absent.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.at(&["metadata", "uid"]).str()
    }

    /// `metadata.resourceVersion`, empty when absent.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.at(&["metadata", "resourceVersion"]).str()
    }

    /// `metadata.generation`, 0 when absent.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.at(&["metadata", "generation"]).i64().unwrap_or(0)
    }

    /// `metadata.deletionTimestamp`, when the object is being deleted.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.at(&["metadata", "deletionTimestamp"]).opt_str()
    }

    /// `metadata.creationTimestamp`.
    #[must_use]
    pub fn creation_timestamp(&self) -> Option<&str> {
        self.at(&["metadata", "creationTimestamp"]).opt_str()
    }

    /// `metadata.finalizers`, in order.
    #[must_use]
    pub fn finalizers(&self) -> Vec<&str> {
        self.at(&["metadata", "finalizers"]).items().map(|c| c.str()).collect()
    }

    /// `metadata.labels` as a sorted map of owned strings.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        string_map(&self.at(&["metadata", "labels"]))
    }

    /// The entries of `metadata.labels` that are strings.
    pub fn label_entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.at(&["metadata", "labels"]).string_entries()
    }

    /// One label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "labels"]).entry_str(key)
    }

    /// One annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "annotations"]).entry_str(key)
    }

    /// `metadata.ownerReferences`; entries of another shape read as empty.
    #[must_use]
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        self.decode(&["metadata", "ownerReferences"]).unwrap_or_default()
    }
}

fn string_map(cursor: &Cursor<'_>) -> BTreeMap<String, String> {
    cursor.entries().map(|(k, v)| (k.to_owned(), v.str().to_owned())).collect()
}
