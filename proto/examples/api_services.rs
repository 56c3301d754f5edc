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

/// What the calls returned.
pub struct Outcome {
    /// The names of all APIServices, the new one among them.
    pub names: Vec<String>,
    /// The first event of a watch of the new one.
    pub first_event: EventType,
    /// Whether it can be reached, in a sentence.
    pub summary: String,
}

/// Makes the APIService `v1.example.example.com` and looks at it in three ways.
///
/// # Errors
/// Of the kubeconfig, the connection, or the first call that fails.
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
    // Not retried: nobody knows whether a lost answer was a success.
    client.api_services().create(CreateRequest { api_service: Some(api_service), dry_run: false }).await?;

    // A list arrives in parts; it may be asked for again after a lost connection.
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

    // Resumes after lost connections; begins anew when history no longer reaches back.
    let request = WatchRequest { field_selector: format!("metadata.name={name}"), ..Default::default() };
    let mut events = pin!(watch_api_services(client.clone(), request));
    let first = events.try_next().await?.ok_or("the watch ended")?;

    let explained = client.api_services().explain(ExplainRequest { name }).await?.into_inner();
    Ok(Outcome { names, first_event: first.r#type(), summary: explained.summary })
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "what the program is for")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kubeconfig = std::env::args().nth(1).ok_or("usage: api_services KUBECONFIG")?;
    let outcome = run(Path::new(&kubeconfig)).await?;
    println!("{:?} {:?}: {}", outcome.names, outcome.first_event, outcome.summary);
    Ok(())
}
