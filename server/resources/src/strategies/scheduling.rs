//! scheduling.k8s.io: how important pods are.

mod priority_class;

pub(crate) use priority_class::PriorityClass;
