//! The client library: connections from a kubeconfig, deadlines, retries of idempotent calls, and watches that resume.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use futures::TryStreamExt;
//! use portico_proto::apiregistration::{ApiService, ApiServiceSpec, CreateRequest, ListRequest, ObjectMeta};
//! use portico_proto::client::{Client, Connection, Retry, watch_api_services};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = Connection::from_kubeconfig("portico-data/admin.kubeconfig".as_ref(), Some("control"))?;
//! let client = Client::connect(&connection.with_deadline(Duration::from_secs(5)))?;
//!
//! // List, with up to five attempts and a backoff.
//! let items = Retry::default()
//!     .run(|| async {
//!         let parts = client.api_services().list(ListRequest::default()).await?.into_inner();
//!         parts.try_fold(Vec::new(), |mut all, part| async move { all.extend(part.items); Ok(all) }).await
//!     })
//!     .await?;
//! println!("{} APIServices", items.len());
//!
//! // Create. Not retried: if the response is lost, the object may have been created.
//! let api_service = ApiService {
//!     metadata: Some(ObjectMeta { name: "v1.demo.example.com".into(), ..Default::default() }),
//!     spec: Some(ApiServiceSpec {
//!         group: "demo.example.com".into(),
//!         version: "v1".into(),
//!         group_priority_minimum: 1000,
//!         version_priority: 10,
//!         ..Default::default()
//!     }),
//!     status: None,
//! };
//! client.api_services().create(CreateRequest { api_service: Some(api_service), dry_run: false }).await?;
//!
//! // Watch. Resumes after lost connections, and starts again with the current objects if the revision has expired.
//! let mut events = std::pin::pin!(watch_api_services(client.clone(), Default::default()));
//! while let Some(event) = events.try_next().await? {
//!     println!("{:?} {}", event.r#type(), event.object.and_then(|o| o.metadata).unwrap_or_default().name);
//! }
//! # Ok(())
//! # }
//! ```

mod connection;
mod control_channel;
mod kubeconfig;
mod kubeconfig_cluster;
mod kubeconfig_users;
mod partial_revision;
mod query;
mod resource;
mod resource_watch;
mod retry;
mod watch;

pub use connection::{Client, ConnectError, Connection, Credentials, Intercept};
pub use control_channel::ControlChannel;
pub use kubeconfig::{Kubeconfig, KubeconfigError};
pub use kubeconfig_cluster::KubeconfigCluster;
pub use kubeconfig_users::{KubeconfigUser, KubeconfigUsers, Source};
pub use partial_revision::PartialRevision;
pub use resource::{ApplyOptions, List, ListOptions, ResourceClient};
pub use resource_watch::WatchEvent;
pub use retry::Retry;
pub use watch::{Event, watch_api_services, watch_api_services_on_retry};
