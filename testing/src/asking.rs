//! Requests for faults.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Where faults are asked for.
pub(crate) const FAULTS: &str = "/portico/test-faults";

/// An answer of which nothing is needed.
#[derive(Deserialize)]
pub(crate) struct Anything {}

/// Asks for faults.
pub(crate) async fn ask<T: DeserializeOwned>(
    client: &kube::Client,
    method: &str,
    path: &str,
    body: Vec<u8>,
) -> Result<T, Error> {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(body).map_err(kube::Error::HttpError)?;
    Ok(client.request(request).await?)
}
