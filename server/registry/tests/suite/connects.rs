//! Connections whose options admission changes: the changed ones count.

use std::sync::Arc;

use portico_auth::authz::AlwaysAllow;
use portico_machinery::connect::{Dial, Security};
use portico_machinery::route::Target as RouteTarget;
use portico_machinery::{Object, RequestInfo, UserInfo};
use portico_registry::{
    Admission, Attributes, Call, Charged, Connected, Objects, Operation, Pending, Registered, Target, Write,
};
use portico_store::{Operation as StoreOperation, Txn};

use crate::harness::{Harness, object};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Changes the options of connections.
struct Rewriting;

impl Admission for Rewriting {
    fn mutate<'a>(
        &'a self,
        _objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a mut Object>,
        _old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        let options = new.filter(|_| attributes.operation == Operation::Connect)?;
        match attributes.subresource() {
            "exec" => {
                options.set(&["command"], ["echo", "a b&c"]);
                options.set(&["container"], "other");
                options.set(&["stdin"], false);
                options.set(&["tty"], true);
            }
            "portforward" => options.set(&["ports"], [80, 81]),
            _ => options.set(&["path"], "/elsewhere"),
        }
        None
    }

    fn validate<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _new: Option<&'a Object>,
        _old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        None
    }

    fn check_quota<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _write: Write<'a>,
    ) -> Option<Pending<'a, ()>> {
        None
    }

    fn commit<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _write: Write<'a>,
        _txn: &'a Txn,
        _checks: &'a [StoreOperation],
    ) -> Option<Pending<'a, Charged>> {
        None
    }
}

struct NoBackends;

impl Registered for NoBackends {
    fn backend_of(&self, _: &str, _: &str, _: Option<u16>) -> Option<(Vec<RouteTarget>, Security)> {
        None
    }
}

async fn connect(harness: &Harness, path: &str, query: &str) -> Dial {
    let info = RequestInfo::parse("GET", path, query).unwrap();
    let call = Call {
        user: UserInfo::new("admin", ["system:masters"]),
        target: Target::of(&info),
        verb: info.verb.clone(),
        query: query.to_owned(),
        ..Call::default()
    };
    match harness.registry.connect(call, &NoBackends).await {
        Connected::Dial(dial, _) => dial,
        Connected::Answered(answer) => panic!("{path}: {answer:?}"),
    }
}

#[tokio::test]
async fn options_that_admission_changes_are_those_of_the_connection() {
    let harness = Harness::open_asking(Arc::new(Rewriting), Arc::new(AlwaysAllow)).await;
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
