//! TLS settings by their inputs: equal inputs share one parsed bundle and one session cache.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use portico_kit::tls::{Alpn, CertPair, ClientTls, Roots, TlsError};
use portico_machinery::route::Trust;

use super::key::ClientCertificate;

/// Inputs of TLS settings.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct TlsInputs {
    pub(super) trust: Trust,
    pub(super) client_certificate: ClientCertificate,
    pub(super) http2: bool,
}

/// The settings in use. Bounded by the number of distinct bundles; unused ones are dropped.
#[derive(Default)]
pub(super) struct TrustStore {
    cache: Mutex<HashMap<TlsInputs, (u64, ClientTls)>>,
}

impl TrustStore {
    /// Returns settings without a server name, created on first use under each generation of the client certificate.
    pub(super) fn settings(
        &self,
        inputs: TlsInputs,
        ca: Option<&Bytes>,
        generation: u64,
        pair: Option<CertPair>,
    ) -> Result<ClientTls, TlsError> {
        if let Some((cached_generation, tls)) = self.cache.lock().get(&inputs)
            && *cached_generation == generation
        {
            return Ok(tls.clone());
        }
        // Parsed outside the lock: two concurrent callers both parse, and the later result is kept.
        let roots = match &inputs.trust {
            Trust::System => Roots::System,
            Trust::Insecure => Roots::Insecure,
            Trust::Bundle(_) => Roots::Pem {
                label: "caBundle".to_owned(),
                pem: Arc::from(ca.map_or(&[][..], |pem| pem.as_ref())),
            },
        };
        let alpn = if inputs.http2 { Alpn::Both } else { Alpn::Http1 };
        let tls = ClientTls::builder().roots(roots).alpn(alpn).client_cert(pair).build()?;
        self.cache.lock().insert(inputs, (generation, tls.clone()));
        Ok(tls)
    }

    /// Drops settings that no transport uses.
    pub(super) fn sweep(&self) {
        // Two references: the cached one, and the one that `config()` returns here.
        self.cache.lock().retain(|_, (_, tls)| Arc::strong_count(&tls.config()) > 2);
    }
}
