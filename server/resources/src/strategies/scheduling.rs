//! scheduling.k8s.io: PriorityClass.

mod priority_class;

pub(crate) use priority_class::PriorityClass;
