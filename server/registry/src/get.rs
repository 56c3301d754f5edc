//! Get (upstream's `Store.Get`) and the reads that other verbs share.

use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Status};
use portico_store::{CurrentState, Key, ObjectLookup, Record, Snapshot};

use crate::Result;
use crate::encoding;
use crate::failure;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::stored_object;
use crate::unreadable;

impl ServedResource {
    /// All objects of a computed kind, without a revision; `None` for stored kinds.
    pub(crate) fn computed(&self) -> Result<Option<Vec<Arc<Record>>>> {
        let Some(computed) = self.strategies.computed else { return Ok(None) };
        let objects = computed.computed(&self.info.gvk);
        let record = |mut object: Object| {
            self.info.schema.normalize(&mut object);
            let key = Key::new(&self.storage, "", object.name());
            Ok(Arc::new(Record { key, revision: 0, value: encoding::encode(self, &mut object)? }))
        };
        objects.into_iter().map(record).collect::<Result<_>>().map(Some)
    }
}

impl Objects {
    /// Reads an object; status 404 if it is absent.
    pub async fn get(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Record>> {
        if let Some(records) = served_resource.computed()? {
            let found = records.into_iter().find(|record| record.key.name() == name);
            let resource = GroupResource::new(
                served_resource.resource.group.clone(),
                served_resource.info.singular.clone(),
            );
            return found.ok_or_else(|| Box::new(Status::not_found(&resource, name)));
        }
        self.read(served_resource, namespace, name)
            .await?
            .ok_or_else(|| Box::new(Status::not_found(&served_resource.resource, name)))
    }

    /// Reads an object, if it exists.
    pub async fn read(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Record>>> {
        match self.find(served_resource, namespace, name).await?.object {
            Some(Ok(record)) => self.convert_for_request(served_resource, record).await.map(Some),
            Some(Err(object)) => {
                Err(Box::new(unreadable::unreadable_status(&served_resource.resource, &object)))
            }
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
        let served_resource = self.served_resource(&GroupResource::new(group, resource))?;
        let record = self.read(&served_resource, namespace, name).await?;
        Ok(record.map(|record| stored_object::decode(&record)))
    }

    /// Reads an object in the version of the served resource, if it exists.
    ///
    /// # Errors
    /// Status 500 if the object cannot be read or converted.
    pub async fn read_in_version(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>> {
        let record = self.read(served_resource, namespace, name).await?;
        Ok(record.map(|record| self.decode_in_version(served_resource, record)))
    }

    /// Decodes a record in the version of the served resource.
    #[must_use]
    pub fn decode_in_version(&self, served_resource: &ServedResource, record: Arc<Record>) -> Object {
        let mut object = self.recent.get_or_insert(record).object().clone();
        served_resource.to_version(&mut object);
        object
    }

    /// Complete current state of a resource, including all writes acknowledged before the call. Reads a resource that is not in
    /// memory from the database: use `Objects::state` or [`Objects::find`] to read a part of it.
    pub async fn snapshot(&self, served_resource: &ServedResource) -> Result<Snapshot> {
        if let Some(snapshot) = self.store.try_snapshot(&served_resource.storage) {
            return Ok(snapshot);
        }
        self.store.snapshot(&served_resource.storage).await.map_err(|e| failure::from_store_error(e, 0))
    }

    /// Location of the current state of a resource (memory or database), including all writes acknowledged before the call.
    pub(crate) async fn state(&self, served_resource: &ServedResource) -> Result<CurrentState> {
        if let Some(snapshot) = self.store.try_snapshot(&served_resource.storage) {
            return Ok(CurrentState::Cached(snapshot));
        }
        self.store.current_state(&served_resource.storage).await.map_err(|e| failure::from_store_error(e, 0))
    }

    /// Looks up an object in the current state, readable or not.
    pub async fn find(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
    ) -> Result<ObjectLookup> {
        let namespace = if served_resource.info.namespaced { namespace } else { "" };
        let key = Key::new(&served_resource.storage, namespace, name);
        if let Some(snapshot) = self.store.try_snapshot(&served_resource.storage) {
            return Ok(ObjectLookup::in_snapshot(&snapshot, &key));
        }
        self.store.find(&key).await.map_err(|e| failure::from_store_error(e, 0))
    }
}
