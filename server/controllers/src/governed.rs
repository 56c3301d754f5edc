//! How controllers that `--controllers` governs work: plain values, checked before anything starts.

use crate::resource_quota::QuotaSettings;
use crate::service_endpoints::endpoints::EndpointsSettings;
use crate::service_endpoints::mirroring::MirroringSettings;
use crate::service_endpoints::slices::SliceSettings;

/// Settings of controllers, by kube-controller-manager's flags.
#[derive(Clone, Copy, Debug)]
pub struct ControllerSettings {
    /// Of `endpoints-controller`.
    pub endpoints: EndpointsSettings,
    /// Of `endpointslice-controller`.
    pub slices: SliceSettings,
    /// Of `endpointslice-mirroring-controller`.
    pub mirroring: MirroringSettings,
    /// Of `resourcequota-controller`.
    pub quotas: QuotaSettings,
    /// `--concurrent-ttl-after-finished-syncs`
    pub ttl_workers: usize,
}
