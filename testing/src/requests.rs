//! Requests to the server's interface for faults.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Path at which faults are set, listed and removed.
pub(crate) const FAULTS: &str = "/portico/test-faults";

/// Response whose content is ignored.
#[derive(Deserialize)]
pub(crate) struct IgnoredResponse {}

/// Sends a request and decodes the response.
pub(crate) async fn send<T: DeserializeOwned>(
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
