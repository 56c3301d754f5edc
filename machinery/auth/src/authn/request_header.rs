//! Front proxies: a peer whose certificate leads to the front-proxy CA may name the caller in headers.

use std::collections::BTreeMap;

use portico_machinery::UserInfo;
use rustls_pki_types::UnixTime;

use super::chain::{PeerChain, TrustedAuthority};
use super::error::AuthnError;
use crate::headers::{self, ExtraFields, HeaderValues, NotUtf8};

/// Trusted front proxies and the headers to read (`--requestheader-*`).
#[derive(Clone, Debug)]
pub struct RequestHeaderConfig {
    /// Authority of `--requestheader-client-ca-file`.
    pub authority: TrustedAuthority,
    /// Allowed common names of front proxies; empty allows all certificates of the authority.
    pub allowed_names: Vec<String>,
    /// Headers that may contain the user name; the first one that is not empty is used.
    pub username_headers: Vec<String>,
    /// Headers that may contain the uid; by default empty, so that no uid is accepted.
    pub uid_headers: Vec<String>,
    /// Headers that contain groups.
    pub group_headers: Vec<String>,
    /// Prefixes of headers that contain extra fields.
    pub extra_prefixes: Vec<String>,
}

impl RequestHeaderConfig {
    /// Returns a configuration that trusts every certificate of this authority, with upstream's usual headers except the uid.
    #[must_use]
    pub fn new(authority: TrustedAuthority) -> Self {
        let list = |name: &str| vec![name.to_owned()];
        Self {
            authority,
            allowed_names: Vec::new(),
            username_headers: list("X-Remote-User"),
            uid_headers: Vec::new(),
            group_headers: list("X-Remote-Group"),
            extra_prefixes: list("X-Remote-Extra-"),
        }
    }

    /// True if this is one of the configured headers.
    pub(super) fn uses_header(&self, name: &str) -> bool {
        let mut named = self.username_headers.iter().chain(&self.uid_headers).chain(&self.group_headers);
        named.any(|h| h.eq_ignore_ascii_case(name))
            || self.extra_prefixes.iter().any(|p| headers::after_prefix(name, p).is_some())
    }

    /// Returns the user that the proxy names, or `None` if it names none.
    ///
    /// # Errors
    /// [`AuthnError::Header`] if the peer is a front proxy whose headers are not UTF-8; other errors if it is not a front proxy.
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
        Ok(self.user(fields)?)
    }

    fn user(&self, fields: &dyn HeaderValues) -> Result<Option<UserInfo>, NotUtf8> {
        let name = first_value(&self.username_headers, fields)?;
        if name.is_empty() {
            return Ok(None);
        }
        let mut groups = Vec::new();
        for header in &self.group_headers {
            groups.extend(fields.values(header)?.into_iter().filter(|group| !group.is_empty()));
        }
        let uid = first_value(&self.uid_headers, fields)?;
        Ok(Some(UserInfo { name, uid, groups, extra: self.extra(fields)? }))
    }

    fn extra(&self, fields: &dyn HeaderValues) -> Result<BTreeMap<String, Vec<String>>, NotUtf8> {
        let mut extra = ExtraFields::default();
        for prefix in &self.extra_prefixes {
            fields.visit(&mut |name, value| {
                if let Some(key) = headers::after_prefix(name, prefix) {
                    extra.insert(name, key, value);
                }
            });
        }
        extra.finish()
    }
}

/// Returns the first value of the first of these headers whose first value is not empty, or an empty string.
fn first_value(names: &[String], fields: &dyn HeaderValues) -> Result<String, NotUtf8> {
    for name in names {
        let value = fields.values(name)?.into_iter().next().unwrap_or_default();
        if !value.is_empty() {
            return Ok(value);
        }
    }
    Ok(String::new())
}

/// True for upstream's standard identity headers, which are removed independent of the configuration.
pub(super) fn is_standard(name: &str) -> bool {
    ["X-Remote-User", "X-Remote-Uid", "X-Remote-Group"].iter().any(|h| h.eq_ignore_ascii_case(name))
        || headers::after_prefix(name, "X-Remote-Extra-").is_some()
}
