//! Bootstrap tokens: Secrets in `kube-system` with which a new node requests its first certificate.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_auth::authn::parse_bootstrap_token;
use portico_machinery::{Object, UserInfo, time};

use portico_registry::Objects;

use crate::issuer::read_core_object;

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const GROUP: &str = "system:bootstrappers";
const MAX_GROUP_SUFFIX: usize = 256;

/// User of a bootstrap token, if it is valid.
pub(super) async fn authenticate(objects: &Objects, token: &str, now: i64) -> Option<UserInfo> {
    let (id, secret) = parse_bootstrap_token(token)?;
    let secret_object =
        read_core_object(objects, "secrets", NAMESPACE, &format!("bootstrap-token-{id}")).await.ok()?;
    user_of_secret(secret_object.object(), id, secret, now)
}

fn user_of_secret(secret_object: &Object, id: &str, secret: &str, now: i64) -> Option<UserInfo> {
    let data =
        |key: &str| String::from_utf8(STANDARD.decode(secret_object.at(&["data", key]).str()).ok()?).ok();
    if secret_object.deletion_timestamp().is_some() || secret_object.str_at("type") != TYPE {
        return None;
    }
    let stored = data("token-secret")?;
    // In constant time, because the caller controls the compared value.
    aws_lc_rs::constant_time::verify_slices_are_equal(stored.as_bytes(), secret.as_bytes()).ok()?;
    if data("token-id")? != id || data("usage-bootstrap-authentication")? != "true" {
        return None;
    }
    let expiration = data("expiration").filter(|text| !text.is_empty());
    if expiration.is_some_and(|text| time::parse(&text).is_none_or(|time| time.as_second() <= now)) {
        return None;
    }
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    for group in data("auth-extra-groups").unwrap_or_default().split(',').filter(|g| !g.is_empty()) {
        if !is_extra_group(group) {
            return None;
        }
        groups.insert(group.to_owned());
    }
    Some(UserInfo::new(format!("system:bootstrap:{id}"), groups))
}

/// True for `system:bootstrappers:` followed by lower-case letters, digits, colons and dashes that end in a letter or digit.
fn is_extra_group(group: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    group.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix(':')).is_some_and(|rest| {
        rest.len() <= MAX_GROUP_SUFFIX
            && rest.bytes().all(|b| plain(b) || b == b':' || b == b'-')
            && rest.bytes().last().is_some_and(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(changes: &[(&str, &str)]) -> Object {
        let mut object = Object::default();
        object.set(&["type"], TYPE);
        let fields = [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
        ];
        for (key, value) in fields.iter().chain(changes) {
            object.set(&["data", key], STANDARD.encode(value));
        }
        object
    }

    #[test]
    fn a_token_is_valid_only_if_all_fields_of_its_secret_are_valid() {
        let groups = |changes: &[(&str, &str)]| {
            user_of_secret(&token(changes), "abcdef", "0123456789abcdef", 0).map(|user| user.groups.join(" "))
        };
        assert_eq!(groups(&[]).as_deref(), Some("system:bootstrappers"));
        let extra = [("auth-extra-groups", "system:bootstrappers:x:y-1,system:bootstrappers:a")];
        let all = "system:bootstrappers system:bootstrappers:a system:bootstrappers:x:y-1";
        assert_eq!(groups(&extra).as_deref(), Some(all));
        assert!(groups(&[("expiration", "1970-01-01T00:00:01Z")]).is_some());
        for wrong in [
            ("token-secret", "0123456789abcdeF"),
            ("token-id", "abcdeg"),
            ("usage-bootstrap-authentication", "false"),
            ("expiration", "1970-01-01T00:00:00Z"),
            ("expiration", "tomorrow"),
            ("auth-extra-groups", "system:masters"),
            ("auth-extra-groups", "system:bootstrappers:"),
        ] {
            assert_eq!(groups(&[wrong]), None, "{wrong:?}");
        }
        let mut typed = token(&[]);
        typed.set(&["type"], "Opaque");
        assert_eq!(user_of_secret(&typed, "abcdef", "0123456789abcdef", 0), None);
    }
}
