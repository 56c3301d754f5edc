//! Front proxies: a peer whose certificate leads to a CA of its own may say, in headers, who is calling.

use std::collections::BTreeMap;

use portico_machinery::UserInfo;
use rustls_pki_types::UnixTime;

use super::chain::{Authority, PeerChain};
use super::error::AuthnError;
use crate::headers::{self, HeaderValues};

/// Whom to trust and which headers to read (`--requestheader-*`).
#[derive(Clone, Debug)]
pub struct RequestHeader {
    /// `--requestheader-client-ca-file`
    pub authority: Authority,
    /// Common names that may vouch; empty: any that the authority signed.
    pub allowed_names: Vec<String>,
    /// Headers to look for the user in; the first that is not empty counts.
    pub username_headers: Vec<String>,
    /// Headers to look for the uid in; empty (the default): no uid is trusted.
    pub uid_headers: Vec<String>,
    /// Headers to collect groups from.
    pub group_headers: Vec<String>,
    /// Prefixes of headers to collect extra fields from.
    pub extra_prefixes: Vec<String>,
}

impl RequestHeader {
    /// Trusts every certificate of this authority on upstream's usual headers, without uid.
    #[must_use]
    pub fn new(authority: Authority) -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            authority,
            allowed_names: Vec::new(),
            username_headers: one("X-Remote-User"),
            uid_headers: Vec::new(),
            group_headers: one("X-Remote-Group"),
            extra_prefixes: one("X-Remote-Extra-"),
        }
    }

    /// Whether this header is one of the configured ones.
    pub(super) fn reads(&self, name: &str) -> bool {
        let mut named = self.username_headers.iter().chain(&self.uid_headers).chain(&self.group_headers);
        named.any(|h| h.eq_ignore_ascii_case(name))
            || self.extra_prefixes.iter().any(|p| headers::after_prefix(name, p).is_some())
    }

    /// The user that the proxy vouches for; nothing when it names none.
    pub(super) fn authenticate(
        &self,
        peer: &PeerChain,
        fields: &dyn HeaderValues,
        now: UnixTime,
    ) -> Result<Option<UserInfo>, AuthnError> {
        self.authority.verify(peer, now)?;
        let name = &peer.subject()?.common_name;
        if !self.allowed_names.is_empty() && !self.allowed_names.contains(name) {
            return Err(AuthnError::NameNotAllowed(name.clone()));
        }
        Ok(self.user(fields))
    }

    fn user(&self, fields: &dyn HeaderValues) -> Option<UserInfo> {
        let first = |names: &[String]| {
            names.iter().find_map(|n| fields.values(n).into_iter().next().filter(|v| !v.is_empty()))
        };
        let name = first(&self.username_headers)?;
        let groups = self.group_headers.iter().flat_map(|n| fields.values(n)).collect();
        let uid = first(&self.uid_headers).unwrap_or_default();
        Some(UserInfo { name, uid, groups, extra: self.extra(fields) })
    }

    fn extra(&self, fields: &dyn HeaderValues) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            fields.visit(&mut |name, value| {
                if let Some(key) = headers::after_prefix(name, prefix) {
                    extra.entry(headers::extra_key(key)).or_default().push(value.to_owned());
                }
            });
        }
        extra
    }
}

/// Whether this is one of upstream's own identity headers, which are never let through whatever the configuration.
pub(super) fn is_standard(name: &str) -> bool {
    ["X-Remote-User", "X-Remote-Uid", "X-Remote-Group"].iter().any(|h| h.eq_ignore_ascii_case(name))
        || headers::after_prefix(name, "X-Remote-Extra-").is_some()
}
