//! resource.k8s.io: dynamic resource allocation, with devices of nodes and claims for devices.

mod claim;
mod claim_status;
mod device;
mod device_class;
mod naming;
mod request_policy;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
mod selector;
mod shared_fields;
mod slice_fields;

pub(crate) use device_class::DeviceClass;
pub(crate) use resource_claim::ResourceClaim;
pub(crate) use resource_claim_template::ResourceClaimTemplate;
pub(crate) use resource_slice::ResourceSlice;
