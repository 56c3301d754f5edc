//! A Service's write begins with its addresses and ports, and takes them along in its transaction.

use std::collections::BTreeSet;

use portico_machinery::{GroupResource, Object, Status};
use portico_store::{Change, Expect, Operation, Snapshot};

use super::fault::Fault;
use super::{addresses, carry, families, node_ports};
use crate::allocation::{AddressPool, Claims, Family, PortPool, Range, addresses_in_use, ports_in_use};
use portico_registry::Result;
use portico_registry::stored;
use portico_registry::{Beginning, Pending, TransactionHooks};
use portico_registry::{Objects, Part};

/// See the module.
pub(crate) struct Allocation;

impl TransactionHooks for Allocation {
    fn begin<'a>(&'a self, write: Beginning<'a>, new: &'a mut Object) -> Pending<'a, Vec<Operation>> {
        Box::pin(begin(write, new))
    }

    fn end<'a>(&'a self, objects: &'a Objects, last: &'a Object) -> Pending<'a, Vec<Operation>> {
        Box::pin(end(objects, last))
    }
}

async fn begin(write: Beginning<'_>, new: &mut Object) -> Result<Vec<Operation>> {
    if write.part != Part::Main {
        return Ok(Vec::new());
    }
    let (in_use, ports) = (addresses_in_use(write.objects).await?, ports_in_use(write.objects).await?);
    let ranges = ranges(write.objects).await?;
    let claims = {
        let mut pools = pools(&write, ranges, &in_use, &ports);
        settle(write.old, new, &mut pools).map_err(|fault| refused(&write, new, fault))?
    };
    if write.dry_run { Ok(Vec::new()) } else { claims.operations(write.objects, new).await }
}

/// Everything that the Service had, and the Endpoints of its name.
async fn end(objects: &Objects, last: &Object) -> Result<Vec<Operation>> {
    let spec = super::view::View::of(last);
    let mut claims = Claims { freed_ports: spec.node_ports(), ..Claims::default() };
    claims.freed_ports.extend(Some(spec.health_port()).filter(|port| *port != 0));
    claims.freed_addresses = spec.addresses().into_iter().map(str::to_owned).collect();
    let mut operations = claims.operations(objects, last).await?;
    if let Ok(endpoints) = objects.served(&GroupResource::new("", "endpoints"))
        && let Some(record) = objects.read(&endpoints, last.namespace(), last.name()).await?
    {
        let change = Change::Delete(record.value.clone());
        operations.push(Operation {
            key: record.key.clone(),
            expect: Expect::Revision(record.revision),
            change,
        });
    }
    Ok(operations)
}

fn settle(
    old: Option<&Object>,
    new: &mut Object,
    (addresses, ports): &mut (AddressPool<'_>, PortPool<'_>),
) -> std::result::Result<Claims, Fault> {
    match old {
        Some(old) => carry::fill_in(new, old),
        None => carry::sync_new(new),
    }
    let errors = families::settle(new, old, &addresses.families);
    if !errors.is_empty() {
        return Err(Fault::Invalid(errors));
    }
    let freed_addresses = addresses::settle(new, old, addresses)?;
    let freed_ports = node_ports::settle(new, old, ports)?;
    Ok(Claims {
        addresses: std::mem::take(&mut addresses.claimed),
        ports: std::mem::take(&mut ports.claimed).into_iter().collect(),
        freed_addresses,
        freed_ports,
    })
}

fn pools<'a>(
    write: &Beginning<'_>,
    ranges: Vec<Range>,
    addresses: &'a Snapshot,
    ports: &'a Snapshot,
) -> (AddressPool<'a>, PortPool<'a>) {
    let (settings, dry_run) = (&write.objects.settings, write.dry_run);
    let families = settings.service_ranges.iter().map(|range| Family::of(range.addr())).collect();
    let taken = Box::new(|name: &str| addresses.get_path(name).is_some());
    let addresses = AddressPool { ranges, families, taken, dry_run, claimed: Vec::new() };
    let taken = Box::new(|name: &str| ports.get_path(name).is_some());
    let ports = PortPool { range: settings.node_ports.clone(), taken, dry_run, claimed: BTreeSet::new() };
    (addresses, ports)
}

/// The configured ranges, and those that ServiceCIDRs add: unless they are on their way out or not ready.
async fn ranges(objects: &Objects) -> Result<Vec<Range>> {
    let mut networks = objects.settings.service_ranges.clone();
    let served = objects.served(&GroupResource::new("networking.k8s.io", "servicecidrs"))?;
    for record in objects.snapshot(&served).await?.iter() {
        let object = stored::decode(record);
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
    Ok(networks.into_iter().map(Range::new).collect())
}

fn refused(write: &Beginning<'_>, new: &Object, fault: Fault) -> Box<Status> {
    Box::new(match fault {
        Fault::Invalid(errors) => {
            Status::invalid(&write.served.stored_info().group_kind(), new.name(), &errors)
        }
        Fault::Internal(text) => Status::internal(text),
    })
}
