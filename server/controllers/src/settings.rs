//! Settings of the controllers that `--controllers` selects: plain values, checked before the start.

use crate::resource_quota::QuotaSettings;
use crate::service_endpoints::endpoints::EndpointsSettings;
use crate::service_endpoints::mirroring::MirroringSettings;
use crate::service_endpoints::slices::SliceSettings;

/// Settings of controllers, by kube-controller-manager's flags.
#[derive(Clone, Copy, Debug)]
pub struct ControllerSettings {
    /// Settings of `endpoints-controller`.
    pub endpoints: EndpointsSettings,
    /// Settings of `endpointslice-controller`.
    pub slices: SliceSettings,
    /// Settings of `endpointslice-mirroring-controller`.
    pub mirroring: MirroringSettings,
    /// Settings of `resourcequota-controller`.
    pub quotas: QuotaSettings,
    /// `--concurrent-ttl-after-finished-syncs`
    pub ttl_workers: usize,
}
