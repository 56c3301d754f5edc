//! Forwarded identity: caller of a facade as gRPC metadata.
//!
//! Only encodes and decodes. The listener decides if a peer may forward an identity; otherwise it strips both keys.

use std::sync::Arc;

use portico_machinery::{RequestInfo, UserInfo};
use prost::Message;
use tonic::metadata::{MetadataMap, MetadataValue};

use crate::identity_v1::{Attributes, User, Values};

/// Metadata key of the user.
pub const USER_KEY: &str = "portico-user-bin";
/// Metadata key of the authorized attributes.
pub const ATTRIBUTES_KEY: &str = "portico-attributes-bin";

/// Caller that a facade authenticated and authorized.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardedCaller {
    /// The caller, after impersonation.
    pub user: Arc<UserInfo>,
    /// Request attributes that the facade authorized.
    pub request: Arc<RequestInfo>,
    /// Audit ID of the request.
    pub audit_id: String,
    /// True if the facade calls for itself, not for a client.
    pub own_account: bool,
}

/// Error of metadata that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InvalidIdentity {
    /// The value is not base64.
    #[error("{0}: not base64")]
    Base64(&'static str),
    /// The value is not the expected protobuf message.
    #[error("{0}: {1}")]
    Message(&'static str, prost::DecodeError),
}

impl ForwardedCaller {
    /// Adds both keys to the metadata of a call.
    pub fn insert_into(&self, metadata: &mut MetadataMap) {
        metadata.insert_bin(USER_KEY, MetadataValue::from_bytes(&user(&self.user).encode_to_vec()));
        metadata.insert_bin(ATTRIBUTES_KEY, MetadataValue::from_bytes(&attributes(self).encode_to_vec()));
    }

    /// Reads the metadata of a call; `None` if no user is forwarded.
    ///
    /// # Errors
    /// [`InvalidIdentity`] if a key is present and cannot be read.
    pub fn read(metadata: &MetadataMap) -> Result<Option<Self>, InvalidIdentity> {
        let Some(user) = message::<User>(metadata, USER_KEY)? else { return Ok(None) };
        let attributes = message::<Attributes>(metadata, ATTRIBUTES_KEY)?.unwrap_or_default();
        let own_account = attributes.own_account;
        let (request, audit_id) = request_of(attributes);
        Ok(Some(Self { user: Arc::new(user_of(user)), request: request.into(), audit_id, own_account }))
    }

    /// Removes both keys. Listeners call this for peers without a facade certificate.
    pub fn strip(metadata: &mut MetadataMap) {
        metadata.remove_bin(USER_KEY);
        metadata.remove_bin(ATTRIBUTES_KEY);
    }
}

fn message<M: Message + Default>(
    metadata: &MetadataMap,
    key: &'static str,
) -> Result<Option<M>, InvalidIdentity> {
    let Some(value) = metadata.get_bin(key) else { return Ok(None) };
    let bytes = value.to_bytes().map_err(|_| InvalidIdentity::Base64(key))?;
    M::decode(bytes).map(Some).map_err(|e| InvalidIdentity::Message(key, e))
}

fn user(user: &UserInfo) -> User {
    let extra = user.extra.iter().map(|(k, v)| (k.clone(), Values { values: v.clone() })).collect();
    User { name: user.name.clone(), uid: user.uid.clone(), groups: user.groups.clone(), extra }
}

fn user_of(user: User) -> UserInfo {
    let extra = user.extra.into_iter().map(|(k, v)| (k, v.values)).collect();
    UserInfo { name: user.name, uid: user.uid, groups: user.groups, extra }
}

fn attributes(forwarded: &ForwardedCaller) -> Attributes {
    let request = &forwarded.request;
    Attributes {
        verb: request.verb.clone(),
        group: request.api_group.clone(),
        version: request.api_version.clone(),
        resource: request.resource.clone(),
        subresource: request.subresource.clone(),
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        audit_id: forwarded.audit_id.clone(),
        own_account: forwarded.own_account,
    }
}

fn request_of(attributes: Attributes) -> (RequestInfo, String) {
    let request = RequestInfo {
        is_resource_request: !attributes.resource.is_empty(),
        verb: attributes.verb,
        api_group: attributes.group,
        api_version: attributes.version,
        resource: attributes.resource,
        subresource: attributes.subresource,
        namespace: attributes.namespace,
        name: attributes.name,
        ..RequestInfo::default()
    };
    (request, attributes.audit_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarded_caller_round_trips_and_is_stripped_completely() {
        let mut user = UserInfo::new("ümläut", ["a", "b"]);
        user.extra.insert("k".into(), vec!["1".into(), "2".into()]);
        let request =
            RequestInfo::parse("GET", "/apis/apps/v1/namespaces/a/deployments/d/scale", "").unwrap();
        let (user, request, audit_id) = (Arc::new(user), request.into(), "id".into());
        let forwarded = ForwardedCaller { user, request, audit_id, own_account: true };
        let mut metadata = MetadataMap::new();
        forwarded.insert_into(&mut metadata);
        let read = ForwardedCaller::read(&metadata).unwrap().unwrap();
        assert_eq!((&read.user, &read.audit_id), (&forwarded.user, &forwarded.audit_id));
        assert!(read.own_account);
        assert_eq!(read.request.resource_path(), "deployments/scale");
        ForwardedCaller::strip(&mut metadata);
        assert_eq!(ForwardedCaller::read(&metadata).unwrap(), None);
    }
}
