//! Client of an external signer. Every call has a deadline; until then, a signer that cannot be reached is dialed again.

use std::future::Future;
use std::time::Duration;

use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_proto::externaljwt as pb;
use portico_proto::externaljwt::external_jwt_signer_client::ExternalJwtSignerClient;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use super::error::SignerError;
use super::metrics::SignerMetrics;
use crate::unix_socket;

/// Time for the external signer to return its keys.
///
/// `keySyncTimeout` of kube-apiserver.
///
/// Limit (Authentication and authorization): the fetch is retried.
const FETCH_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout for fetching the metadata of the signer.
const METADATA_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the external signer to sign a token.
///
/// Limit (Authentication and authorization): the token request fails.
const SIGN_TIMEOUT: Duration = Duration::from_secs(10);
/// Backoff for redialing a socket on which no process listens.
const REDIAL: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(50), Duration::from_secs(1), 2.0, 0.2);

/// Client of an external signer.
pub(super) struct SignerClient {
    path: String,
    client: ExternalJwtSignerClient<Channel>,
    metrics: SignerMetrics,
    fetch_timeout: Duration,
}

impl SignerClient {
    /// Creates a client of the signer at a socket path; `@name` is an abstract socket, not a file. Connects at the first call.
    pub(super) fn new(path: &str, metrics: SignerMetrics) -> Self {
        let client = ExternalJwtSignerClient::new(unix_socket::channel(unix_socket::socket_name(path)));
        Self { path: path.to_owned(), client, metrics, fetch_timeout: FETCH_TIMEOUT }
    }

    /// Signs claims (base64url). Returns the header and the signature of the token.
    pub(super) async fn sign(&self, claims: &str) -> Result<(String, String), SignerError> {
        let ask = |mut client: ExternalJwtSignerClient<Channel>| async move {
            client.sign(pb::SignJwtRequest { claims: claims.to_owned() }).await
        };
        let answer = self.call("Sign", SIGN_TIMEOUT, ask).await?;
        Ok((answer.header, answer.signature))
    }

    /// Fetches the public keys of the signer.
    pub(super) async fn fetch_keys(&self) -> Result<pb::FetchKeysResponse, SignerError> {
        let ask = |mut client: ExternalJwtSignerClient<Channel>| async move {
            client.fetch_keys(pb::FetchKeysRequest {}).await
        };
        self.call("FetchKeys", self.fetch_timeout, ask).await
    }

    /// Returns the maximum lifetime of tokens that the signer supports, in seconds.
    pub(super) async fn max_token_lifetime(&self) -> Result<i64, SignerError> {
        let ask = |mut client: ExternalJwtSignerClient<Channel>| async move {
            client.metadata(pb::MetadataRequest {}).await
        };
        Ok(self.call("Metadata", METADATA_TIMEOUT, ask).await?.max_token_expiration_seconds)
    }

    async fn call<T, F>(
        &self,
        method: &str,
        timeout: Duration,
        ask: impl Fn(ExternalJwtSignerClient<Channel>) -> F,
    ) -> Result<T, SignerError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let started = Instant::now();
        let answer = self.call_until(started + timeout, ask).await;
        self.metrics.observe_call(method, answer.as_ref().err(), started.elapsed());
        answer
    }

    /// Repeats a call until the signer responds (`WaitForReady`).
    async fn call_until<T, F>(
        &self,
        deadline: Instant,
        ask: impl Fn(ExternalJwtSignerClient<Channel>) -> F,
    ) -> Result<T, SignerError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut redial = Backoff::new(REDIAL);
        let mut unreached = None;
        loop {
            match tokio::time::timeout_at(deadline, ask(self.client.clone())).await {
                Ok(Ok(response)) => return Ok(response.into_inner()),
                Ok(Err(status)) => match unix_socket::connection_error(&status, &self.path) {
                    Some(message) => unreached = Some(message),
                    None => return Err(SignerError::from_status(&status)),
                },
                Err(_) => return Err(timeout_error(unreached)),
            }
            let next = Instant::now() + redial.next_wait();
            if next >= deadline {
                return Err(timeout_error(unreached));
            }
            tokio::time::sleep_until(next).await;
        }
    }
}

fn timeout_error(unreached: Option<String>) -> SignerError {
    let message = unreached.map_or_else(
        || "context deadline exceeded".to_owned(),
        |error| format!("latest balancer error: connection error: desc = {error:?}"),
    );
    SignerError::rpc(Code::DeadlineExceeded, &message)
}

#[cfg(test)]
mod tests {
    use portico_kit::metrics::Registry;

    use super::*;

    #[tokio::test]
    async fn an_unreachable_signer_is_named_after_the_timeout() {
        let metrics = SignerMetrics::new(&Registry::new());
        let timeout = Duration::from_millis(200);
        let client = SignerClient { fetch_timeout: timeout, ..SignerClient::new("/no/signer.sock", metrics) };
        let error = client.fetch_keys().await.unwrap_err();
        assert_eq!(error.code, Some("DeadlineExceeded"));
        assert_eq!(
            error.to_string(),
            r#"rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = "transport: Error while dialing: dial unix /no/signer.sock: connect: no such file or directory""#
        );
    }
}
