//! Records of allocated addresses and ports in the store, and the operations that create and delete them.

use std::net::IpAddr;

use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::{GroupResource, Object, Status};
use portico_store::{Change, Key, Operation, Precondition, Resource, Snapshot, Value};

use super::addresses::IpFamily;
use portico_registry::Objects;
use portico_registry::Result;
use portico_registry::{encoding, failure, stored_object, system};

const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
const MANAGER_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "ipallocator.k8s.io";

/// Allocations and releases of one write of a Service.
#[derive(Debug, Default)]
pub(crate) struct AllocationChanges {
    /// Addresses to allocate.
    pub(crate) addresses: Vec<IpAddr>,
    /// Ports to allocate.
    pub(crate) ports: Vec<u16>,
    /// Addresses to release.
    pub(crate) freed_addresses: Vec<String>,
    /// Ports to release.
    pub(crate) freed_ports: Vec<i64>,
}

impl AllocationChanges {
    /// Operations for the transaction that writes the Service.
    pub(crate) async fn operations(self, objects: &Objects, service: &Object) -> Result<Vec<Operation>> {
        let mut operations = Vec::new();
        for address in &self.addresses {
            operations.push(allocate_address(objects, *address, service)?);
        }
        for port in &self.ports {
            operations.push(allocate_port(*port, service)?);
        }
        if !self.freed_addresses.is_empty() {
            let (snapshot, reference) = (addresses(objects).await?, ["spec", "parentRef"]);
            operations.extend(release(&snapshot, &self.freed_addresses, service, &reference));
        }
        if !self.freed_ports.is_empty() {
            let names: Vec<String> = self.freed_ports.iter().map(i64::to_string).collect();
            operations.extend(release(&ports(objects).await?, &names, service, &["service"]));
        }
        Ok(operations)
    }
}

/// Returns all allocated addresses.
pub(crate) async fn addresses(objects: &Objects) -> Result<Snapshot> {
    objects.snapshot(&*objects.served_resource(&address_resource())?).await
}

/// Returns all allocated ports.
pub(crate) async fn ports(objects: &Objects) -> Result<Snapshot> {
    let resource = port_resource();
    match objects.store.try_snapshot(&resource) {
        Some(snapshot) => Ok(snapshot),
        None => objects.store.snapshot(&resource).await.map_err(|e| failure::from_store_error(e, 0)),
    }
}

fn address_resource() -> GroupResource {
    GroupResource::new("networking.k8s.io", "ipaddresses")
}

/// Resource of the records of ports. The API does not serve it.
pub(super) fn port_resource() -> Resource {
    Resource::new("portico.dev", "nodeports")
}

fn service_reference(service: &Object) -> [(&'static str, &str); 2] {
    [("namespace", service.namespace()), ("name", service.name())]
}

fn allocate_address(objects: &Objects, address: IpAddr, service: &Object) -> Result<Operation> {
    let served = objects.served_resource(&address_resource())?;
    let mut object = Object::new(&served.info.gvk);
    object.set(&["metadata", "name"], address.to_string());
    system::fill_create(&mut object, objects.request_time().now);
    object.set(&["metadata", "labels", FAMILY_LABEL], IpFamily::of(address).name());
    object.set(&["metadata", "labels", MANAGER_LABEL], MANAGER);
    object.set(&["spec", "parentRef", "resource"], "services");
    for (field, value) in service_reference(service) {
        object.set(&["spec", "parentRef", field], value);
    }
    served.info.schema.normalize(&mut object);
    let key = encoding::key(&served, &object);
    let change = Change::Put(encoding::encode(&served, &mut object)?);
    Ok(Operation { key, precondition: Precondition::Absent, change })
}

pub(super) fn allocate_port(port: u16, service: &Object) -> Result<Operation> {
    let kind = GroupVersionKind {
        group: "portico.dev".to_owned(),
        version: "v1".to_owned(),
        kind: "NodePort".to_owned(),
    };
    let (resource, name) = (port_resource(), port.to_string());
    let mut object = Object::new(&kind);
    object.set(&["metadata", "name"], &name);
    for (field, value) in service_reference(service) {
        object.set(&["service", field], value);
    }
    let value = Value::from_metadata(&resource, object.to_json()).map_err(Status::internal)?;
    let change = Change::Put(value);
    Ok(Operation { key: Key::new(&resource, "", &name), precondition: Precondition::Absent, change })
}

/// Releases those of `names` that are allocated to the Service. An allocation that was changed to another owner remains.
fn release<'a>(
    snapshot: &'a Snapshot,
    names: &'a [String],
    service: &'a Object,
    reference: &'a [&'a str],
) -> impl Iterator<Item = Operation> + 'a {
    let records = names.iter().filter_map(|name| snapshot.get_path(name));
    let owned = records.filter(|record| {
        let object = stored_object::decode(record);
        service_reference(service)
            .iter()
            .all(|(field, value)| object.at(reference).field(field).str() == *value)
    });
    owned.map(|record| Operation {
        key: record.key.clone(),
        // An allocation that was deleted and given to another Service in the meantime has another revision.
        precondition: Precondition::Revision(record.revision),
        change: Change::Delete(record.value.clone()),
    })
}
