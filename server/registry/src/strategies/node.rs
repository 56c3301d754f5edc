//! node.k8s.io: how containers are run.

mod runtime_class;

pub(super) use runtime_class::RuntimeClass;
