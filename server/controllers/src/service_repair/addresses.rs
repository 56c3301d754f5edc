//! Repairs IPAddresses with the verbs of users.

use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use portico_kit::workqueue::ReconcileOutcome;
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{
    Context, CreateOptions, DeleteOptions, ListOptions, ObjectRef, Preconditions, Registry, StoredObject,
};

use super::decision::{self, Cleanup, Repair};
use super::resources::{addresses, services};
use crate::recorder::Recorder;
use crate::write_result::ignore_reasons;

type Result<T> = std::result::Result<T, Box<Status>>;

/// Repair of IPAddresses.
#[derive(Clone)]
pub(super) struct AddressRepair {
    registry: Registry,
    recorder: Recorder,
}

impl AddressRepair {
    pub(super) fn new(registry: &Registry, hostname: &str) -> Self {
        let recorder = Recorder::new(registry.clone(), "ipallocator-repair-controller", hostname);
        Self { registry: registry.clone(), recorder }
    }

    /// Checks that each address of a Service has an IPAddress that refers to the Service.
    pub(super) async fn check_service(&self, service: &ObjectRef) -> Result<()> {
        let Some(service) = self.registry.get_stored(service).await? else { return Ok(()) };
        let cluster_ips = decision::addresses_of(service.object());
        if cluster_ips.is_empty() {
            return Ok(());
        }
        let ranges = self.ranges().await?;
        for address in cluster_ips {
            let existing = self.ip_address(address).await?;
            let referenced_service = match existing.as_ref().map(StoredObject::object) {
                Some(existing) => self.referenced_service(existing).await?,
                None => None,
            };
            let existing_object = existing.as_ref().map(StoredObject::object);
            let referenced_service = referenced_service.as_ref().map(StoredObject::object);
            match decision::decide_repair(
                service.object(),
                address,
                &ranges,
                existing_object,
                referenced_service,
            ) {
                Repair::Skip => {}
                Repair::Warn(warning) => self.recorder.warn(&service, &warning).await,
                Repair::Create(warning) => {
                    if let Some(warning) = warning {
                        self.recorder.warn(&service, &warning).await;
                    }
                    self.create(service.object(), address, existing.as_ref()).await?;
                }
            }
        }
        Ok(())
    }

    /// Checks that an IPAddress belongs to a Service.
    pub(super) async fn check_address(&self, name: &str) -> Result<ReconcileOutcome> {
        let Some(address) = self.ip_address(name).await? else { return Ok(ReconcileOutcome::Done) };
        let referenced_service = self.referenced_service(address.object()).await?;
        match decision::decide_cleanup(
            address.object(),
            referenced_service.as_ref().map(StoredObject::object),
            Timestamp::now(),
        ) {
            Cleanup::Keep => Ok(ReconcileOutcome::Done),
            Cleanup::Wait(left) => Ok(ReconcileOutcome::RequeueAfter(left)),
            Cleanup::Delete(warning) => {
                self.recorder.warn(&address, &warning).await;
                self.delete(&address).await?;
                Ok(ReconcileOutcome::Done)
            }
        }
    }

    async fn create(&self, service: &Object, address: &str, existing: Option<&StoredObject>) -> Result<()> {
        let Ok(ip) = address.parse::<IpAddr>() else { return Ok(()) };
        if let Some(existing) = existing {
            self.delete(existing).await?;
        }
        let (context, options) = (Context::system("system:apiserver"), CreateOptions::default());
        let object = decision::address_for(service, ip);
        let created = self.registry.create(&context, &addresses(), object, &options).await;
        ignore_reasons(created, &[Reason::AlreadyExists])
    }

    async fn delete(&self, address: &StoredObject) -> Result<()> {
        let preconditions = Preconditions { uid: Some(address.uid().to_owned()), ..Preconditions::default() };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let deleted = self
            .registry
            .delete(&Context::system("system:apiserver"), &addresses(), "", address.name(), &options)
            .await;
        ignore_reasons(deleted, &[Reason::NotFound, Reason::Conflict])
    }

    async fn ip_address(&self, name: &str) -> Result<Option<StoredObject>> {
        let object_ref = ObjectRef { resource: addresses(), namespace: String::new(), name: name.to_owned() };
        self.registry.get_stored(&object_ref).await
    }

    /// Returns the Service that an IPAddress refers to.
    async fn referenced_service(&self, address: &Object) -> Result<Option<StoredObject>> {
        if !decision::refers_to_service(address) {
            return Ok(None);
        }
        let (namespace, name) = decision::parent(address);
        let object_ref =
            ObjectRef { resource: services(), namespace: namespace.to_owned(), name: name.to_owned() };
        self.registry.get_stored(&object_ref).await
    }

    /// Returns all existing ranges, including those that are being deleted.
    async fn ranges(&self) -> Result<Vec<IpNet>> {
        let cidrs = GroupResource::new("networking.k8s.io", "servicecidrs");
        let cidrs = self.registry.list(&cidrs, "", &ListOptions::default()).await?.items;
        let ranges = cidrs.iter().flat_map(|cidr| {
            let cidrs = cidr.object().at(&["spec", "cidrs"]);
            cidrs.items().filter_map(|cidr| cidr.str().parse().ok()).collect::<Vec<_>>()
        });
        Ok(ranges.collect())
    }
}
