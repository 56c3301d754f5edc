//! Certificates that are asked for, approved and signed; a kubelet from its bootstrap token to its own node; and nothing more.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_tests::http::Http;
use portico_tests::pki::Pair;
use portico_tests::tools::{output, there_is};
use portico_tests::{Launch, Portico, eventually};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const CLIENT: [&str; 2] = ["digital signature", "client auth"];
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// A request as PEM, and the key of what it asks for.
fn asked(name: &str, groups: &[&str], hosts: &[&str]) -> (String, String) {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = DistinguishedName::new();
    let types = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    for (kind, group) in types.into_iter().zip(groups) {
        params.distinguished_name.push(kind, *group);
    }
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    (params.serialize_request(&key).unwrap().pem().unwrap(), key.serialize_pem())
}

fn request(name: &str, pem: &str, signer: &str, usages: &[&str]) -> Value {
    json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": STANDARD.encode(pem), "signerName": signer, "usages": usages}})
}

async fn ask(http: &Http, name: &str, pem: &str, signer: &str, usages: &[&str]) {
    let answer = http.post(REQUESTS, &request(name, pem, signer, usages)).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn decide(admin: &Http, name: &str, verdict: &str) {
    let mut request = admin.get(&format!("{REQUESTS}/{name}")).await.json();
    request["status"]["conditions"] = json!([{"type": verdict, "status": "True", "reason": "Test"}]);
    let answer = admin.put(&format!("{REQUESTS}/{name}/approval"), &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// The certificate of a request, once it is there.
async fn certificate(admin: &Http, name: &str) -> String {
    let issued = eventually("the request is signed", || async {
        let request = admin.get(&format!("{REQUESTS}/{name}")).await.json();
        request["status"]["certificate"].as_str().map(str::to_owned).ok_or_else(|| request.to_string())
    });
    String::from_utf8(STANDARD.decode(issued.await).unwrap()).unwrap()
}

/// The condition of this type, once it is there.
async fn condition(admin: &Http, name: &str, kind: &str) -> Value {
    eventually("the request has its condition", || async {
        let request = admin.get(&format!("{REQUESTS}/{name}")).await.json();
        let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|c| c["type"] == kind).ok_or_else(|| request.to_string())
    })
    .await
}

async fn name_of(http: &Http) -> Result<Value, String> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = http.post(WHO, &review).await;
    if answer.status == 201 { Ok(answer.json()["status"]["userInfo"].clone()) } else { Err(answer.text()) }
}

async fn create(admin: &Http, path: &str, body: &Value) {
    let answer = admin.post(path, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn bootstrap_token(admin: &Http, id: &str, expiration: &str) {
    let mut data = json!({"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true", "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token"});
    if !expiration.is_empty() {
        data["expiration"] = json!(expiration);
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": format!("bootstrap-token-{id}")}, "stringData": data});
    create(admin, SECRETS, &secret).await;
}

/// The bindings of kubeadm: who bootstraps may ask, and is approved; nodes renew their own certificates.
async fn kubeadm_bindings(admin: &Http) {
    let group = "system:bootstrappers:kubeadm:default-node-token";
    for (name, role, group) in [
        ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", group),
        (
            "kubeadm:node-autoapprove-bootstrap",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            group,
        ),
        (
            "kubeadm:node-autoapprove-certificate-rotation",
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            "system:nodes",
        ),
    ] {
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}]});
        create(admin, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    }
}

fn node(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
}

async fn for_kubelets() -> Portico {
    Launch::new()
        .args(&["--enable-bootstrap-token-auth", "--authorization-mode", "Node,RBAC"])
        .args(&["--enable-admission-plugins", "NodeRestriction"])
        .args(&["--controllers", "*,bootstrap-signer-controller,token-cleaner-controller"])
        .start()
        .await
}

/// A kubelet whose client certificate came by way of a bootstrap token.
async fn kubelet(portico: &Portico, name: &str) -> Http {
    let user = format!("system:node:{name}");
    let bootstrapper = portico.anyone().with_token("abcdef.0123456789abcdef");
    let (pem, key) = asked(&user, &["system:nodes"], &[]);
    eventually("who bootstraps may ask", || async {
        let answer = bootstrapper.post(REQUESTS, &request(name, &pem, KUBELET_CLIENT, &CLIENT)).await;
        if answer.status == 201 || answer.status == 409 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let admin = portico.admin();
    let approved = condition(&admin, name, "Approved").await;
    assert_eq!(approved["reason"], "AutoApproved", "{approved}");
    let cert = certificate(&admin, name).await;
    let kubelet = portico.with_certificate(&Pair { cert, key });
    let who = name_of(&kubelet).await.unwrap();
    assert_eq!(who["username"], user);
    assert_eq!(who["groups"], json!(["system:nodes", "system:authenticated"]));
    kubelet
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_comes_in_with_a_token_and_keeps_to_its_node() {
    let portico = for_kubelets().await;
    let admin = portico.admin();
    bootstrap_token(&admin, "abcdef", "").await;
    kubeadm_bindings(&admin).await;
    let kubelet = kubelet(&portico, "n1").await;
    create(&kubelet, "/api/v1/nodes", &node("n1", json!({"kubernetes.io/hostname": "n1"}))).await;
    let refused = kubelet.post("/api/v1/nodes", &node("n2", json!({}))).await.status_body(403, "Forbidden");
    let why = "nodes \"n2\" is forbidden: node \"n1\" is not allowed to modify node \"n2\"";
    assert_eq!(refused["message"], why);
    let labels = json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}});
    let refused = kubelet.merge("/api/v1/nodes/n1", &labels).await.status_body(403, "Forbidden");
    let why =
        "nodes \"n1\" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/control-plane";
    assert_eq!(refused["message"], why);
    let status = json!({"status": {"phase": "Running"}});
    assert_eq!(kubelet.merge("/api/v1/nodes/n1/status", &status).await.status, 200);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}});
    let refused = kubelet.post("/api/v1/namespaces/default/pods", &pod).await.status_body(403, "Forbidden");
    assert!(
        refused["message"].as_str().unwrap().ends_with("node \"n1\" can only create mirror pods"),
        "{refused}"
    );

    // Its serving certificate is for an administrator to approve.
    let (pem, _) = asked("system:node:n1", &["system:nodes"], &["n1.example", "10.0.0.1"]);
    let usages = ["digital signature", "server auth"];
    ask(&kubelet, "n1-serving", &pem, KUBELET_SERVING, &usages).await;
    let (foreign, _) = asked("system:node:n2", &["system:nodes"], &["n2.example"]);
    let foreign = request("n2-serving", &foreign, KUBELET_SERVING, &usages);
    let refused = kubelet.post(REQUESTS, &foreign).await.status_body(403, "Forbidden");
    assert!(
        refused["message"].as_str().unwrap().ends_with("can only create a node CSR with CN=system:node:n1")
    );
    decide(&admin, "n1-serving", "Approved").await;
    let serving = certificate(&admin, "n1-serving").await;
    let info = portico_kit::pki::CertInfo::of_pem("serving", &serving).unwrap();
    assert_eq!(info.dns_names, ["n1.example"]);
    assert!(info.server_auth && !info.client_auth);

    // It renews its own client certificate.
    let (pem, _) = asked("system:node:n1", &["system:nodes"], &[]);
    ask(&kubelet, "n1-again", &pem, KUBELET_CLIENT, &CLIENT).await;
    let approved = condition(&admin, "n1-again", "Approved").await;
    assert_eq!(
        approved["message"],
        "Auto approving self kubelet client certificate after SubjectAccessReview."
    );
    certificate(&admin, "n1-again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_info_is_signed_with_tokens_and_expired_ones_go() {
    let portico = for_kubelets().await;
    let admin = portico.admin();
    bootstrap_token(&admin, "abcdef", "2100-01-01T00:00:00Z").await;
    let info = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-info"},
        "data": {"kubeconfig": "x"}});
    eventually("the namespace kube-public is there", || async {
        let answer = admin.post("/api/v1/namespaces/kube-public/configmaps", &info).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let signed = |signed: bool| {
        let admin = admin.clone();
        async move {
            let map = admin.get("/api/v1/namespaces/kube-public/configmaps/cluster-info").await.json();
            let is = map["data"]["jws-kubeconfig-abcdef"].is_string();
            if is == signed { Ok(()) } else { Err(map.to_string()) }
        }
    };
    eventually("the ConfigMap is signed", || signed(true)).await;
    bootstrap_token(&admin, "fedcba", "2020-01-01T00:00:00Z").await;
    let expired = portico.anyone().with_token("fedcba.0123456789abcdef");
    assert!(name_of(&expired).await.is_err());
    eventually("the expired token is gone", || async {
        let answer = admin.get(&format!("{SECRETS}/bootstrap-token-fedcba")).await;
        if answer.status == 404 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    assert_eq!(admin.delete(&format!("{SECRETS}/bootstrap-token-abcdef")).await.status, 200);
    eventually("its signature goes with a token", || signed(false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_request_is_a_user_over_https_and_a_wrong_one_fails() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let (pem, key) = asked("jane", &["devs", "ops"], &[]);
    ask(&admin, "jane", &pem, API_CLIENT, &CLIENT).await;
    decide(&admin, "jane", "Approved").await;
    let pair = Pair { cert: certificate(&admin, "jane").await, key };
    let who = name_of(&portico.with_certificate(&pair)).await.unwrap();
    assert_eq!(
        (who["username"].as_str(), &who["groups"]),
        (Some("jane"), &json!(["ops", "devs", "system:authenticated"]))
    );

    // Approved again: the same; denied now: refused.
    let mut again = admin.get(&format!("{REQUESTS}/jane")).await.json();
    assert_eq!(admin.put(&format!("{REQUESTS}/jane/approval"), &again).await.status, 200);
    let conditions = again["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({"type": "Denied", "status": "True"}));
    admin.put(&format!("{REQUESTS}/jane/approval"), &again).await.status_body(422, "Invalid");

    let (masters, _) = asked("root", &["system:masters"], &[]);
    let refused = admin.post(REQUESTS, &request("masters", &masters, API_CLIENT, &CLIENT)).await;
    let refused = refused.status_body(403, "Forbidden");
    assert!(refused["message"].as_str().unwrap().contains("signer with system:masters group is not allowed"));
    let garbage = request(
        "garbage",
        "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
        API_CLIENT,
        &CLIENT,
    );
    admin.post(REQUESTS, &garbage).await.status_body(422, "Invalid");

    for (name, signer, user, usages, why) in [
        (
            "usages",
            API_CLIENT,
            "a",
            &["server auth"][..],
            "invalid usage for client certificate: server auth",
        ),
        ("cn", KUBELET_CLIENT, "n1", &CLIENT, "subject common name does not begin with system:node:"),
    ] {
        let (pem, _) = asked(user, &["system:nodes"], &[]);
        ask(&admin, name, &pem, signer, usages).await;
        decide(&admin, name, "Approved").await;
        let failed = condition(&admin, name, "Failed").await;
        assert_eq!(
            (failed["reason"].as_str(), failed["message"].as_str()),
            (Some("SignerValidationFailure"), Some(why))
        );
    }

    // What nobody signs, and what is denied, stays without a certificate after later ones are signed.
    for (name, signer, verdict) in
        [("other", "example.com/mine", "Approved"), ("denied", API_CLIENT, "Denied")]
    {
        ask(&admin, name, &pem, signer, &CLIENT).await;
        decide(&admin, name, verdict).await;
    }
    ask(&admin, "later", &pem, API_CLIENT, &CLIENT).await;
    decide(&admin, "later", "Approved").await;
    certificate(&admin, "later").await;
    for name in ["other", "denied"] {
        let request = admin.get(&format!("{REQUESTS}/{name}")).await.json();
        assert!(request["status"]["certificate"].is_null(), "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_facade_of_its_own_knows_who_was_signed_for_also_after_a_restart() {
    let mut server = Launch::server().start().await;
    let facade = Launch::facade(&server).start().await;
    let admin = facade.admin();
    eventually("the facade serves objects", || async {
        let answer = admin.get(REQUESTS).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let (pem, key) = asked("jane", &[], &[]);
    ask(&admin, "jane", &pem, API_CLIENT, &CLIENT).await;
    decide(&admin, "jane", "Approved").await;
    let jane = facade.with_certificate(&Pair { cert: certificate(&admin, "jane").await, key });
    assert_eq!(name_of(&jane).await.unwrap()["username"], "jane");
    assert!(server.stop().await.success());
    server.restart().await;
    eventually("the certificate is good after a restart", || async {
        match name_of(&jane).await {
            Ok(who) if who["username"] == "jane" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_given_ca_signs_and_is_trusted_only_as_a_client_ca() {
    let (launch, folder) = Launch::new().prepared();
    let own = portico_kit::pki::Authority::load_or_create(&folder, "given", "given-ca").unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let flags = [
        "--cluster-signing-cert-file".to_owned(),
        path("given.crt"),
        "--cluster-signing-key-file".to_owned(),
        path("given.key"),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let portico = launch.args(&flags).args(&["--cluster-signing-duration", "1h"]).start().await;
    let admin = portico.admin();
    let (pem, key) = asked("jane", &[], &[]);
    ask(&admin, "jane", &pem, API_CLIENT, &CLIENT).await;
    decide(&admin, "jane", "Approved").await;
    let cert = certificate(&admin, "jane").await;
    let info = portico_kit::pki::CertInfo::of_pem("jane", &cert).unwrap();
    assert_eq!((info.issuer.as_str(), info.not_after - info.not_before), ("given-ca", 3900));
    assert!(own.cert_pem().starts_with("-----BEGIN CERTIFICATE-----"));
    let refused = name_of(&portico.with_certificate(&Pair { cert, key })).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(!portico.data().join("certs").join("signing-ca.crt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ca_that_makes_facades_signs_no_requests() {
    let mut before = Portico::start().await;
    let certs = before.data().join("certs");
    assert!(before.stop().await.success());
    let path = |name: &str| certs.join(name).to_str().unwrap().to_owned();
    let files = ["--cluster-signing-cert-file", &path("internal-ca.crt"), "--cluster-signing-key-file"];
    let launch = Launch::new().on_data_of(&before).args(&files).args(&[&path("internal-ca.key")]);
    let (code, out, err) = launch.run().await;
    assert!(code.is_some_and(|code| code != 0), "{out}{err}");
    assert!(err.contains("the internal CA cannot sign certificate requests"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_cas_reach_backends_as_one_text_whatever_their_file_ends_with() {
    let (launch, folder) = Launch::new().prepared();
    let ca = portico_kit::pki::Authority::create("clients").unwrap();
    let file = folder.join("clients.crt");
    std::fs::write(&file, ca.cert_pem().trim_end()).unwrap();
    let portico = launch.args(&["--client-ca-file", file.to_str().unwrap()]).start().await;
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let text = eventually("the ConfigMap is written", async || {
        let shown = portico.admin().get(path).await.json();
        shown["data"]["client-ca-file"].as_str().map(str::to_owned).ok_or(shown)
    })
    .await;
    assert_eq!(text.matches("BEGIN CERTIFICATE").count(), 2, "{text}");
    assert!(text.lines().all(|line| line.len() <= 64), "each marker has a line of its own: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_approves_and_denies_and_uses_what_it_got() {
    if !there_is("kubectl") {
        return portico_tests::skipped("kubectl is not installed");
    }
    let portico = Portico::start().await;
    let admin = portico.admin();
    let kubectl = |args: &[&str]| {
        let mut command = std::process::Command::new("kubectl");
        command.arg("--kubeconfig").arg(portico.data().join("admin.kubeconfig"));
        command.arg("--cache-dir").arg(portico.folder().join("kubectl-cache")).env("HOME", portico.folder());
        let done = output(command.args(args));
        (
            done.status.success(),
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr),
        )
    };
    let (pem, key) = asked("jane", &[], &[]);
    for name in ["jane", "denied"] {
        ask(&admin, name, &pem, API_CLIENT, &CLIENT).await;
    }
    let (done, text) = kubectl(&["certificate", "approve", "jane"]);
    assert!(done && text.contains("certificatesigningrequest.certificates.k8s.io/jane approved"), "{text}");
    assert!(kubectl(&["certificate", "approve", "jane"]).0);
    let (done, text) = kubectl(&["certificate", "deny", "denied"]);
    assert!(done && text.contains("denied denied"), "{text}");
    let cert = certificate(&admin, "jane").await;
    let (cert_file, key_file) = (portico.folder().join("jane.crt"), portico.folder().join("jane.key"));
    std::fs::write(&cert_file, cert).unwrap();
    std::fs::write(&key_file, key).unwrap();
    let (ca, server) = (portico.folder().join("ca.crt"), format!("https://{}", portico.https()));
    std::fs::write(&ca, portico.ca()).unwrap();
    let mut command = std::process::Command::new("kubectl");
    command.env("HOME", portico.folder()).env("KUBECONFIG", "/dev/null");
    command.args(["--server", &server, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]);
    for (flag, file) in
        [("--certificate-authority", &ca), ("--client-certificate", &cert_file), ("--client-key", &key_file)]
    {
        command.arg(flag).arg(file);
    }
    let who = output(&mut command);
    assert_eq!(String::from_utf8_lossy(&who.stdout), "jane", "{}", String::from_utf8_lossy(&who.stderr));
    let (_, table) = kubectl(&["get", "csr"]);
    assert!(table.contains("Approved,Issued") && table.contains("Denied"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_publishes_what_its_certificate_is_checked_with() {
    let portico = Launch::new()
        .args(&["--feature-gates", "ClusterTrustBundle=true"])
        .args(&["--runtime-config", "certificates.k8s.io/v1beta1/clustertrustbundles=true"])
        .start()
        .await;
    let admin = portico.admin();
    let bundles = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles";
    eventually("the bundle is there", || async {
        let all = admin.get(bundles).await.json();
        let name = all["items"][0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let right = name.starts_with("kubernetes.io:kube-apiserver-serving:")
            && all["items"][0]["spec"]["trustBundle"].as_str().map(str::as_bytes) == Some(portico.ca());
        if right { Ok(()) } else { Err(all.to_string()) }
    })
    .await;
}
