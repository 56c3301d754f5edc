//! Group policy: how much of what runs may be disturbed.

mod pod_disruption_budget;

pub(crate) use pod_disruption_budget::PodDisruptionBudget;
