//! Key set that an issuer publishes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey as Parts;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::{Algorithm, PublicKey};

#[derive(Serialize)]
struct KeySet {
    keys: Vec<Jwk>,
}

/// One key, with fields in upstream's order.
#[derive(Serialize)]
struct Jwk {
    #[serde(rename = "use")]
    usage: &'static str,
    kty: &'static str,
    kid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<&'static str>,
    alg: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
}

/// Encodes the published ones of these keys as a JSON key set.
#[must_use]
pub fn encode_key_set(keys: &[PublicKey]) -> Vec<u8> {
    let set = KeySet { keys: keys.iter().filter(|key| key.is_published()).filter_map(jwk).collect() };
    // Encoding strings cannot fail.
    serde_json::to_vec(&set).unwrap_or_default()
}

fn jwk(key: &PublicKey) -> Option<Jwk> {
    let (_, info) = SubjectPublicKeyInfo::from_der(key.der()).ok()?;
    let encoded = |bytes: &[u8]| Some(URL_SAFE_NO_PAD.encode(bytes));
    let number = |bytes: &[u8]| encoded(&bytes[bytes.iter().take_while(|b| **b == 0).count()..]);
    let curve = match key.algorithm() {
        Algorithm::Rs256 => None,
        Algorithm::Es256 => Some("P-256"),
        Algorithm::Es384 => Some("P-384"),
        Algorithm::Es512 => Some("P-521"),
    };
    let (kty, [n, e, x, y]) = match info.parsed().ok()? {
        Parts::RSA(rsa) => ("RSA", [number(rsa.modulus), number(rsa.exponent), None, None]),
        Parts::EC(point) => {
            // An uncompressed point: a prefix byte, then both coordinates.
            let coordinates = point.data().get(1..)?;
            let (x, y) = coordinates.split_at(coordinates.len() / 2);
            ("EC", [None, None, encoded(x), encoded(y)])
        }
        _ => return None,
    };
    let alg = key.algorithm().name();
    Some(Jwk { usage: "sig", kty, kid: key.id().to_owned(), crv: curve, alg, n, e, x, y })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and its published form, both from upstream.
    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEI9t+Xbq0aIqMeqwobDpora7KfWpo
gtNa6B1icgq6oEsn1HaKG2YqovXZJUT+dQ5yC6/Fwg+taypo6NiJ/rHH9w==
-----END PUBLIC KEY-----
";
    const PUBLISHED: &str = r#"{"keys":[{"use":"sig","kty":"EC","kid":"vtyPs7vkcJwU7Pt0NY0VtLRqvt_5WP6hDrQu-N4yCow","crv":"P-256","alg":"ES256","x":"I9t-Xbq0aIqMeqwobDpora7KfWpogtNa6B1icgq6oEs","y":"J9R2ihtmKqL12SVE_nUOcguvxcIPrWsqaOjYif6xx_c"}]}"#;

    #[test]
    fn the_set_and_the_ids_equal_upstreams() {
        let keys = PublicKey::all_from_pem(KEY.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(encode_key_set(&keys)).unwrap(), PUBLISHED);
    }

    #[test]
    fn rsa_numbers_begin_without_zeros() {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
        let keys = PublicKey::all_from_pem(pair.public_key_pem().as_bytes()).unwrap();
        let set = String::from_utf8(encode_key_set(&keys)).unwrap();
        assert!(set.contains(r#""e":"AQAB""#) && set.contains(r#""kty":"RSA""#), "{set}");
        assert!(!set.contains(r#""n":"AA"#), "{set}");
    }
}
