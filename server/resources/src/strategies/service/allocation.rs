//! Transaction hooks that allocate and release addresses and node ports of a Service.

use std::collections::BTreeSet;

use portico_machinery::{GroupResource, Object, Status};
use portico_store::{Change, Operation, Precondition, Snapshot};

use super::allocation_failure::AllocationFailure;
use super::{addresses, carry_over, families, node_ports};
use crate::allocation::{
    AddressPool, AddressRange, AllocationChanges, IpFamily, PortPool, addresses_in_use, ports_in_use,
};
use portico_registry::Result;
use portico_registry::stored_object;
use portico_registry::{ObjectPart, Objects};
use portico_registry::{ResultFuture, TransactionHooks, TxnContext};

/// Transaction hooks of Services.
pub(crate) struct AllocationHooks;

impl TransactionHooks for AllocationHooks {
    fn before_write<'a>(
        &'a self,
        write: TxnContext<'a>,
        new: &'a mut Object,
    ) -> ResultFuture<'a, Vec<Operation>> {
        Box::pin(allocate(write, new))
    }

    fn before_removal<'a>(
        &'a self,
        objects: &'a Objects,
        last: &'a Object,
    ) -> ResultFuture<'a, Vec<Operation>> {
        Box::pin(release(objects, last))
    }
}

async fn allocate(write: TxnContext<'_>, new: &mut Object) -> Result<Vec<Operation>> {
    if write.part != ObjectPart::Main {
        return Ok(Vec::new());
    }
    let (in_use, ports) = (addresses_in_use(write.objects).await?, ports_in_use(write.objects).await?);
    let ranges = ranges(write.objects).await?;
    let claims = {
        let mut pools = pools(&write, ranges, &in_use, &ports);
        update_allocations(write.old, new, &mut pools).map_err(|fault| to_status(&write, new, fault))?
    };
    if write.dry_run { Ok(Vec::new()) } else { claims.operations(write.objects, new).await }
}

/// Operations that release all allocations of the Service and delete the Endpoints of the same name.
async fn release(objects: &Objects, last: &Object) -> Result<Vec<Operation>> {
    let spec = super::service_spec::ServiceSpec::of(last);
    let mut claims = AllocationChanges { freed_ports: spec.node_ports(), ..AllocationChanges::default() };
    claims.freed_ports.extend(Some(spec.health_port()).filter(|port| *port != 0));
    claims.freed_addresses = spec.addresses().into_iter().map(str::to_owned).collect();
    let mut operations = claims.operations(objects, last).await?;
    if let Ok(endpoints) = objects.served_resource(&GroupResource::new("", "endpoints"))
        && let Some(record) = objects.read(&endpoints, last.namespace(), last.name()).await?
    {
        let change = Change::Delete(record.value.clone());
        operations.push(Operation {
            key: record.key.clone(),
            precondition: Precondition::Revision(record.revision),
            change,
        });
    }
    Ok(operations)
}

fn update_allocations(
    old: Option<&Object>,
    new: &mut Object,
    (addresses, ports): &mut (AddressPool<'_>, PortPool<'_>),
) -> std::result::Result<AllocationChanges, AllocationFailure> {
    match old {
        Some(old) => carry_over::copy_allocated(new, old),
        None => carry_over::sync_new(new),
    }
    let errors = families::normalize_families(new, old, &addresses.families);
    if !errors.is_empty() {
        return Err(AllocationFailure::Invalid(errors));
    }
    let freed_addresses = addresses::update_addresses(new, old, addresses)?;
    let freed_ports = node_ports::update_node_ports(new, old, ports)?;
    Ok(AllocationChanges {
        addresses: std::mem::take(&mut addresses.allocated),
        ports: std::mem::take(&mut ports.allocated).into_iter().collect(),
        freed_addresses,
        freed_ports,
    })
}

fn pools<'a>(
    write: &TxnContext<'_>,
    ranges: Vec<AddressRange>,
    addresses: &'a Snapshot,
    ports: &'a Snapshot,
) -> (AddressPool<'a>, PortPool<'a>) {
    let (settings, dry_run) = (&write.objects.settings, write.dry_run);
    let families = settings.service_ranges.iter().map(|range| IpFamily::of(range.addr())).collect();
    let is_taken = Box::new(|name: &str| addresses.get_path(name).is_some());
    let addresses = AddressPool { ranges, families, is_taken, dry_run, allocated: Vec::new() };
    let is_taken = Box::new(|name: &str| ports.get_path(name).is_some());
    let ports =
        PortPool { range: settings.node_ports.clone(), is_taken, dry_run, allocated: BTreeSet::new() };
    (addresses, ports)
}

/// Returns the configured ranges and those of ServiceCIDRs that are ready and not being deleted.
async fn ranges(objects: &Objects) -> Result<Vec<AddressRange>> {
    let mut networks = objects.settings.service_ranges.clone();
    let served = objects.served_resource(&GroupResource::new("networking.k8s.io", "servicecidrs"))?;
    for record in objects.snapshot(&served).await?.iter() {
        let object = stored_object::decode(record);
        let ready = object.at(&["status", "conditions"]).items().find(|c| c.field("type").str() == "Ready");
        let unready = ready.is_some_and(|condition| condition.field("status").str() != "True");
        if unready || object.deletion_timestamp().is_some() {
            continue;
        }
        let cidrs = object.at(&["spec", "cidrs"]);
        for network in cidrs.items().filter_map(|cidr| cidr.str().parse().ok()) {
            if !networks.contains(&network) {
                networks.push(network);
            }
        }
    }
    Ok(networks.into_iter().map(AddressRange::new).collect())
}

fn to_status(write: &TxnContext<'_>, new: &Object, fault: AllocationFailure) -> Box<Status> {
    Box::new(match fault {
        AllocationFailure::Invalid(errors) => {
            Status::invalid(&write.served_resource.stored_info().group_kind(), new.name(), &errors)
        }
        AllocationFailure::Internal(text) => Status::internal(text),
    })
}
