//! One cause of a Status.

use serde::{Deserialize, Serialize};

/// One cause in `details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// Machine-readable reason, such as `FieldValueRequired`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Human-readable message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Path of the field: `spec.a[0].b`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}
