//! Reads stored data from a running control service (`portico.admin.v1`), and stops its writes.

use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;
use portico_proto::admin as pb;
use portico_proto::client::{Client, Connection};
use portico_server::data::{
    ArchiveCursor, ArchivePart, Changes, CopyError, CopySource, Identity, Key, StoreExtent, StoredState,
    WriteSwitch,
};
use tonic::Code;

use crate::connection_flags::at_address;
use crate::control_service::{NoClient, describe};

/// Deadline of a call, which reads one page of data.
const DEADLINE: Duration = Duration::from_secs(60);

/// Connection parameters of a running control service.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerFlags<'s> {
    pub(super) kubeconfig: &'s Path,
    pub(super) context: &'s str,
    /// Address to connect to instead of the address in the kubeconfig.
    pub(super) address: Option<&'s str>,
}

/// Source of data that is read from a running control service.
pub(super) struct RemoteStore {
    client: Client,
    location: String,
}

impl RemoteStore {
    pub(super) fn new(server: &ServerFlags<'_>) -> Result<Self, NoClient> {
        let connection = Connection::from_kubeconfig(server.kubeconfig, Some(server.context))?;
        let connection = at_address(connection, server.address);
        let location = format!("the control service {}", connection.server);
        Ok(Self { client: Client::connect(&connection.with_deadline(DEADLINE))?, location })
    }

    fn error(&self, reason: &str) -> CopyError {
        CopyError::Store { place: self.location.clone(), reason: reason.to_owned() }
    }

    fn decode_states(&self, bytes: &[u8]) -> Result<Vec<StoredState>, CopyError> {
        StoredState::decode_all(bytes).map_err(|reason| self.error(&reason))
    }

    async fn describe(&self, time: i64) -> Result<pb::DescribeLogResponse, CopyError> {
        let answer = self.client.admin().describe_log(pb::DescribeLogRequest { time }).await;
        Ok(answer.map_err(|status| self.error(&describe(&status)))?.into_inner())
    }

    async fn read_states(&self, revision: i64, after: Option<&Key>) -> Result<Vec<StoredState>, CopyError> {
        let after = after.map(|key| pb::ObjectKey {
            group: key.resource().group.clone(),
            resource: key.resource().resource.clone(),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
        });
        let answer = self.client.admin().read_states(pb::ReadStatesRequest { revision, after }).await;
        let page = answer.map_err(|status| self.error(&describe(&status)))?.into_inner();
        if page.oldest_revision > revision {
            return Err(CopyError::Compacted { revision, oldest: page.oldest_revision });
        }
        self.decode_states(&page.states)
    }

    async fn read_changes(&self, after: i64) -> Result<Changes, CopyError> {
        let answer = self.client.admin().read_changes(pb::ReadChangesRequest { after }).await;
        let part = answer.map_err(|status| self.error(&describe(&status)))?.into_inner();
        if part.oldest_revision > after {
            return Err(CopyError::Compacted { revision: after, oldest: part.oldest_revision });
        }
        Ok(Changes { states: self.decode_states(&part.states)?, until: part.until, revision: part.revision })
    }

    async fn read_archive(&self, revision: i64, after: ArchiveCursor) -> Result<ArchivePart, CopyError> {
        let ArchiveCursor { until, revision: after_revision, mark } = after;
        let request =
            pb::ReadArchiveRequest { revision, after_until: until, after_revision, after_mark: mark };
        let answer = self.client.admin().read_archive(request).await.map_err(|status| {
            let reason = describe(&status);
            match status.code() {
                Code::Unimplemented => self.error(&format!("{reason} (--without-history leaves it out)")),
                _ => self.error(&reason),
            }
        })?;
        ArchivePart::decode(&answer.into_inner().part).map_err(|reason| self.error(&reason))
    }

    async fn switch(&self, reason: Option<&str>) -> Result<i64, CopyError> {
        let (read_only, reason) = (reason.is_some(), reason.unwrap_or_default().to_owned());
        let answer = self.client.admin().set_read_only(pb::SetReadOnlyRequest { read_only, reason }).await;
        Ok(answer.map_err(|status| self.error(&describe(&status)))?.into_inner().revision)
    }
}

impl CopySource for RemoteStore {
    fn extent(&self) -> BoxFuture<'_, Result<StoreExtent, CopyError>> {
        Box::pin(async {
            let response = self.describe(0).await?;
            let identity = Identity { store_id: response.store_id, epoch: response.epoch };
            Ok(StoreExtent { identity, revision: response.revision, oldest: response.oldest_revision })
        })
    }

    fn states<'a>(
        &'a self,
        revision: i64,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Vec<StoredState>, CopyError>> {
        Box::pin(self.read_states(revision, after))
    }

    fn changes(&self, after: i64) -> BoxFuture<'_, Result<Changes, CopyError>> {
        Box::pin(self.read_changes(after))
    }

    fn archive(&self, revision: i64, after: ArchiveCursor) -> BoxFuture<'_, Result<ArchivePart, CopyError>> {
        Box::pin(self.read_archive(revision, after))
    }

    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, CopyError>> {
        Box::pin(async move { Ok(self.describe(time).await?.revision_at_time) })
    }
}

impl WriteSwitch for RemoteStore {
    fn set_read_only<'a>(&'a self, reason: Option<&'a str>) -> BoxFuture<'a, Result<i64, CopyError>> {
        Box::pin(self.switch(reason))
    }
}
