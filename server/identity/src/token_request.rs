//! TokenRequest: issues a token of a service account, bound to an object if requested. Checks are in upstream's order.

use std::sync::Arc;

use portico_auth::jwt::{Claims, KubernetesClaims, ObjectRef};
use portico_machinery::gvk::GroupKind;
use portico_machinery::{GroupResource, GroupVersion, Object, Status, field, time};

use crate::issuer::{TokenAuthority, credential_id, read_core_object, user_name};
use portico_registry::Objects;
use portico_registry::Result;
use portico_registry::stored_object::StoredObject;
use portico_registry::system;
use portico_registry::{Action, ActionFuture, ActionOutcome, ActionRequest, ResultFuture};

const DEFAULT_LIFETIME: i64 = 3600;
const MIN_LIFETIME: i64 = 600;
const MAX_LIFETIME: i64 = 1 << 32;
/// Lifetime that kubelet requests for tokens of pods. Such tokens are extended to a year, and use after this time is logged.
const WARN_ONLY_LIFETIME: i64 = 3607;
/// Extended lifetime of tokens of pods in seconds (`ExpirationExtensionSeconds`).
pub const EXTENDED_LIFETIME: i64 = 365 * 86_400;
const ISSUED_CREDENTIAL_ID: &str = "authentication.kubernetes.io/issued-credential-id";

/// Action of `POST serviceaccounts/NAME/token`.
pub(crate) struct TokenRequest {
    authority: Arc<TokenAuthority>,
}

impl TokenRequest {
    /// Action that issues tokens of this authority.
    pub(crate) fn new(authority: Arc<TokenAuthority>) -> Self {
        Self { authority }
    }
}

impl Action for TokenRequest {
    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> ResultFuture<'a, ()> {
        Box::pin(prepare_request(&self.authority, request))
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> ActionFuture<'a> {
        Box::pin(issue(&self.authority, request))
    }
}

/// Fills in absent fields from the account, and runs the checks that need no other objects.
async fn prepare_request(authority: &TokenAuthority, action: &mut ActionRequest<'_>) -> Result<()> {
    let (namespace, name) = (action.path.namespace, action.path.name);
    let request = &mut action.body;
    system::default_namespace(request, true, namespace)?;
    if !request.name().is_empty() && request.name() != name {
        let message = "must match the service account name if specified";
        return Err(invalid(name, &request.at(&["metadata", "name"]).invalid(message)));
    }
    let account = read_core_object(&action.verbs.objects, "serviceaccounts", namespace, name).await?;
    fill_from_account(request, &account, authority)?;
    request.set(&["metadata", "creationTimestamp"], time::rfc3339(action.verbs.objects.request_time().now));
    request.remove(&["status"]);
    check_lifetime(request)
}

async fn issue(authority: &TokenAuthority, action: ActionRequest<'_>) -> Result<ActionOutcome> {
    let (namespace, name) = (action.path.namespace, action.path.name);
    let mut request = action.body;
    let account = read_core_object(&action.verbs.objects, "serviceaccounts", namespace, name).await?;
    let now = action.verbs.objects.request_time().now;
    let bound = bound_objects(&action.verbs.objects, &request, namespace, name).await?;
    let warnings = limit_lifetime(&mut request, authority);
    let claims = claims(&request, &account, bound, authority, now.as_second());
    let token = authority.signer.sign(&claims).await;
    let token = token.map_err(|e| Box::new(Status::internal(format!("failed to generate token: {e}"))))?;
    let expiration = now.saturating_add(jiff::SignedDuration::from_secs(lifetime(&request)));
    request.remove(&["status"]);
    request.set(&["status", "token"], token);
    request.set(&["status", "expirationTimestamp"], time::rfc3339(expiration.unwrap_or(now)));
    let audit = vec![(ISSUED_CREDENTIAL_ID.to_owned(), credential_id(&claims.jti))];
    Ok(ActionOutcome::Annotated { object: request, warnings, audit })
}

fn kind() -> GroupKind {
    GroupKind { group: "authentication.k8s.io".to_owned(), kind: "TokenRequest".to_owned() }
}

fn invalid(name: &str, error: &field::Error) -> Box<Status> {
    Box::new(Status::invalid(&kind(), name, std::slice::from_ref(error)))
}

/// Status 409 with a kind in place of a resource, as in upstream.
fn conflict(group: &str, kind: &str, name: &str, reason: &str) -> Box<Status> {
    Box::new(Status::conflict(&GroupResource::new(group, kind), name, reason))
}

/// Fills in absent fields; status 409 if the UID differs from that of the account.
fn fill_from_account(request: &mut Object, account: &StoredObject, authority: &TokenAuthority) -> Result<()> {
    let (requested_uid, account_uid) = (request.uid(), account.uid());
    if !requested_uid.is_empty() && requested_uid != account_uid {
        let reason = format!(
            "the UID in the token request ({requested_uid}) does not match the UID of the service account ({account_uid})"
        );
        return Err(conflict("authentication.k8s.io", "TokenRequest", account.name(), &reason));
    }
    request.set(&["metadata", "name"], account.name());
    request.set(&["metadata", "namespace"], account.namespace());
    request.set(&["metadata", "uid"], account.uid());
    if request.at(&["spec", "audiences"]).is_empty() {
        request.set(&["spec", "audiences"], &authority.keys.load().audiences);
    }
    Ok(())
}

fn lifetime(request: &Object) -> i64 {
    request.at(&["spec", "expirationSeconds"]).i64().unwrap_or(DEFAULT_LIFETIME)
}

fn check_lifetime(request: &Object) -> Result<()> {
    let lifetime = request.at(&["spec", "expirationSeconds"]);
    let message = match lifetime.i64().unwrap_or_default() {
        ..MIN_LIFETIME => "may not specify a duration less than 10 minutes",
        MIN_LIFETIME..=MAX_LIFETIME => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Err(invalid("", &lifetime.invalid(message)))
}

/// Objects to which the token is bound, in addition to its account.
async fn bound_objects(
    objects: &Objects,
    request: &Object,
    namespace: &str,
    account: &str,
) -> Result<KubernetesClaims> {
    let mut bound = KubernetesClaims::default();
    let reference = request.at(&["spec", "boundObjectRef"]);
    if !reference.is_present() {
        return Ok(bound);
    }
    let (kind, name, uid) =
        (reference.field("kind").str(), reference.field("name").str(), reference.field("uid").str());
    let version: GroupVersion = reference.field("apiVersion").str().parse().unwrap_or_default();
    let object = match (version.group.as_str(), kind) {
        ("", "Pod") => {
            let pod = read_core_object(objects, "pods", namespace, name).await?;
            if pod.object().str_at("spec.serviceAccountName") != account {
                let reason = "to pod running with different serviceaccount name.";
                let message = format!("cannot bind token for serviceaccount {account:?} {reason}");
                return Err(Box::new(Status::bad_request(message)));
            }
            bound.pod = Some(reference_to(&pod));
            bound.node = node_of(objects, &pod).await;
            pod
        }
        ("", "Secret") => {
            let secret = read_core_object(objects, "secrets", namespace, name).await?;
            bound.secret = Some(reference_to(&secret));
            secret
        }
        ("", "Node") => {
            let node = read_core_object(objects, "nodes", "", name).await?;
            bound.node = Some(reference_to(&node));
            node
        }
        (group, kind) => {
            let kind_text = format!("{group}/{}, Kind={kind}", version.version);
            return Err(Box::new(Status::bad_request(format!(
                "cannot bind token to object of type {kind_text}"
            ))));
        }
    };
    if !uid.is_empty() && object.uid() != uid {
        let reason = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        );
        return Err(conflict("", kind, name, &reason));
    }
    Ok(bound)
}

fn reference_to(object: &StoredObject) -> ObjectRef {
    ObjectRef { name: object.name().to_owned(), uid: object.uid().to_owned() }
}

/// Node of a pod; without a UID if the node does not exist.
async fn node_of(objects: &Objects, pod: &StoredObject) -> Option<ObjectRef> {
    let name = pod.object().str_at("spec.nodeName");
    if name.is_empty() {
        return None;
    }
    let node = read_core_object(objects, "nodes", "", name).await.ok();
    Some(node.as_ref().map_or_else(|| ObjectRef { name: name.to_owned(), uid: String::new() }, reference_to))
}

/// Reduces the requested lifetime to the server's maximum; returns a warning if it did.
fn limit_lifetime(request: &mut Object, authority: &TokenAuthority) -> Vec<String> {
    let requested = lifetime(request);
    match authority.max_expiration {
        Some(limit) if requested > limit => {
            request.set(&["spec", "expirationSeconds"], limit);
            vec![format!("requested expiration of {requested} seconds shortened to {limit} seconds")]
        }
        _ => Vec::new(),
    }
}

fn claims(
    request: &Object,
    account: &StoredObject,
    bound: KubernetesClaims,
    authority: &TokenAuthority,
    now: i64,
) -> Claims {
    let aud: Vec<String> = request.at(&["spec", "audiences"]).items().map(|a| a.str().to_owned()).collect();
    let (requested, keys) = (lifetime(request), authority.keys.load());
    let extended = authority.extend_expiration
        && bound.pod.is_some()
        && requested == WARN_ONLY_LIFETIME
        && aud.iter().all(|a| keys.audiences.contains(a));
    let (life, warnafter) =
        if extended { (authority.extended_lifetime, Some(now + requested)) } else { (requested, None) };
    let (namespace, serviceaccount) = (account.namespace().to_owned(), reference_to(account));
    Claims {
        aud,
        exp: Some(now + life),
        iat: Some(now),
        iss: keys.issuers.first().cloned().unwrap_or_default(),
        jti: uuid::Uuid::new_v4().to_string(),
        sub: user_name(&namespace, &serviceaccount.name),
        kubernetes: Some(KubernetesClaims { namespace, serviceaccount, warnafter, ..bound }),
        nbf: Some(now),
        ..Claims::default()
    }
}
