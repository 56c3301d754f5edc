//! Condition types of definitions that only these controllers use, and the context in which they are written.

use portico_registry::Context;

/// True if a schema is not structural.
pub const NON_STRUCTURAL: &str = "NonStructuralSchema";
/// True if a definition in a protected group is approved.
pub const APPROVED: &str = "KubernetesAPIApprovalPolicyConformant";

/// Returns the context of the server itself.
pub fn context() -> Context {
    Context::system("system:apiserver")
}
