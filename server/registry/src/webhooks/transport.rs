//! TLS settings and a bound on calls, shared by all webhooks at one place behind one CA.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_kit::tls::{ClientTls, Roots};
use tokio::sync::Semaphore;

use super::address::Place;

/// More are forgotten, the one that was not used for longest first (upstream's number).
const KEPT: usize = 200;

/// What calls of the same kind share.
pub(super) struct Transport {
    /// Kept connections are found by its identity.
    pub(super) tls: ClientTls,
    /// One for each call under way.
    pub(super) calls: Semaphore,
}

/// A place and a `caBundle`.
type Key = (Place, String);

/// Those that were used last.
#[derive(Default)]
pub(super) struct Transports {
    kept: HashMap<Key, (Arc<Transport>, u64)>,
    used: u64,
}

impl Transports {
    /// The transport to a place. `calls` are allowed at a time.
    pub(super) fn get(
        &mut self,
        place: &Place,
        ca_bundle: &str,
        calls: usize,
    ) -> Result<Arc<Transport>, String> {
        self.used += 1;
        let key = (place.clone(), ca_bundle.to_owned());
        if let Some((transport, used)) = self.kept.get_mut(&key) {
            *used = self.used;
            return Ok(Arc::clone(transport));
        }
        let tls = tls(place, ca_bundle)?;
        let transport = Arc::new(Transport { tls, calls: Semaphore::new(calls) });
        if self.kept.len() >= KEPT {
            let oldest = self.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.kept.remove(&key));
        }
        self.kept.insert(key, (Arc::clone(&transport), self.used));
        Ok(transport)
    }
}

fn tls(place: &Place, ca_bundle: &str) -> Result<ClientTls, String> {
    let pem = STANDARD.decode(ca_bundle).map_err(|_| "caBundle: it is not base64".to_owned())?;
    let builder = ClientTls::builder()
        .roots(Roots::bundle("caBundle", pem.trim_ascii()))
        .server_name(place.server_name());
    builder.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use portico_kit::dial::Target;

    use super::*;

    #[test]
    fn webhooks_at_one_place_share_a_transport_and_the_oldest_one_goes() {
        let ca = portico_kit::pki::Authority::create("hooks").unwrap();
        let bundle = STANDARD.encode(ca.cert_pem());
        let mut transports = Transports::default();
        let place = |port: u16| Place::Url(Target::new("127.0.0.1", port));
        let mut get = |port: u16| transports.get(&place(port), &bundle, 1).unwrap();
        let (first, second) = (get(1), get(2));
        assert!(Arc::ptr_eq(&first, &get(1)));
        for port in 3..=u16::try_from(KEPT).unwrap() + 1 {
            get(port);
        }
        assert!(Arc::ptr_eq(&first, &get(1)), "it was used after the second");
        assert!(!Arc::ptr_eq(&second, &get(2)));
    }

    #[test]
    fn a_bundle_that_cannot_be_read_is_named() {
        let mut transports = Transports::default();
        let place = Place::Url(Target::new("127.0.0.1", 1));
        for bundle in ["%", "QUJD"] {
            let error = transports.get(&place, bundle, 1).err().unwrap();
            assert!(error.contains("caBundle"), "{error}");
        }
        // Nothing but space: the system's roots.
        assert_eq!(STANDARD.decode("IAo=").unwrap().trim_ascii(), b"");
    }
}
