//! Upstream's table of requests (node_authorizer_test), and tests of adding and removing edges.

use std::sync::Arc;

use portico_machinery::user::NODES;
use portico_machinery::{GroupResource, Object, UserInfo};

use super::super::{Decision, Verdict};
use super::*;

fn object(json: &str) -> Object {
    Object::from_json(json.as_bytes()).unwrap()
}

fn pod(name: &str, node: &str) -> Object {
    object(&format!(
        r#"{{"metadata":{{"namespace":"ns0","name":"{name}"}},"spec":{{"nodeName":"{node}",
        "serviceAccountName":"account-{name}","imagePullSecrets":[{{"name":"pull"}}],
        "initContainers":[{{"env":[{{"name":"A","valueFrom":{{"secretKeyRef":{{"name":"env-{name}"}}}}}}]}}],
        "containers":[{{"envFrom":[{{"configMapRef":{{"name":"map-{name}"}}}},{{"secretRef":{{"name":"shared"}}}}]}}],
        "ephemeralContainers":[{{"env":[{{"name":"A","valueFrom":{{"configMapKeyRef":{{"name":"late-{name}"}}}}}}]}}],
        "volumes":[{{"name":"v","secret":{{"secretName":"volume-{name}"}}}},
          {{"name":"c","persistentVolumeClaim":{{"claimName":"claim-{name}"}}}},
          {{"name":"e","ephemeral":{{}}}},
          {{"name":"p","projected":{{"sources":[{{"configMap":{{"name":"root-ca"}}}}]}}}},
          {{"name":"f","flexVolume":{{"secretRef":{{"name":"flex-{name}"}}}}}}],
        "resourceClaims":[{{"name":"x","resourceClaimName":"own-{name}"}},
          {{"name":"y","resourceClaimTemplateName":"template-{name}"}},
          {{"name":"z","resourceClaimTemplateName":"never-{name}"}}]}},
        "status":{{"resourceClaimStatuses":[{{"name":"y","resourceClaimName":"made-{name}"}}],
          "extendedResourceClaimStatus":{{"resourceClaimName":"extended-{name}"}}}}}}"#
    ))
}

fn volume(name: &str, claim: &str) -> Object {
    object(&format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"claimRef":{{"namespace":"ns0","name":"{claim}"}},
        "csi":{{"nodeStageSecretRef":{{"namespace":"ns0","name":"stage-{name}"}},
                "controllerPublishSecretRef":{{"namespace":"ns0","name":"publish-{name}"}}}}}}}}"#
    ))
}

fn named(name: &str, namespace: &str, node: &str) -> Object {
    object(&format!(
        r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}"}},"spec":{{"nodeName":"{node}"}}}}"#
    ))
}

fn put(graph: &mut Graph, source: EdgeSource, object: &Object) {
    graph.set(source.vertex(object.namespace(), object.name()), source.fact(object));
}

fn cluster() -> Graph {
    let mut graph = Graph::default();
    for n in 0..2 {
        let node = format!("node{n}");
        put(&mut graph, EdgeSource::Pods, &pod(&format!("pod{n}"), &node));
        put(&mut graph, EdgeSource::Volumes, &volume(&format!("pv{n}"), &format!("claim-pod{n}")));
        put(&mut graph, EdgeSource::Attachments, &named(&format!("attachment{n}"), "", &node));
        put(&mut graph, EdgeSource::Slices, &named(&format!("slice{n}"), "", &node));
        put(&mut graph, EdgeSource::CertificateRequests, &named(&format!("request{n}"), "ns0", &node));
    }
    graph
}

fn authorizer(graph: Graph, features: NodeFeatures) -> NodeAuthorizer {
    NodeAuthorizer::new(NodeRelations::Local { graph: Arc::new(RwLock::new(graph)), features })
}

/// Request as `verb group/resource[/subresource] namespace/name [selector]`; `core` for the core group, `-` for an empty value.
fn decide(node: &NodeAuthorizer, user: &str, check: &str) -> Decision {
    let mut words = check.split(' ');
    let verb = words.next().unwrap();
    let mut path = words.next().unwrap().split('/');
    let group = path.next().filter(|group| *group != "core").unwrap_or_default();
    let resource = GroupResource::new(group, path.next().unwrap());
    let (namespace, name) = words.next().unwrap_or("-/-").split_once('/').unwrap();
    let or_empty = |word: &str| if word == "-" { String::new() } else { word.to_owned() };
    let user = UserInfo::new(user, [NODES]);
    let mut attributes = Attributes::resource(user, verb, &resource, &or_empty(namespace), &or_empty(name));
    let request = Arc::make_mut(&mut attributes.request);
    request.subresource = path.next().unwrap_or_default().to_owned();
    request.field_selector = words.next().unwrap_or_default().to_owned();
    node.authorize(&attributes)
}

/// Request, true if node0 is allowed, and the reason if there is one.
#[rustfmt::skip]
const REQUESTS: &[(&str, bool, &str)] = &[
    ("get core/configmaps ns0/map-pod0", true, ""),
    ("get core/configmaps ns0/late-pod0", true, ""),
    ("get core/configmaps ns0/root-ca", true, ""),
    ("get core/configmaps ns1/map-pod0", false, "no relationship found between node 'node0' and this object"),
    ("get core/configmaps ns0/map-pod1", false, "no relationship found between node 'node0' and this object"),
    ("get core/secrets ns0/volume-pod0", true, ""),
    ("get core/secrets ns0/env-pod0", true, ""),
    ("get core/secrets ns0/flex-pod0", true, ""),
    ("get core/secrets ns0/pull", true, ""),
    ("get core/secrets ns0/shared", true, ""),
    ("list core/secrets ns0/volume-pod0", true, ""),
    ("watch core/secrets ns0/volume-pod0", true, ""),
    ("list core/secrets ns0/-", false, "No Object name found"),
    ("watch core/secrets ns0/-", false, "No Object name found"),
    ("list core/secrets -/volume-pod0", false, "can only read namespaced object of this type"),
    ("get core/secrets/status ns0/volume-pod0", false, "cannot read subresource"),
    ("delete core/secrets ns0/volume-pod0", false, "can only read resources of this type"),
    ("get core/secrets ns0/volume-pod1", false, "no relationship found between node 'node0' and this object"),
    ("get core/secrets ns0/stage-pv0", true, ""),
    ("get core/secrets ns0/publish-pv0", false, "no relationship found between node 'node0' and this object"),
    ("get core/secrets ns0/stage-pv1", false, "no relationship found between node 'node0' and this object"),
    ("get core/persistentvolumeclaims ns0/claim-pod0", true, ""),
    ("get core/persistentvolumeclaims ns0/pod0-e", true, ""),
    ("get core/persistentvolumeclaims ns0/claim-pod1", false, "no relationship found between node 'node0' and this object"),
    ("list core/persistentvolumeclaims ns0/claim-pod0", false, "can only get individual resources of this type"),
    ("patch core/persistentvolumeclaims/status ns0/claim-pod0", true, ""),
    ("get core/persistentvolumeclaims/status ns0/claim-pod0", false, "can only get/update/patch this type"),
    ("get core/persistentvolumes -/pv0", true, ""),
    ("get core/persistentvolumes -/pv1", false, "no relationship found between node 'node0' and this object"),
    ("get core/persistentvolumes/status -/pv0", false, "cannot get subresource"),
    ("get resource.k8s.io/resourceclaims ns0/own-pod0", true, ""),
    ("get resource.k8s.io/resourceclaims ns0/made-pod0", true, ""),
    ("get resource.k8s.io/resourceclaims ns0/extended-pod0", true, ""),
    ("get resource.k8s.io/resourceclaims ns0/template-pod0", false, "no relationship found between node 'node0' and this object"),
    ("get resource.k8s.io/resourceclaims ns0/own-pod1", false, "no relationship found between node 'node0' and this object"),
    ("get storage.k8s.io/volumeattachments -/attachment0", true, ""),
    ("get storage.k8s.io/volumeattachments -/attachment1", false, "no relationship found between node 'node0' and this object"),
    ("create core/serviceaccounts/token ns0/account-pod0", true, ""),
    ("create core/serviceaccounts/token ns0/account-pod1", false, "no relationship found between node 'node0' and this object"),
    ("create core/serviceaccounts ns0/account-pod0", false, "can only create token subresource of serviceaccount"),
    ("update core/serviceaccounts/token ns0/account-pod0", false, "can only create tokens for individual service accounts"),
    ("get core/serviceaccounts ns0/account-pod0", true, ""),
    ("list core/serviceaccounts ns0/account-pod0", false, "can only create tokens for individual service accounts"),
    ("get coordination.k8s.io/leases foo/node0", false, "can only access leases in the \"kube-node-lease\" system namespace"),
    ("create coordination.k8s.io/leases foo/node0", false, "can only access leases in the \"kube-node-lease\" system namespace"),
    ("update coordination.k8s.io/leases kube-node-lease/node1", false, "can only access node lease with the same name as the requesting node"),
    ("list coordination.k8s.io/leases kube-node-lease/-", false, "can only get, create, update, patch, or delete a node lease"),
    ("create coordination.k8s.io/leases kube-node-lease/-", true, ""),
    ("patch coordination.k8s.io/leases kube-node-lease/node0", true, ""),
    ("delete coordination.k8s.io/leases kube-node-lease/node0", true, ""),
    ("get storage.k8s.io/csinodes/csiDrivers -/node0", false, "cannot authorize CSINode subresources"),
    ("get storage.k8s.io/csinodes -/node1", false, "can only access CSINode with the same name as the requesting node"),
    ("watch storage.k8s.io/csinodes -/-", false, "can only get, create, update, patch, or delete a CSINode"),
    ("get storage.k8s.io/csinodes -/node0", true, ""),
    ("create storage.k8s.io/csinodes -/-", true, ""),
    ("get resource.k8s.io/resourceslices/status -/slice0", false, "cannot authorize ResourceSlice subresources"),
    ("get resource.k8s.io/resourceslices -/slice1", false, "no relationship found between node 'node0' and this object"),
    ("delete resource.k8s.io/resourceslices -/slice0", true, ""),
    ("create resource.k8s.io/resourceslices -/slice9", true, ""),
    ("list resource.k8s.io/resourceslices -/- spec.nodeName==node0", true, ""),
    ("deletecollection resource.k8s.io/resourceslices -/- spec.nodeName=node0", true, ""),
    ("list resource.k8s.io/resourceslices -/- spec.nodeName=node1", false, "can only list/watch/deletecollection resourceslices with nodeName field selector"),
    ("watch resource.k8s.io/resourceslices -/-", false, "can only list/watch/deletecollection resourceslices with nodeName field selector"),
    ("get core/pods ns0/pod0", true, ""),
    ("get core/pods ns0/pod1", false, "no relationship found between node 'node0' and this object"),
    ("list core/pods -/- spec.nodeName=node0", true, ""),
    ("watch core/pods -/- spec.nodeName==node0,status.phase!=Failed", true, ""),
    ("list core/pods -/- spec.nodeName!=node0", false, "can only list/watch pods with spec.nodeName field selector"),
    ("list core/pods ns0/pod0", true, ""),
    ("watch core/pods ns0/pod1", false, "no relationship found between node 'node0' and this object"),
    ("list core/pods -/-", false, "can only list/watch pods with spec.nodeName field selector"),
    ("create core/pods ns0/-", true, ""),
    ("create core/pods/proxy ns0/-", false, ""),
    ("delete core/pods ns0/pod1", true, ""),
    ("update core/pods ns0/pod0", false, ""),
    ("patch core/pods/status ns0/pod1", true, ""),
    ("get core/pods/status ns0/pod0", false, ""),
    ("create core/pods/eviction ns0/pod1", true, ""),
    ("get core/nodes -/node0", true, ""),
    ("list core/nodes -/node0", true, ""),
    ("get core/nodes -/node1", false, "node 'node0' cannot read 'node1', only its own Node object"),
    ("watch core/nodes -/-", false, "node 'node0' cannot read all nodes, only its own Node object"),
    ("create core/nodes -/-", true, ""),
    ("patch core/nodes/status -/node1", true, ""),
    ("delete core/nodes -/node0", false, ""),
    ("get core/nodes/proxy -/node0", false, ""),
    ("create core/events ns0/-", true, ""),
    ("list core/services -/-", true, ""),
    ("get certificates.k8s.io/podcertificaterequests ns0/request0", true, ""),
    ("get certificates.k8s.io/podcertificaterequests ns0/request1", false, "no relationship found between node 'node0' and this object"),
    ("create certificates.k8s.io/podcertificaterequests ns0/-", true, ""),
    ("list certificates.k8s.io/podcertificaterequests ns0/request0", false, "can only list/watch podcertificaterequests with nodeName field selector"),
    ("watch certificates.k8s.io/podcertificaterequests ns0/- spec.nodeName=node0", true, ""),
    ("delete certificates.k8s.io/podcertificaterequests ns0/request0", false, "nodes may not delete podcertificaterequests"),
    ("update certificates.k8s.io/podcertificaterequests/status ns0/request0", false, "nodes may not access the status subresource of PodCertificateRequests"),
    ("list certificates.k8s.io/clustertrustbundles -/-", true, ""),
];

const EVERYTHING: NodeFeatures = NodeFeatures { pod_certificates: true, trust_bundles: true };

#[test]
fn decisions_are_those_of_upstream() {
    let node = authorizer(cluster(), EVERYTHING);
    for (question, may, reason) in REQUESTS {
        let decision = decide(&node, "system:node:node0", question);
        assert_eq!((decision.is_allowed(), &*decision.reason), (*may, *reason), "{question}");
        let stranger = decide(&node, "alice", question);
        assert_eq!(stranger, Decision::no_opinion(""), "{question}");
    }
    let nameless = decide(&node, "system:node:", "get core/nodes -/x");
    assert_eq!(nameless.reason, "unknown node for user \"system:node:\"");
}

#[test]
fn an_empty_graph_and_disabled_features_allow_nothing() {
    let node = authorizer(Graph::default(), NodeFeatures::default());
    for question in [
        "get core/secrets ns0/shared",
        "get core/pods ns0/pod0",
        "list certificates.k8s.io/clustertrustbundles -/-",
        "create certificates.k8s.io/podcertificaterequests ns0/-",
    ] {
        assert!(!decide(&node, "system:node:node0", question).is_allowed(), "{question}");
    }
    assert!(
        decide(&node, "system:node:new", "get core/nodes -/new").is_allowed(),
        "a node before it is registered"
    );
}

#[test]
fn without_a_graph_only_decisions_that_need_it_are_delegated() {
    let remote = NodeAuthorizer::new(NodeRelations::Remote);
    for (question, verdict) in [
        ("get core/secrets ns0/shared", Verdict::Delegate),
        ("get core/pods ns0/pod0", Verdict::Delegate),
        ("list certificates.k8s.io/clustertrustbundles -/-", Verdict::Delegate),
        ("list core/secrets ns0/-", Verdict::NoOpinion),
        ("update coordination.k8s.io/leases kube-node-lease/node0", Verdict::Allow),
        ("list core/pods -/- spec.nodeName=node0", Verdict::Allow),
        ("get apps/deployments ns0/x", Verdict::NoOpinion),
    ] {
        assert_eq!(decide(&remote, "system:node:node0", question).verdict, verdict, "{question}");
    }
}

#[test]
fn rules_of_nodes_cannot_be_listed() {
    let node = NodeAuthorizer::new(NodeRelations::Remote);
    let rules = node.rules_for(&UserInfo::new("system:node:a", [NODES]), "ns");
    assert!(rules.incomplete && rules.rules.is_empty());
    assert_eq!(rules.errors, ["node authorizer does not support user rule resolution"]);
    assert_eq!(node.rules_for(&UserInfo::new("alice", [NODES]), "ns"), UserRules::default());
}

#[test]
fn edges_are_removed_with_the_last_object_that_defined_them() {
    let mut graph = cluster();
    let shared = Vertex::new(VertexKind::Secret, "ns0", "shared");
    put(&mut graph, EdgeSource::Pods, &pod("pod2", "node0"));
    graph.set(EdgeSource::Pods.vertex("ns0", "pod0"), None);
    assert!(graph.is_related("node0", &shared), "pod2 still refers to the secret");
    graph.set(EdgeSource::Pods.vertex("ns0", "pod2"), None);
    assert!(!graph.is_related("node0", &shared));
    assert!(graph.is_related("node1", &shared));
    assert!(
        !graph.is_related("node0", &Vertex::new(VertexKind::Volume, "", "pv0")),
        "no pod of the node uses the claim"
    );
    for source in EdgeSource::ALL {
        graph.replace(source, []);
    }
    assert!(graph.is_empty(), "{graph:?}");
}

#[test]
fn a_pod_counts_once_bound_and_a_mirror_pod_grants_only_access_to_itself() {
    let mut graph = Graph::default();
    put(&mut graph, EdgeSource::Pods, &pod("pod0", ""));
    assert!(graph.is_empty());
    let mut mirror = pod("pod0", "node0");
    mirror.set(&["metadata", "annotations", "kubernetes.io/config.mirror"], "x");
    put(&mut graph, EdgeSource::Pods, &mirror);
    assert!(graph.is_related("node0", &Vertex::new(VertexKind::Pod, "ns0", "pod0")));
    assert!(!graph.is_related("node0", &Vertex::new(VertexKind::Secret, "ns0", "shared")));
}
