//! TokenRequest: issues a token of a service account, bound to an object if requested. Checks are in upstream's order.

use std::sync::Arc;

use portico_auth::jwt::{Claims, Kubernetes, Ref};
use portico_machinery::gvk::GroupKind;
use portico_machinery::{GroupResource, GroupVersion, Object, Status, field, time};

use crate::issuer::{Identity, credential_id, find, user_name};
use portico_registry::Objects;
use portico_registry::Result;
use portico_registry::stored::Stored;
use portico_registry::system;
use portico_registry::{Acting, Action, ActionRequest, Outcome, Pending};

const DEFAULT_LIFE: i64 = 3600;
const SHORTEST_LIFE: i64 = 600;
const MAX_LIFETIME: i64 = 1 << 32;
/// Lifetime that kubelet requests for tokens of pods. Such tokens are extended to a year, and use after this time is logged.
const WARN_ONLY_LIFE: i64 = 3607;
/// Extended lifetime of tokens of pods in seconds (`ExpirationExtensionSeconds`).
pub const EXTENDED_LIFE: i64 = 365 * 86_400;
const ISSUED: &str = "authentication.kubernetes.io/issued-credential-id";

/// Action of `POST serviceaccounts/NAME/token`.
pub(crate) struct TokenRequest {
    identity: Arc<Identity>,
}

impl TokenRequest {
    /// Action that issues tokens of this authority.
    pub(crate) fn new(identity: Arc<Identity>) -> Self {
        Self { identity }
    }
}

impl Action for TokenRequest {
    fn prepare<'a>(&'a self, asked: &'a mut ActionRequest<'_>) -> Pending<'a, ()> {
        Box::pin(complete(&self.identity, asked))
    }

    fn create<'a>(&'a self, asked: ActionRequest<'a>) -> Acting<'a> {
        Box::pin(issue(&self.identity, asked))
    }
}

/// Fills in absent fields from the account, and runs the checks that need no other objects.
async fn complete(identity: &Identity, asked: &mut ActionRequest<'_>) -> Result<()> {
    let (namespace, name) = (asked.place.namespace, asked.place.name);
    let request = &mut asked.body;
    system::settle_namespace(request, true, namespace)?;
    if !request.name().is_empty() && request.name() != name {
        let why = "must match the service account name if specified";
        return Err(invalid(name, &request.at(&["metadata", "name"]).invalid(why)));
    }
    let account = find(&asked.verbs.objects, "serviceaccounts", namespace, name).await?;
    fill(request, &account, identity)?;
    request.set(&["metadata", "creationTimestamp"], time::rfc3339(asked.verbs.objects.moment().now));
    request.remove(&["status"]);
    check_life(request)
}

async fn issue(identity: &Identity, asked: ActionRequest<'_>) -> Result<Outcome> {
    let (namespace, name) = (asked.place.namespace, asked.place.name);
    let mut request = asked.body;
    let account = find(&asked.verbs.objects, "serviceaccounts", namespace, name).await?;
    let now = asked.verbs.objects.moment().now;
    let bound = bind(&asked.verbs.objects, &request, namespace, name).await?;
    let warnings = shorten(&mut request, identity);
    let claims = claims(&request, &account, bound, identity, now.as_second());
    let token = identity.signer.sign(&claims).await;
    let token = token.map_err(|e| Box::new(Status::internal(format!("failed to generate token: {e}"))))?;
    let until = now.saturating_add(jiff::SignedDuration::from_secs(life(&request)));
    request.remove(&["status"]);
    request.set(&["status", "token"], token);
    request.set(&["status", "expirationTimestamp"], time::rfc3339(until.unwrap_or(now)));
    let audit = vec![(ISSUED.to_owned(), credential_id(&claims.jti))];
    Ok(Outcome::Annotated { object: request, warnings, audit })
}

fn kind() -> GroupKind {
    GroupKind { group: "authentication.k8s.io".to_owned(), kind: "TokenRequest".to_owned() }
}

fn invalid(name: &str, error: &field::Error) -> Box<Status> {
    Box::new(Status::invalid(&kind(), name, std::slice::from_ref(error)))
}

/// Status 409 with a kind in place of a resource, as in upstream.
fn conflict(group: &str, kind: &str, name: &str, why: &str) -> Box<Status> {
    Box::new(Status::conflict(&GroupResource::new(group, kind), name, why))
}

/// Fills in absent fields; status 409 if the UID differs from that of the account.
fn fill(request: &mut Object, account: &Stored, identity: &Identity) -> Result<()> {
    let (asked, is) = (request.uid(), account.uid());
    if !asked.is_empty() && asked != is {
        let why = format!(
            "the UID in the token request ({asked}) does not match the UID of the service account ({is})"
        );
        return Err(conflict("authentication.k8s.io", "TokenRequest", account.name(), &why));
    }
    request.set(&["metadata", "name"], account.name());
    request.set(&["metadata", "namespace"], account.namespace());
    request.set(&["metadata", "uid"], account.uid());
    if request.at(&["spec", "audiences"]).is_empty() {
        request.set(&["spec", "audiences"], &identity.keys.load().audiences);
    }
    Ok(())
}

fn life(request: &Object) -> i64 {
    request.at(&["spec", "expirationSeconds"]).i64().unwrap_or(DEFAULT_LIFE)
}

fn check_life(request: &Object) -> Result<()> {
    let life = request.at(&["spec", "expirationSeconds"]);
    let why = match life.i64().unwrap_or_default() {
        ..SHORTEST_LIFE => "may not specify a duration less than 10 minutes",
        SHORTEST_LIFE..=MAX_LIFETIME => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Err(invalid("", &life.invalid(why)))
}

/// Objects to which the token is bound, in addition to its account.
async fn bind(objects: &Objects, request: &Object, namespace: &str, account: &str) -> Result<Kubernetes> {
    let mut bound = Kubernetes::default();
    let reference = request.at(&["spec", "boundObjectRef"]);
    if !reference.is_present() {
        return Ok(bound);
    }
    let (kind, name, uid) =
        (reference.field("kind").str(), reference.field("name").str(), reference.field("uid").str());
    let version: GroupVersion = reference.field("apiVersion").str().parse().unwrap_or_default();
    let object = match (version.group.as_str(), kind) {
        ("", "Pod") => {
            let pod = find(objects, "pods", namespace, name).await?;
            if pod.object().str_at("spec.serviceAccountName") != account {
                let why = "to pod running with different serviceaccount name.";
                let message = format!("cannot bind token for serviceaccount {account:?} {why}");
                return Err(Box::new(Status::bad_request(message)));
            }
            bound.pod = Some(named(&pod));
            bound.node = node_of(objects, &pod).await;
            pod
        }
        ("", "Secret") => {
            let secret = find(objects, "secrets", namespace, name).await?;
            bound.secret = Some(named(&secret));
            secret
        }
        ("", "Node") => {
            let node = find(objects, "nodes", "", name).await?;
            bound.node = Some(named(&node));
            node
        }
        (group, kind) => {
            let of = format!("{group}/{}, Kind={kind}", version.version);
            return Err(Box::new(Status::bad_request(format!("cannot bind token to object of type {of}"))));
        }
    };
    if !uid.is_empty() && object.uid() != uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        );
        return Err(conflict("", kind, name, &why));
    }
    Ok(bound)
}

fn named(object: &Stored) -> Ref {
    Ref { name: object.name().to_owned(), uid: object.uid().to_owned() }
}

/// Node of a pod; without a UID if the node does not exist.
async fn node_of(objects: &Objects, pod: &Stored) -> Option<Ref> {
    let name = pod.object().str_at("spec.nodeName");
    if name.is_empty() {
        return None;
    }
    let node = find(objects, "nodes", "", name).await.ok();
    Some(node.as_ref().map_or_else(|| Ref { name: name.to_owned(), uid: String::new() }, named))
}

/// Reduces the requested lifetime to the server's maximum; returns a warning if it did.
fn shorten(request: &mut Object, identity: &Identity) -> Vec<String> {
    let asked = life(request);
    match identity.max_expiration {
        Some(limit) if asked > limit => {
            request.set(&["spec", "expirationSeconds"], limit);
            vec![format!("requested expiration of {asked} seconds shortened to {limit} seconds")]
        }
        _ => Vec::new(),
    }
}

fn claims(request: &Object, account: &Stored, bound: Kubernetes, identity: &Identity, now: i64) -> Claims {
    let aud: Vec<String> = request.at(&["spec", "audiences"]).items().map(|a| a.str().to_owned()).collect();
    let (asked, keys) = (life(request), identity.keys.load());
    let extended = identity.extend_expiration
        && bound.pod.is_some()
        && asked == WARN_ONLY_LIFE
        && aud.iter().all(|a| keys.audiences.contains(a));
    let (life, warnafter) =
        if extended { (identity.extended_life, Some(now + asked)) } else { (asked, None) };
    let (namespace, serviceaccount) = (account.namespace().to_owned(), named(account));
    Claims {
        aud,
        exp: Some(now + life),
        iat: Some(now),
        iss: keys.issuers.first().cloned().unwrap_or_default(),
        jti: uuid::Uuid::new_v4().to_string(),
        sub: user_name(&namespace, &serviceaccount.name),
        kubernetes: Some(Kubernetes { namespace, serviceaccount, warnafter, ..bound }),
        nbf: Some(now),
        ..Claims::default()
    }
}
