//! Bound tokens: the service account and all objects to which the token is bound must exist with the same UIDs.

use portico_auth::jwt::{Claims, KubernetesClaims, ObjectRef};
use portico_machinery::UserInfo;

use crate::issuer::{credential_id, is_past_deletion_leeway, read_core_object, service_account};
use portico_registry::Objects;

const INVALIDATED: &str = "service account token has been invalidated";
const EXTRA: &str = "authentication.kubernetes.io/";

/// User of a bound token; else upstream's message about why it is invalid.
pub(super) async fn authenticate(objects: &Objects, claims: &Claims, now: i64) -> Result<UserInfo, String> {
    let Some(bound) = &claims.kubernetes else { return Err(INVALIDATED.to_owned()) };
    check_account(objects, bound, now).await?;
    if let Some(secret) = &bound.secret {
        check_object(objects, "secrets", &bound.namespace, secret, "secret", "secret", now).await?;
    }
    if let Some(pod) = &bound.pod {
        check_object(objects, "pods", &bound.namespace, pod, "pod", "pod", now).await?;
    } else if let Some(node) = &bound.node {
        check_object(objects, "nodes", "", node, "node", "node", now).await?;
    }
    Ok(user_of(bound, &claims.jti))
}

async fn check_account(objects: &Objects, bound: &KubernetesClaims, now: i64) -> Result<(), String> {
    let (namespace, claim) = (&bound.namespace, &bound.serviceaccount);
    let account =
        read_core_object(objects, "serviceaccounts", namespace, &claim.name).await.map_err(|s| s.message)?;
    if account.uid() != claim.uid {
        let (current_uid, claimed_uid) = (account.uid(), &claim.uid);
        return Err(format!("service account UID ({current_uid}) does not match claim ({claimed_uid})"));
    }
    if is_past_deletion_leeway(&account, now) {
        return Err(format!("service account {namespace}/{} has been deleted", claim.name));
    }
    Ok(())
}

async fn check_object(
    objects: &Objects,
    resource: &str,
    namespace: &str,
    bound: &ObjectRef,
    kind: &str,
    claim: &str,
    now: i64,
) -> Result<(), String> {
    let object = read_core_object(objects, resource, namespace, &bound.name)
        .await
        .map_err(|_| INVALIDATED.to_owned())?;
    if object.uid() != bound.uid {
        let (current_uid, claimed_uid) = (object.uid(), &bound.uid);
        return Err(format!(
            "{kind} UID ({current_uid}) does not match service account {claim} ref claim ({claimed_uid})"
        ));
    }
    if is_past_deletion_leeway(&object, now) { Err(INVALIDATED.to_owned()) } else { Ok(()) }
}

fn user_of(bound: &KubernetesClaims, jti: &str) -> UserInfo {
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
    for (kind, bound) in [("pod", &bound.pod), ("node", &bound.node)] {
        if let Some(ObjectRef { name, uid }) = bound {
            add(&format!("{kind}-name"), name.clone());
            add(&format!("{kind}-uid"), uid.clone());
        }
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_contains_the_objects_that_the_token_is_bound_to() {
        let named = |name: &str| ObjectRef { name: name.into(), uid: format!("{name}-uid") };
        let bound = KubernetesClaims {
            namespace: "n".into(),
            pod: Some(named("p")),
            node: Some(ObjectRef { name: "o".into(), uid: String::new() }),
            serviceaccount: named("s"),
            ..KubernetesClaims::default()
        };
        let user = super::user_of(&bound, "j");
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:n:s", "s-uid"));
        let extra: Vec<_> =
            user.extra.iter().map(|(k, v)| format!("{}={}", &k[EXTRA.len()..], v[0])).collect();
        assert_eq!(extra, ["credential-id=JTI=j", "node-name=o", "pod-name=p", "pod-uid=p-uid"]);
    }
}
