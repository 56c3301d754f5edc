//! Legacy tokens: stored in a Secret, without expiration. The Secret is labeled with the date of the last use.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::ToSpan;
use jiff::tz::TimeZone;
use portico_auth::jwt::{Claims, LEGACY_ISSUER};
use portico_machinery::{GroupResource, Status, UserInfo};

use crate::issuer::{TokenAuthority, read_core_object, service_account, user_name};
use crate::signer::Signer;
use portico_registry::{Context, ObjectPart, ObjectPath, Objects, Patch, PatchOptions, StoredObject, Verbs};

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const INVALIDATED: &str = "Token has been invalidated";

/// User of a legacy token; else upstream's message about why it is invalid.
pub(super) async fn authenticate(
    verbs: &Verbs,
    authority: &TokenAuthority,
    token: &str,
    claims: &Claims,
) -> Result<UserInfo, String> {
    check_claims(claims)?;
    if authority.lookup {
        let secret = find_secret(&verbs.objects, token, claims).await?;
        record_use(verbs, &secret).await;
        check_invalid_since(&secret, claims)?;
    }
    Ok(service_account(&claims.legacy_namespace, &claims.legacy_name, &claims.legacy_uid))
}

impl TokenAuthority {
    /// Token of an account for a Secret; `None` with an external signer, which does not sign tokens without expiration.
    ///
    /// # Errors
    /// Status 500 if the token cannot be signed.
    pub fn legacy_token(&self, account: &StoredObject, secret: &str) -> Result<Option<String>, Box<Status>> {
        let Signer::Local(key) = &self.signer else { return Ok(None) };
        let claims = claims(account.namespace(), account.name(), account.uid(), secret);
        key.sign(&claims).map(Some).map_err(|error| Box::new(Status::internal(error)))
    }
}

/// Claims of a legacy token, which contain the name of its Secret and no expiration.
fn claims(namespace: &str, account: &str, uid: &str, secret: &str) -> Claims {
    Claims {
        iss: LEGACY_ISSUER.to_owned(),
        sub: user_name(namespace, account),
        legacy_namespace: namespace.to_owned(),
        legacy_secret: secret.to_owned(),
        legacy_name: account.to_owned(),
        legacy_uid: uid.to_owned(),
        ..Claims::default()
    }
}

/// Checks that all claims are present and consistent.
fn check_claims(claims: &Claims) -> Result<(), String> {
    for (claim, value) in [
        ("sub", &claims.sub),
        ("namespace", &claims.legacy_namespace),
        ("secretName", &claims.legacy_secret),
        ("serviceAccountName", &claims.legacy_name),
        ("serviceAccountUID", &claims.legacy_uid),
    ] {
        if value.is_empty() {
            return Err(format!("{claim} claim is missing"));
        }
    }
    if claims.sub != user_name(&claims.legacy_namespace, &claims.legacy_name) {
        return Err("sub claim is invalid".to_owned());
    }
    Ok(())
}

async fn find_secret(objects: &Objects, token: &str, claims: &Claims) -> Result<StoredObject, String> {
    let (namespace, name) = (&claims.legacy_namespace, &claims.legacy_name);
    let found = read_core_object(objects, "secrets", namespace, &claims.legacy_secret).await;
    let secret = found.map_err(|_| INVALIDATED.to_owned())?;
    if secret.object().deletion_timestamp().is_some() {
        return Err(INVALIDATED.to_owned());
    }
    let stored_token = STANDARD.decode(secret.object().at(&["data", "token"]).str()).unwrap_or_default();
    if stored_token != token.as_bytes() {
        return Err("Token does not match server's copy".to_owned());
    }
    let account =
        read_core_object(objects, "serviceaccounts", namespace, name).await.map_err(|s| s.message)?;
    if account.object().deletion_timestamp().is_some() {
        return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
    }
    if account.uid() != claims.legacy_uid {
        let (current_uid, claimed_uid) = (account.uid(), &claims.legacy_uid);
        return Err(format!("ServiceAccount UID ({current_uid}) does not match claim ({claimed_uid})"));
    }
    Ok(secret)
}

/// Refuses a token that the cleaner has labeled invalid, until the label is removed.
fn check_invalid_since(secret: &StoredObject, claims: &Claims) -> Result<(), String> {
    if secret.object().label(INVALID_SINCE).unwrap_or_default().is_empty() {
        return Ok(());
    }
    let (namespace, secret_name, name) =
        (&claims.legacy_namespace, &claims.legacy_secret, &claims.legacy_name);
    Err(format!(
        "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked invalid. Use tokens \
         from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the \
         secret to temporarily allow use of this token"
    ))
}

/// Labels the Secret with the current date, once a day. A failure does not invalidate the token.
async fn record_use(verbs: &Verbs, secret: &StoredObject) {
    let now = verbs.objects.request_time().now.to_zoned(TimeZone::UTC);
    let today = now.date().to_string();
    let tomorrow = now.date().saturating_add(1.day()).to_string();
    let last = secret.object().label(LAST_USED).unwrap_or_default();
    // The clock of another server may be ahead.
    if last == today || last == tomorrow {
        return;
    }
    let Ok(served) = verbs.objects.served_resource(&GroupResource::new("", "secrets")) else { return };
    let patch = format!("{{\"metadata\":{{\"labels\":{{\"{LAST_USED}\":\"{today}\"}}}}}}");
    let path = ObjectPath { part: ObjectPart::Main, namespace: secret.namespace(), name: secret.name() };
    let context = Context::internal("legacy-service-account-token-tracking");
    let result =
        verbs.patch(&context, &served, path, &Patch::Merge(patch.into()), &PatchOptions::default()).await;
    if let Err(status) = result {
        tracing::warn!(
            secret = %secret.record().key,
            error = status.message,
            "cannot record the use of a legacy token"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_required_and_the_subject_is_the_account() {
        let complete = claims("n", "s", "u", "t");
        let error_after = |change: fn(&mut Claims)| {
            let mut claims = complete.clone();
            change(&mut claims);
            check_claims(&claims).err().unwrap_or_default()
        };
        assert_eq!(error_after(|_| {}), "");
        assert_eq!(error_after(|c| c.sub.clear()), "sub claim is missing");
        assert_eq!(error_after(|c| c.legacy_namespace.clear()), "namespace claim is missing");
        assert_eq!(error_after(|c| c.legacy_secret.clear()), "secretName claim is missing");
        assert_eq!(error_after(|c| c.legacy_name.clear()), "serviceAccountName claim is missing");
        assert_eq!(error_after(|c| c.legacy_uid.clear()), "serviceAccountUID claim is missing");
        assert_eq!(error_after(|c| c.sub.push('x')), "sub claim is invalid");
    }
}
