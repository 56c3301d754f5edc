//! Group autoscaling: how many pods a load asks for.

mod hpa;

pub(crate) use hpa::HorizontalPodAutoscaler;
