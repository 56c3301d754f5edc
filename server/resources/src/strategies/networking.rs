//! networking.k8s.io: Ingress, IngressClass, NetworkPolicy, IPAddress and ServiceCIDR.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

pub(crate) use ingress::Ingress;
pub(crate) use ingress_class::IngressClass;
pub(crate) use ip_address::IpAddress;
pub(crate) use network_policy::NetworkPolicy;
pub(crate) use service_cidr::ServiceCidr;
