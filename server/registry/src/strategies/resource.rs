//! resource.k8s.io: devices that nodes have, and claims to them.

mod claim;
mod claim_status;
mod device;
mod device_class;
mod names_of;
mod parts;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
mod selector;

pub(super) use device_class::DeviceClass;
pub(super) use resource_claim::ResourceClaim;
pub(super) use resource_claim_template::ResourceClaimTemplate;
pub(super) use resource_slice::ResourceSlice;
