//! Get (upstream's `Store.Get`), and the reads that other verbs begin with.

use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Status};
use portico_store::{Found, Key, Record, Snapshot, State};

use crate::Result;
use crate::encoding;
use crate::failure;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::stored;
use crate::unreadable;

impl ServedResource {
    /// All objects of a kind that is computed rather than stored, at no revision.
    pub(crate) fn computed(&self) -> Result<Option<Vec<Arc<Record>>>> {
        let Some(computed) = self.strategies.computed else { return Ok(None) };
        let objects = computed.computed(&self.info.gvk);
        let record = |mut object: Object| {
            self.info.schema.normalise(&mut object);
            let key = Key::new(&self.storage, "", object.name());
            Ok(Arc::new(Record { key, revision: 0, value: encoding::encode(self, &mut object)? }))
        };
        objects.into_iter().map(record).collect::<Result<_>>().map(Some)
    }
}

impl Objects {
    /// An object, or 404.
    pub async fn get(&self, served: &ServedResource, namespace: &str, name: &str) -> Result<Arc<Record>> {
        if let Some(records) = served.computed()? {
            let found = records.into_iter().find(|record| record.key.name() == name);
            let resource = GroupResource::new(served.resource.group.clone(), served.info.singular.clone());
            return found.ok_or_else(|| Box::new(Status::not_found(&resource, name)));
        }
        self.read(served, namespace, name)
            .await?
            .ok_or_else(|| Box::new(Status::not_found(&served.resource, name)))
    }

    /// An object, if it is there.
    pub async fn read(
        &self,
        served: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Record>>> {
        match self.find(served, namespace, name).await?.object {
            Some(Ok(record)) => self.incoming(served, record).await.map(Some),
            Some(Err(object)) => Err(Box::new(unreadable::of(&served.resource, &object))),
            None => Ok(None),
        }
    }

    /// An object of another kind, if it is there.
    pub async fn object_of(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>> {
        let served = self.served(&GroupResource::new(group, resource))?;
        let record = self.read(&served, namespace, name).await?;
        Ok(record.map(|record| stored::decode(&record)))
    }

    /// An object as a version of its resource shows it, if it is there.
    ///
    /// # Errors
    /// 500 when it cannot be read or converted.
    pub async fn shown(
        &self,
        served: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>> {
        let record = self.read(served, namespace, name).await?;
        Ok(record.map(|record| self.show(served, record)))
    }

    /// A record that was read in this version, as an object of it.
    #[must_use]
    pub fn show(&self, served: &ServedResource, record: Arc<Record>) -> Object {
        let mut object = self.recent.stored(record).object().clone();
        served.to_version(&mut object);
        object
    }

    /// The current state of a resource, whole: everything that was acknowledged before this was asked. One that memory has no room
    /// for is read from the database: who wants a part of it asks `Objects::state` or [`Objects::find`].
    pub async fn snapshot(&self, served: &ServedResource) -> Result<Snapshot> {
        if let Some(snapshot) = self.store.current(&served.storage) {
            return Ok(snapshot);
        }
        self.store.snapshot(&served.storage).await.map_err(|e| failure::of_read(e, 0))
    }

    /// Where the current state of a resource is: everything that was acknowledged before this was asked.
    pub(crate) async fn state(&self, served: &ServedResource) -> Result<State> {
        if let Some(snapshot) = self.store.current(&served.storage) {
            return Ok(State::Held(snapshot));
        }
        self.store.state(&served.storage).await.map_err(|e| failure::of_read(e, 0))
    }

    /// An object as it is stored now, whether it can be read or not.
    pub async fn find(&self, served: &ServedResource, namespace: &str, name: &str) -> Result<Found> {
        let namespace = if served.info.namespaced { namespace } else { "" };
        let key = Key::new(&served.storage, namespace, name);
        if let Some(snapshot) = self.store.current(&served.storage) {
            return Ok(Found::in_snapshot(&snapshot, &key));
        }
        self.store.find(&key).await.map_err(|e| failure::of_read(e, 0))
    }
}
