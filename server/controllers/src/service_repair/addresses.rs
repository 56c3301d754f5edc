//! Repairs IPAddresses with the verbs of users.

use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use portico_kit::workqueue::Reconciled;
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{
    Context, CreateOptions, DeleteOptions, ListOptions, ObjectRef, Preconditions, Registry, Stored,
};

use super::decide::{self, Cleanup, Repair};
use super::resources::{addresses, services};
use crate::outcome::unless;
use crate::recorder::Recorder;

type Result<T> = std::result::Result<T, Box<Status>>;

/// Repair of IPAddresses.
#[derive(Clone)]
pub(super) struct Addresses {
    registry: Registry,
    recorder: Recorder,
}

impl Addresses {
    pub(super) fn new(registry: &Registry, hostname: &str) -> Self {
        let recorder = Recorder::new(registry.clone(), "ipallocator-repair-controller", hostname);
        Self { registry: registry.clone(), recorder }
    }

    /// Checks that each address of a Service has an IPAddress that refers to the Service.
    pub(super) async fn of_service(&self, service: &ObjectRef) -> Result<()> {
        let Some(service) = self.registry.get_stored(service).await? else { return Ok(()) };
        let taken = decide::addresses_of(service.object());
        if taken.is_empty() {
            return Ok(());
        }
        let ranges = self.ranges().await?;
        for address in taken {
            let known = self.known(address).await?;
            let referred = match known.as_ref().map(Stored::object) {
                Some(known) => self.referred(known).await?,
                None => None,
            };
            let known_object = known.as_ref().map(Stored::object);
            let referred = referred.as_ref().map(Stored::object);
            match decide::repair(service.object(), address, &ranges, known_object, referred) {
                Repair::Leave => {}
                Repair::Warn(warning) => self.recorder.warn(&service, &warning).await,
                Repair::Make(warning) => {
                    if let Some(warning) = warning {
                        self.recorder.warn(&service, &warning).await;
                    }
                    self.make(service.object(), address, known.as_ref()).await?;
                }
            }
        }
        Ok(())
    }

    /// Checks that an IPAddress belongs to a Service.
    pub(super) async fn address(&self, name: &str) -> Result<Reconciled> {
        let Some(address) = self.known(name).await? else { return Ok(Reconciled::Done) };
        let referred = self.referred(address.object()).await?;
        match decide::cleanup(address.object(), referred.as_ref().map(Stored::object), Timestamp::now()) {
            Cleanup::Leave => Ok(Reconciled::Done),
            Cleanup::Wait(left) => Ok(Reconciled::Again(left)),
            Cleanup::Delete(warning) => {
                self.recorder.warn(&address, &warning).await;
                self.delete(&address).await?;
                Ok(Reconciled::Done)
            }
        }
    }

    async fn make(&self, service: &Object, address: &str, known: Option<&Stored>) -> Result<()> {
        let Ok(ip) = address.parse::<IpAddr>() else { return Ok(()) };
        if let Some(known) = known {
            self.delete(known).await?;
        }
        let (context, options) = (Context::system("system:apiserver"), CreateOptions::default());
        let made = decide::address_for(service, ip);
        let made = self.registry.create(&context, &addresses(), made, &options).await;
        unless(made, &[Reason::AlreadyExists])
    }

    async fn delete(&self, address: &Stored) -> Result<()> {
        let preconditions = Preconditions { uid: Some(address.uid().to_owned()), ..Preconditions::default() };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let deleted = self
            .registry
            .delete(&Context::system("system:apiserver"), &addresses(), "", address.name(), &options)
            .await;
        unless(deleted, &[Reason::NotFound, Reason::Conflict])
    }

    async fn known(&self, name: &str) -> Result<Option<Stored>> {
        let at = ObjectRef { resource: addresses(), namespace: String::new(), name: name.to_owned() };
        self.registry.get_stored(&at).await
    }

    /// Returns the Service that an IPAddress refers to.
    async fn referred(&self, address: &Object) -> Result<Option<Stored>> {
        if !decide::names_a_service(address) {
            return Ok(None);
        }
        let (namespace, name) = decide::parent(address);
        let at = ObjectRef { resource: services(), namespace: namespace.to_owned(), name: name.to_owned() };
        self.registry.get_stored(&at).await
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
