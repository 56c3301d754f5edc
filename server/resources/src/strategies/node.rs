//! node.k8s.io: how containers are run.

mod runtime_class;

pub(crate) use runtime_class::RuntimeClass;
