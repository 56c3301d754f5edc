//! Group policy: how much of what runs may be disturbed.

mod pod_disruption_budget;

pub(super) use pod_disruption_budget::PodDisruptionBudget;
