//! Creates an APIService, lists, watches and explains it: `cargo run --example api_services -- admin.kubeconfig`.
//!
//! A test runs [`run`] against a server.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt;
use portico_proto::apiregistration::{
    ApiService, ApiServiceSpec, CreateRequest, EventType, ExplainRequest, ListRequest, ObjectMeta,
    WatchRequest,
};
use portico_proto::client::{Client, Connection, Retry, watch_api_services};

/// Results of the calls.
pub struct Outcome {
    /// Names of all APIServices, including the new one.
    pub names: Vec<String>,
    /// First event of a watch of the new APIService.
    pub first_event: EventType,
    /// Reachability of the new APIService, as a sentence.
    pub summary: String,
}

/// Creates the APIService `v1.example.example.com`, then lists, watches and explains it.
///
/// # Errors
/// The kubeconfig cannot be used, or a call fails.
pub async fn run(kubeconfig: &Path) -> Result<Outcome, Box<dyn std::error::Error>> {
    let connection = Connection::from_kubeconfig(kubeconfig, Some("control"))?;
    let client = Client::connect(&connection.with_deadline(Duration::from_secs(5)))?;

    let spec = ApiServiceSpec {
        group: "example.example.com".into(),
        version: "v1".into(),
        group_priority_minimum: 1000,
        version_priority: 10,
        ..Default::default()
    };
    let name = format!("{}.{}", spec.version, spec.group);
    let metadata = ObjectMeta { name: name.clone(), ..Default::default() };
    let api_service = ApiService { metadata: Some(metadata), spec: Some(spec), status: None };
    // Not retried: if the response is lost, the object may have been created.
    client.api_services().create(CreateRequest { api_service: Some(api_service), dry_run: false }).await?;

    // A list is a stream of parts. Lists can be retried.
    let names = Retry::default()
        .run(|| async {
            let parts = client.api_services().list(ListRequest::default()).await?.into_inner();
            let part_names = parts.map_ok(|part| part.items.into_iter().filter_map(|item| item.metadata));
            part_names
                .try_fold(Vec::new(), |mut names, part| async move {
                    names.extend(part.map(|metadata| metadata.name));
                    Ok(names)
                })
                .await
        })
        .await?;

    // Resumes after lost connections, and starts again if the revision has expired.
    let request = WatchRequest { field_selector: format!("metadata.name={name}"), ..Default::default() };
    let mut events = pin!(watch_api_services(client.clone(), request));
    let first = events.try_next().await?.ok_or("the watch ended")?;

    let explained = client.api_services().explain(ExplainRequest { name }).await?.into_inner();
    Ok(Outcome { names, first_event: first.r#type(), summary: explained.summary })
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kubeconfig = std::env::args().nth(1).ok_or("usage: api_services KUBECONFIG")?;
    let outcome = run(Path::new(&kubeconfig)).await?;
    println!("{:?} {:?}: {}", outcome.names, outcome.first_event, outcome.summary);
    Ok(())
}
