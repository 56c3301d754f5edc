//! scheduling.k8s.io: how important pods are.

mod priority_class;

pub(super) use priority_class::PriorityClass;
