//! Tests of impersonation with scripted permissions, and of upstream's refusal messages.

use super::*;
use crate::authz::{Decision, MastersAuthorizer};

/// Authorizer that allows exactly these requests: `verb resource[/sub] name [namespace]` or `verb path`.
struct ScriptedAuthorizer(&'static [&'static str]);

impl Authorizer for ScriptedAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let r = &attributes.request;
        let question = if r.is_resource_request {
            let namespace = if r.namespace.is_empty() { String::new() } else { format!(" {}", r.namespace) };
            format!("{} {}.{} {}{namespace}", r.verb, r.resource_path(), r.api_group, r.name)
        } else {
            format!("{} {}", r.verb, r.path)
        };
        if self.0.contains(&question.as_str()) { Decision::allow("") } else { Decision::no_opinion("") }
    }
}

fn list_namespaces() -> RequestInfo {
    RequestInfo::parse("GET", "/api/v1/namespaces", "").unwrap()
}

fn wanted(fields: &[(&str, &str)]) -> ImpersonationRequest {
    ImpersonationRequest::from_headers(&fields).unwrap().unwrap()
}

fn alice() -> UserInfo {
    UserInfo::new("alice", ["dev", AUTHENTICATED])
}

#[test]
fn fields_are_read_in_any_case_and_keys_decoded() {
    let got = wanted(&[
        ("impersonate-user", "zoe"),
        ("Impersonate-Group", "painters"),
        ("impersonate-group", "plumbers"),
        ("Impersonate-Uid", "u1"),
        ("Impersonate-Extra-Scopes", "view"),
        ("impersonate-extra-scopes", "edit"),
        ("Impersonate-Extra-Acme.com%2Fproject", "p1"),
    ]);
    assert_eq!((got.user.as_str(), got.uid.as_str()), ("zoe", "u1"));
    assert_eq!(got.groups, ["painters", "plumbers"]);
    assert_eq!(got.extra["scopes"], ["view", "edit"]);
    assert_eq!(got.extra["acme.com/project"], ["p1"]);
    assert!(consumes_header("impersonate-EXTRA-x") && consumes_header("Impersonate-Uid"));
    assert!(!consumes_header("Impersonate"));
}

#[test]
fn requests_without_a_user_are_bad_requests() {
    for fields in [
        &[("Impersonate-Group", "painters")][..],
        &[("Impersonate-Uid", "1")],
        &[("Impersonate-Extra-Scopes", "view")],
        &[("Impersonate-User", ""), ("Impersonate-Group", "painters")],
    ] {
        let status = ImpersonationRequest::from_headers(&fields).unwrap_err();
        assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"), "{fields:?}");
    }
    assert_eq!(ImpersonationRequest::from_headers(&&[("Accept", "*/*")][..]).unwrap(), None);
    let fields = &[
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", ""),
        ("Impersonate-Extra-B", "\"é\""),
        ("Impersonate-Extra-A", "x"),
    ][..];
    let message = r#"requested &user.DefaultInfo{Name:"", UID:"1", Groups:[]string{"a", ""}, Extra:map[string][]string{"a":[]string{"x"}, "b":[]string{"\"é\""}}} without impersonating a user name"#;
    assert_eq!(ImpersonationRequest::from_headers(&fields).unwrap_err().message, message);
}

#[test]
fn the_first_entry_of_a_repeated_user_is_used_even_if_it_is_empty() {
    let read = |fields: &[(&str, &str)]| ImpersonationRequest::from_headers(&fields).unwrap();
    let twice = read(&[("Impersonate-User", "zoe"), ("Impersonate-User", "amy")]);
    assert_eq!(twice.unwrap().user, "zoe");
    assert_eq!(read(&[("Impersonate-User", ""), ("Impersonate-User", "amy")]), None);
}

#[test]
fn fields_are_utf_8_or_the_request_is_refused() {
    let got = wanted(&[
        ("impersonate-user", "jürgen"),
        ("impersonate-group", "größe"),
        ("impersonate-uid", "ü"),
        ("impersonate-extra-a%c3%BC", "\u{7530}"),
    ]);
    assert_eq!((got.user.as_str(), got.uid.as_str()), ("jürgen", "ü"));
    assert_eq!(
        (got.groups, got.extra),
        (vec!["größe".to_owned()], [("aü".into(), vec!["\u{7530}".into()])].into())
    );
    for name in ["impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-a"] {
        for value in [&b"\xff"[..], b"j\xfcrgen", b"a\xe2\x82"] {
            let fields = &[("impersonate-user", &b"zoe"[..]), (name, value)][..];
            let status = ImpersonationRequest::from_headers(&fields).unwrap_err();
            assert_eq!(status.message, format!("header {name} is not valid UTF-8"));
            assert_eq!(status.code, 400);
        }
    }
    let fields = &[("impersonate-user", "zoe"), ("impersonate-extra-%ff", "1")][..];
    assert_eq!(ImpersonationRequest::from_headers(&fields).unwrap_err().code, 400);
}

/// Header fields, groups of the result, constraint in audit events.
type Row = (&'static [(&'static str, &'static str)], &'static [&'static str], &'static str);

#[test]
fn administrators_may_impersonate_any_user() {
    let admin = UserInfo::new("admin", ["system:masters", AUTHENTICATED]);
    let rows: [Row; 7] = [
        (&[("Impersonate-User", "zoe")], &[AUTHENTICATED], "impersonate:user-info"),
        (
            &[("Impersonate-User", "zoe"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")],
            &["a", "b", AUTHENTICATED],
            "impersonate:user-info",
        ),
        (
            &[("Impersonate-User", "system:serviceaccount:imp:robot")],
            &["system:serviceaccounts", "system:serviceaccounts:imp", AUTHENTICATED],
            "impersonate:serviceaccount",
        ),
        (
            &[("Impersonate-User", "system:serviceaccount:imp:robot"), ("Impersonate-Group", "painters")],
            &["painters", AUTHENTICATED],
            "",
        ),
        (&[("Impersonate-User", ANONYMOUS)], &[UNAUTHENTICATED], "impersonate:user-info"),
        (
            &[("Impersonate-User", "zoe"), ("Impersonate-Group", "system:masters")],
            &["system:masters", AUTHENTICATED],
            "",
        ),
        (
            &[("Impersonate-User", "system:node:n1")],
            &["system:nodes", AUTHENTICATED],
            "impersonate:arbitrary-node",
        ),
    ];
    for (fields, groups, constraint) in rows {
        let got = impersonate(&MastersAuthorizer, &admin, &list_namespaces(), &wanted(fields)).unwrap();
        assert_eq!(got.user.groups, groups, "{fields:?}");
        assert_eq!(got.constraint, constraint, "{fields:?}");
    }
}

#[test]
fn a_refusal_has_the_message_of_the_first_mode() {
    let robot = "system:serviceaccount:imp:robot";
    for (caller, user, mode) in [
        (alice(), "zoe", "user-info"),
        (alice(), "alice", "user-info"),
        (alice(), robot, "serviceaccount"),
        (UserInfo::anonymous(), "zoe", "user-info"),
        (alice(), "system:node:n1", "arbitrary-node"),
    ] {
        let request = wanted(&[("Impersonate-User", user)]);
        let status = impersonate(&MastersAuthorizer, &caller, &list_namespaces(), &request).unwrap_err();
        let want = format!(
            "namespaces is forbidden: User {:?} cannot impersonate-on:{mode}:list resource \"namespaces\" in API group \"\" at the cluster scope",
            caller.name
        );
        assert_eq!((status.code, status.message.as_str()), (403, want.as_str()));
        assert_eq!(status.details.unwrap().kind, "namespaces");
    }
    let request = RequestInfo::parse("GET", "/metrics", "").unwrap();
    let status = impersonate(&MastersAuthorizer, &alice(), &request, &wanted(&[("Impersonate-User", "zoe")]))
        .unwrap_err();
    assert_eq!(
        status.message,
        r#"forbidden: User "alice" cannot impersonate-on:user-info:get path "/metrics""#
    );
}

#[test]
fn the_legacy_verb_is_checked_for_each_part() {
    let zoe = ScriptedAuthorizer(&["impersonate users. zoe"]);
    let zoe_painter = ScriptedAuthorizer(&["impersonate users. zoe", "impersonate groups. painters"]);
    let all = ScriptedAuthorizer(&[
        "impersonate users. zoe",
        "impersonate uids.authentication.k8s.io u1",
        "impersonate userextras/scopes.authentication.k8s.io view",
    ]);
    let group = [("Impersonate-User", "zoe"), ("Impersonate-Group", "painters")];
    let two = [group[0], group[1], ("Impersonate-Group", "plumbers")];
    let full = [group[0], ("Impersonate-Uid", "u1"), ("Impersonate-Extra-Scopes", "view")];
    let edit = [group[0], ("Impersonate-Extra-Scopes", "edit")];
    for (rights, fields, allowed) in [
        (&zoe, &group[..1], true),
        (&zoe, &[("Impersonate-User", "zeno")], false),
        (&zoe, &group, false),
        (&zoe_painter, &group, true),
        (&zoe_painter, &two, false),
        (&all, &full, true),
        (&all, &edit, false),
    ] {
        let got = impersonate(rights, &alice(), &list_namespaces(), &wanted(fields));
        assert_eq!(got.is_ok(), allowed, "{fields:?}");
    }
}

#[test]
fn a_constrained_mode_checks_the_action_and_the_identity() {
    let action = "impersonate-on:user-info:list namespaces. ";
    let identity = "impersonate:user-info users.authentication.k8s.io zoe";
    let request = wanted(&[("Impersonate-User", "zoe")]);
    let both = ScriptedAuthorizer(&[
        "impersonate-on:user-info:list namespaces. ",
        "impersonate:user-info users.authentication.k8s.io zoe",
    ]);
    assert!(impersonate(&both, &alice(), &list_namespaces(), &request).is_ok());
    let other = RequestInfo::parse("GET", "/api/v1/pods", "").unwrap();
    assert!(impersonate(&both, &alice(), &other, &request).is_err(), "{action} covers nothing else");
    let status = impersonate(
        &ScriptedAuthorizer(&["impersonate-on:user-info:list namespaces. "]),
        &alice(),
        &list_namespaces(),
        &request,
    )
    .unwrap_err();
    assert!(status.message.contains("cannot impersonate:user-info resource \"users\""), "{identity}");
}

#[test]
fn a_service_account_may_be_the_node_it_runs_on_only_with_the_right_node_in_its_token() {
    let rights = ScriptedAuthorizer(&[
        "impersonate-on:associated-node:list namespaces. ",
        "impersonate:associated-node nodes.authentication.k8s.io *",
    ]);
    let mut agent = UserInfo::new("system:serviceaccount:kube-system:agent", [AUTHENTICATED]);
    agent.extra.insert("authentication.kubernetes.io/node-name".into(), vec!["n1".into()]);
    let node = |name: &str| wanted(&[("Impersonate-User", &format!("system:node:{name}"))]);
    assert!(impersonate(&rights, &agent, &list_namespaces(), &node("n1")).is_ok());
    assert!(impersonate(&rights, &agent, &list_namespaces(), &node("n2")).is_err());
}

#[test]
fn reserved_groups_cannot_be_impersonated_by_administrators() {
    let admin = UserInfo::new("admin", ["system:masters"]);
    let request = wanted(&[("Impersonate-User", "zoe"), ("Impersonate-Group", crate::authn::FACADES_GROUP)]);
    assert_eq!(impersonate(&MastersAuthorizer, &admin, &list_namespaces(), &request).unwrap_err().code, 403);
}
