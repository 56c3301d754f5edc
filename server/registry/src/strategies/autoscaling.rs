//! Group autoscaling: how many pods a load asks for.

mod hpa;

pub(super) use hpa::HorizontalPodAutoscaler;
