//! Validation of the address, CA and audiences of an issuer (upstream's `validateIssuer`).

use portico_gostd::url::Url;
use portico_kit::pki::parse_certs;
use portico_kit::tls::Roots;
use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::super::address::IssuerAddress;
use super::reader::Reader;

/// Upstream's message about a bundle without certificates.
const NO_CERTIFICATE: &str = "data does not contain any valid RSA or ECDSA certificates";

impl Reader<'_> {
    /// Reads the address and the audiences of an issuer.
    pub(super) fn address(&mut self, at: &Cursor<'_>) -> Option<(IssuerAddress, Vec<String>)> {
        let before = self.errors.len();
        let (url, discovery) = (at.field("url"), at.field("discoveryURL"));
        if url.str().is_empty() {
            self.errors.push(url.required(""));
        } else {
            let own_issuers = self.own;
            self.url(&url, own_issuers);
        }
        if !discovery.str().is_empty() {
            let trimmed = |at: &Cursor<'_>| at.str().trim_end_matches('/').to_owned();
            if !url.str().is_empty() && trimmed(&url) == trimmed(&discovery) {
                self.invalid(&discovery, "discoveryURL must be different from URL");
            }
            self.url(&discovery, &[]);
        }
        let audiences = self.audiences(&at.field("audiences"), &at.field("audienceMatchPolicy"));
        let roots = self.roots(&at.field("certificateAuthority"));
        let egress = match at.field("egressSelectorType").str() {
            "" => None,
            "controlplane" => Some("controlplane"),
            "cluster" => Some("cluster"),
            _ => {
                let message = "egress selector must be either controlplane or cluster";
                self.invalid(&at.field("egressSelectorType"), message);
                None
            }
        };
        if self.errors.len() > before {
            return None;
        }
        let discovery_url = Some(discovery.str().to_owned()).filter(|url| !url.is_empty());
        Some((IssuerAddress { url: url.str().to_owned(), discovery_url, roots, egress }, audiences))
    }

    pub(super) fn invalid(&mut self, at: &Cursor<'_>, message: &str) {
        self.errors.push(Error::invalid(&at.path(), at.str(), message));
    }

    /// Checks the URL of an issuer (upstream's `validateURL`).
    fn url(&mut self, at: &Cursor<'_>, disallowed: &[String]) {
        if disallowed.iter().any(|other| other == at.str()) {
            let mut sorted = disallowed.to_vec();
            sorted.sort_unstable();
            let message = format!("URL must not overlap with disallowed issuers: [{}]", sorted.join(" "));
            self.invalid(at, &message);
        }
        let url = match Url::read(at.str()) {
            Ok(url) => url,
            Err(error) => return self.invalid(at, &error),
        };
        for (is_wrong, message) in [
            (url.scheme != "https", "URL scheme must be https"),
            (url.user().is_some(), "URL must not contain a username or password"),
            (!url.query().is_empty(), "URL must not contain a query"),
            (!url.fragment().is_empty(), "URL must not contain a fragment"),
        ] {
            if is_wrong {
                self.invalid(at, message);
            }
        }
    }

    fn audiences(&mut self, list: &Cursor<'_>, policy: &Cursor<'_>) -> Vec<String> {
        let path = list.path();
        if list.is_empty() {
            self.errors.push(list.required(&format!("at least one {} is required", path.as_str())));
            return Vec::new();
        }
        let mut seen: Vec<String> = Vec::new();
        for item in list.items() {
            let audience = item.str().to_owned();
            if audience.is_empty() {
                self.errors.push(item.required(""));
            }
            if seen.contains(&audience) {
                self.errors.push(Error::duplicate(&item.path(), &audience));
            }
            seen.push(audience);
        }
        match policy.str() {
            "MatchAny" => {}
            _ if seen.len() > 1 => {
                self.invalid(policy, "audienceMatchPolicy must be MatchAny for multiple audiences");
            }
            "" => {}
            _ => self.invalid(policy, "audienceMatchPolicy must be empty or MatchAny for single audience"),
        }
        seen
    }

    fn roots(&mut self, at: &Cursor<'_>) -> Roots {
        let pem = at.str();
        if !pem.is_empty() && parse_certs("certificateAuthority", pem.as_bytes()).is_err() {
            self.errors.push(Error::invalid(&at.path(), "<omitted>", NO_CERTIFICATE));
        }
        Roots::bundle("certificateAuthority", pem.as_bytes())
    }
}
