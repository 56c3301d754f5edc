//! node.k8s.io: RuntimeClass.

mod runtime_class;

pub(crate) use runtime_class::RuntimeClass;
