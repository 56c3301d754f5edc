//! Bound tokens: the service account and all objects to which the token is bound must exist with the same UIDs.

use portico_auth::jwt::{Claims, Kubernetes, Ref};
use portico_machinery::UserInfo;

use crate::issuer::{credential_id, find, is_gone, service_account};
use portico_registry::Objects;

const VOID: &str = "service account token has been invalidated";
const EXTRA: &str = "authentication.kubernetes.io/";

/// User of a bound token; else upstream's message about why it is invalid.
pub(super) async fn user(objects: &Objects, claims: &Claims, now: i64) -> Result<UserInfo, String> {
    let Some(bound) = &claims.kubernetes else { return Err(VOID.to_owned()) };
    account(objects, bound, now).await?;
    if let Some(secret) = &bound.secret {
        alive(objects, "secrets", &bound.namespace, secret, "secret", "secret", now).await?;
    }
    if let Some(pod) = &bound.pod {
        alive(objects, "pods", &bound.namespace, pod, "pod", "pod", now).await?;
    } else if let Some(node) = &bound.node {
        alive(objects, "nodes", "", node, "node", "node", now).await?;
    }
    Ok(named(bound, &claims.jti))
}

async fn account(objects: &Objects, bound: &Kubernetes, now: i64) -> Result<(), String> {
    let (namespace, wanted) = (&bound.namespace, &bound.serviceaccount);
    let account = find(objects, "serviceaccounts", namespace, &wanted.name).await.map_err(|s| s.message)?;
    if account.uid() != wanted.uid {
        let (is, claimed) = (account.uid(), &wanted.uid);
        return Err(format!("service account UID ({is}) does not match claim ({claimed})"));
    }
    if is_gone(&account, now) {
        return Err(format!("service account {namespace}/{} has been deleted", wanted.name));
    }
    Ok(())
}

async fn alive(
    objects: &Objects,
    resource: &str,
    namespace: &str,
    bound: &Ref,
    what: &str,
    claim: &str,
    now: i64,
) -> Result<(), String> {
    let object = find(objects, resource, namespace, &bound.name).await.map_err(|_| VOID.to_owned())?;
    if object.uid() != bound.uid {
        let (is, claimed) = (object.uid(), &bound.uid);
        return Err(format!(
            "{what} UID ({is}) does not match service account {claim} ref claim ({claimed})"
        ));
    }
    if is_gone(&object, now) { Err(VOID.to_owned()) } else { Ok(()) }
}

fn named(bound: &Kubernetes, jti: &str) -> UserInfo {
    let account = &bound.serviceaccount;
    let mut user = service_account(&bound.namespace, &account.name, &account.uid);
    let mut add = |key: &str, value: String| {
        if !value.is_empty() {
            user.extra.insert(format!("{EXTRA}{key}"), vec![value]);
        }
    };
    if !jti.is_empty() {
        add("credential-id", credential_id(jti));
    }
    for (what, bound) in [("pod", &bound.pod), ("node", &bound.node)] {
        if let Some(Ref { name, uid }) = bound {
            add(&format!("{what}-name"), name.clone());
            add(&format!("{what}-uid"), uid.clone());
        }
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_carries_what_the_token_is_bound_to() {
        let named = |name: &str| Ref { name: name.into(), uid: format!("{name}-uid") };
        let bound = Kubernetes {
            namespace: "n".into(),
            pod: Some(named("p")),
            node: Some(Ref { name: "o".into(), uid: String::new() }),
            serviceaccount: named("s"),
            ..Kubernetes::default()
        };
        let user = super::named(&bound, "j");
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:n:s", "s-uid"));
        let extra: Vec<_> =
            user.extra.iter().map(|(k, v)| format!("{}={}", &k[EXTRA.len()..], v[0])).collect();
        assert_eq!(extra, ["credential-id=JTI=j", "node-name=o", "pod-name=p", "pod-uid=p-uid"]);
    }
}
