//! Conditions of definitions that only these controllers know, and who writes them.

use portico_registry::Context;

/// Its schemas are no structural ones.
pub const NON_STRUCTURAL: &str = "NonStructuralSchema";
/// Whether it may have a name in a group of Kubernetes' own.
pub const APPROVED: &str = "KubernetesAPIApprovalPolicyConformant";

/// The server itself.
pub fn context() -> Context {
    Context::system("system:apiserver")
}
