//! Tests code that retries after conflicts: `cargo run --example conflicts`, with `portico` on the `PATH` or its path in
//! `PORTICO_BIN`.

use std::error::Error;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use portico_testing::{Fault, TestServer};
use serde_json::json;

/// Code under test: sets the color in a ConfigMap, and starts again after a conflict.
async fn set_color(api: &Api<ConfigMap>, name: &str, color: &str) -> Result<(), kube::Error> {
    loop {
        let mut map = api.get(name).await?;
        map.data.get_or_insert_default().insert("color".to_owned(), color.to_owned());
        match api.replace(name, &PostParams::default(), &map).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            result => return result.map(|_| ()),
        }
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = TestServer::start().await?;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let map = serde_json::from_value(json!({"metadata": {"name": "settings"}}))?;
    api.create(&PostParams::default(), &map).await?;

    // The first two updates conflict.
    let conflict = Fault::conflict().resource("", "configmaps").verbs(["update"]).times(2);
    let conflicts = server.fault(conflict).await?;
    set_color(&api, "settings", "green").await?;

    let color = api.get("settings").await?.data.and_then(|mut data| data.remove("color"));
    println!("after {} conflicts the color is {color:?}", conflicts.hits().await?);
    Ok(())
}
