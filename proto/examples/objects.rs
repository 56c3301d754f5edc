//! Applies, reads, lists, watches and deletes a ConfigMap: `cargo run --example objects -- admin.kubeconfig`.

use std::path::Path;
use std::pin::pin;

use futures::TryStreamExt;
use portico_proto::client::{ApplyOptions, Client, Connection, ListOptions, WatchEvent};
use serde::Deserialize;

/// The part of a ConfigMap that this program reads.
#[derive(Deserialize)]
struct ConfigMap {
    metadata: Metadata,
    #[serde(default)]
    data: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

const MANIFEST: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: example, labels: {app: example}}
data: {greeting: hello}
";

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kubeconfig = std::env::args().nth(1).ok_or("usage: objects KUBECONFIG")?;
    let client = Client::connect(&Connection::from_kubeconfig(Path::new(&kubeconfig), Some("control"))?)?;
    let resource = client.resources("cm").await?.into_iter().next().ok_or("ConfigMaps are not served")?;
    let config_maps = client.resource(resource, "default");

    let options = ApplyOptions { field_manager: "example".into(), ..Default::default() };
    config_maps.apply("example", MANIFEST.into(), &options).await?;
    let example: ConfigMap = config_maps.get("example").await?;
    println!("{}: {:?}", example.metadata.name, example.data);

    let options = ListOptions { label_selector: "app=example".into(), ..Default::default() };
    let list = config_maps.list::<ConfigMap>(&options).await?;
    println!("{} objects at revision {}", list.items.len(), list.resource_version);

    let options = ListOptions { resource_version: list.resource_version, ..options };
    let mut events = pin!(config_maps.watch(&options));
    config_maps.delete("example").await?;
    while let Some(event) = events.try_next().await? {
        let WatchEvent::Line(json) = event else { continue };
        print!("{}", String::from_utf8(json)?);
        break;
    }
    Ok(())
}
