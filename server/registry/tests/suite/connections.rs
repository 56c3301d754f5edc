//! Connections whose options admission changes.

use std::sync::Arc;

use portico_auth::authz::AlwaysAllow;
use portico_machinery::connect::DialTarget;
use portico_machinery::{Object, RequestInfo, UserInfo};
use portico_registry::{Attributes, Call, ConnectOutcome, Operation, Target};

use crate::harness::{Harness, object};
use crate::test_doubles::{NoBackends, Recorder};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Mutating admission that changes the options of connections.
fn rewrite(attributes: Attributes<'_>, options: &mut Object) {
    match (attributes.operation, attributes.subresource()) {
        (Operation::Connect, "exec") => {
            options.set(&["command"], ["echo", "a b&c"]);
            options.set(&["container"], "other");
            options.set(&["stdin"], false);
            options.set(&["tty"], true);
        }
        (Operation::Connect, "portforward") => options.set(&["ports"], [80, 81]),
        (Operation::Connect, _) => options.set(&["path"], "/elsewhere"),
        _ => {}
    }
}

async fn connect(harness: &Harness, path: &str, query: &str) -> DialTarget {
    let info = RequestInfo::parse("GET", path, query).unwrap();
    let call = Call {
        user: UserInfo::new("admin", ["system:masters"]),
        target: Target::from_request_info(&info),
        verb: info.verb.clone(),
        query: query.to_owned(),
        ..Call::default()
    };
    match harness.registry.connect(call, &NoBackends).await {
        ConnectOutcome::Dial(dial, _) => dial,
        ConnectOutcome::Answer(answer) => panic!("{path}: {answer:?}"),
    }
}

#[tokio::test]
async fn a_connection_uses_the_options_changed_by_admission() {
    let admission = Arc::new(Recorder::with_change(rewrite));
    let harness = Harness::open_with_admission(admission, Arc::new(AlwaysAllow)).await;
    let addresses = r#","status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}"#;
    assert_eq!(harness.post("/api/v1/nodes", &object("Node", "n", addresses)).await.code, 201);
    let spec =
        r#","spec":{"nodeName":"n","containers":[{"name":"c","image":"i"},{"name":"other","image":"i"}]}"#;
    assert_eq!(harness.post(PODS, &object("Pod", "p", spec)).await.code, 201);
    let query = "container=c&command=sh&stdin=true&stdout=true&x=y";
    let dial = connect(&harness, &format!("{PODS}/p/exec"), query).await;
    assert_eq!(dial.path, "/exec/default/p/other");
    assert_eq!(dial.query, "command=echo&command=a+b%26c&output=1&tty=1");
    let dial = connect(&harness, &format!("{PODS}/p/portforward"), "ports=22").await;
    assert_eq!(dial.query, "port=80%2C81");
    let dial = connect(&harness, "/api/v1/nodes/n/proxy/healthz", "a=b").await;
    assert_eq!((dial.path.as_str(), dial.query.as_str()), ("/elsewhere", "a=b"));
}
