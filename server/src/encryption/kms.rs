//! Client of KMS v2: calls a key service over its Unix socket.

use std::future::Future;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use portico_gostd::url::Url;
use portico_kit::dial::find_cause;
use portico_kit::metrics::{Desc, HistogramVec, Registry};
use portico_proto::kms as pb;
use portico_proto::kms::key_management_service_client::KeyManagementServiceClient;
use portico_store::{KeyService, KeyServiceError, KeyStatus, WrappedKey};
use tonic::transport::Channel;
use tonic::{Code, ConnectError, Response, Status};
use zeroize::Zeroizing;

use crate::unix_socket::{self, code_name};

/// Upper bounds of the histogram in seconds, from a tenth of a millisecond, each twice the previous one.
const SECONDS: &[f64] = &[
    0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048, 0.4096,
    0.8192, 1.6384, 3.2768, 6.5536, 13.1072, 26.2144, 52.4288,
];

/// Client of a key service.
pub(super) struct KmsClient {
    name: String,
    timeout: Duration,
    /// Path of the socket, or a zero byte and the name of an abstract socket.
    socket: String,
    /// Created at first use, because settings are checked without a runtime.
    client: OnceLock<KeyManagementServiceClient<Channel>>,
    seconds: HistogramVec<[(&'static str, String); 3]>,
}

impl KmsClient {
    /// Creates a client of the service at `unix:///path` (`unix:///@name` for an abstract socket). Connects at the first call.
    pub(super) fn new(
        name: &str,
        endpoint: &str,
        timeout: Duration,
        registry: &Registry,
    ) -> Result<Self, String> {
        let path = Url::parse(endpoint)?.escaped_path();
        let socket = match path.strip_prefix('/') {
            Some(name) if name.starts_with('@') => unix_socket::socket_name(name),
            _ => path,
        };
        let seconds = registry.histogram_vec(
            Desc::histogram(
                "apiserver_envelope_encryption_kms_operations_latency_seconds",
                &["grpc_status_code", "method_name", "provider_name"],
                "[ALPHA] KMS operation duration with gRPC error code status total.",
            ),
            SECONDS,
        );
        Ok(Self { name: name.to_owned(), timeout, socket, client: OnceLock::new(), seconds })
    }

    fn client(&self) -> KeyManagementServiceClient<Channel> {
        let client = self
            .client
            .get_or_init(|| KeyManagementServiceClient::new(unix_socket::channel(self.socket.clone())));
        client.clone()
    }

    async fn call<T>(
        &self,
        method: &str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, KeyServiceError> {
        let started = Instant::now();
        let answer = match tokio::time::timeout(self.timeout, call).await {
            Ok(answer) => answer,
            Err(_) => Err(Status::deadline_exceeded("context deadline exceeded")),
        };
        let code = code_name(answer.as_ref().err().map_or(Code::Ok, Status::code));
        let labels = [
            ("provider_name", self.name.clone()),
            ("method_name", format!("/v2.KeyManagementService/{method}")),
            ("grpc_status_code", code.to_owned()),
        ];
        self.seconds.get_or_create(&labels).observe(started.elapsed().as_secs_f64());
        answer.map(Response::into_inner).map_err(|status| KeyServiceError {
            text: format!("rpc error: code = {code} desc = {}", self.description(&status)),
            code,
            is_unreachable: !is_refusal(status.code()),
        })
    }

    /// Returns the message of the service, or the reason why there is no connection to it, as Go prints it.
    fn description(&self, status: &Status) -> String {
        if find_cause::<ConnectError>(status).is_none() {
            return status.message().to_owned();
        }
        // Go prints the zero byte of an abstract socket as `@`.
        let unreached = unix_socket::connection_error(status, &self.socket.replace('\0', "@"));
        format!("connection error: desc = {:?}", unreached.unwrap_or_default())
    }
}

impl KeyService for KmsClient {
    fn status(&self) -> BoxFuture<'_, Result<KeyStatus, KeyServiceError>> {
        Box::pin(async {
            let mut client = self.client();
            let answer = self.call("Status", client.status(pb::StatusRequest {})).await?;
            let pb::StatusResponse { version, healthz, key_id } = answer;
            Ok(KeyStatus { version, healthz, key_id })
        })
    }

    fn encrypt<'a>(
        &'a self,
        uid: &'a str,
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<WrappedKey, KeyServiceError>> {
        Box::pin(async move {
            let mut client = self.client();
            let request = pb::EncryptRequest { plaintext: plaintext.to_vec(), uid: uid.to_owned() };
            let answer = self.call("Encrypt", client.encrypt(request)).await?;
            let pb::EncryptResponse { ciphertext, key_id, annotations } = answer;
            Ok(WrappedKey { ciphertext, key_id, annotations })
        })
    }

    fn decrypt<'a>(
        &'a self,
        uid: &'a str,
        wrapped: WrappedKey,
    ) -> BoxFuture<'a, Result<Zeroizing<Vec<u8>>, KeyServiceError>> {
        Box::pin(async move {
            let mut client = self.client();
            let WrappedKey { ciphertext, key_id, annotations } = wrapped;
            let request = pb::DecryptRequest { ciphertext, uid: uid.to_owned(), key_id, annotations };
            let answer = self.call("Decrypt", client.decrypt(request)).await?;
            Ok(Zeroizing::new(answer.plaintext))
        })
    }
}

/// True if the service reports that it will never unwrap this key; other errors may be temporary.
fn is_refusal(code: Code) -> bool {
    use Code::{DataLoss, FailedPrecondition, InvalidArgument, NotFound, OutOfRange};
    matches!(code, DataLoss | FailedPrecondition | InvalidArgument | NotFound | OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unreachable_service_is_named() {
        let (timeout, registry) = (Duration::from_secs(5), Registry::new());
        let client = KmsClient::new("k", "unix:///no/kms.sock", timeout, &registry).unwrap();
        let error = client.status().await.err().unwrap();
        assert_eq!(
            error.text,
            r#"rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /no/kms.sock: connect: no such file or directory""#
        );
    }
}
