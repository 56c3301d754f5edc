//! resource.k8s.io: devices that nodes have, and claims to them.

mod claim;
mod claim_status;
mod device;
mod device_class;
mod names_of;
mod parts;
mod request_policy;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
mod selector;
mod slice_parts;

pub(crate) use device_class::DeviceClass;
pub(crate) use resource_claim::ResourceClaim;
pub(crate) use resource_claim_template::ResourceClaimTemplate;
pub(crate) use resource_slice::ResourceSlice;
