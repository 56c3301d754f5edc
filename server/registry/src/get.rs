//! Get (upstream's `Store.Get`) and the reads that other verbs share.

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
    /// All objects of a computed kind, without a revision; `None` for stored kinds.
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
    /// Reads an object; status 404 if it is absent.
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

    /// Reads an object, if it exists.
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

    /// Reads an object of another kind, if it exists.
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

    /// Reads an object in the version of the served resource, if it exists.
    ///
    /// # Errors
    /// Status 500 if the object cannot be read or converted.
    pub async fn shown(
        &self,
        served: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>> {
        let record = self.read(served, namespace, name).await?;
        Ok(record.map(|record| self.show(served, record)))
    }

    /// Decodes a record in the version of the served resource.
    #[must_use]
    pub fn show(&self, served: &ServedResource, record: Arc<Record>) -> Object {
        let mut object = self.recent.stored(record).object().clone();
        served.to_version(&mut object);
        object
    }

    /// Complete current state of a resource, including all writes acknowledged before the call. Reads a resource that is not in
    /// memory from the database: use `Objects::state` or [`Objects::find`] to read a part of it.
    pub async fn snapshot(&self, served: &ServedResource) -> Result<Snapshot> {
        if let Some(snapshot) = self.store.current(&served.storage) {
            return Ok(snapshot);
        }
        self.store.snapshot(&served.storage).await.map_err(|e| failure::of_read(e, 0))
    }

    /// Location of the current state of a resource (memory or database), including all writes acknowledged before the call.
    pub(crate) async fn state(&self, served: &ServedResource) -> Result<State> {
        if let Some(snapshot) = self.store.current(&served.storage) {
            return Ok(State::Held(snapshot));
        }
        self.store.state(&served.storage).await.map_err(|e| failure::of_read(e, 0))
    }

    /// Looks up an object in the current state, readable or not.
    pub async fn find(&self, served: &ServedResource, namespace: &str, name: &str) -> Result<Found> {
        let namespace = if served.info.namespaced { namespace } else { "" };
        let key = Key::new(&served.storage, namespace, name);
        if let Some(snapshot) = self.store.current(&served.storage) {
            return Ok(Found::in_snapshot(&snapshot, &key));
        }
        self.store.find(&key).await.map_err(|e| failure::of_read(e, 0))
    }
}
