//! Group autoscaling: scaling of workloads by their load.

mod hpa;

pub(crate) use hpa::HorizontalPodAutoscaler;
