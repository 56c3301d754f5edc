//! CertificateSigningRequests: requested, approved and signed; a kubelet from its bootstrap token to
//! its node; and refused requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_tests::http::Http;
use portico_tests::pki::CertPair;
use portico_tests::tools::{is_installed, output};
use portico_tests::{Launch, Portico, eventually};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const SELF_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const CLIENT: [&str; 2] = ["digital signature", "client auth"];
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// Returns a request as PEM, and its private key.
fn certificate_request(name: &str, groups: &[&str], hosts: &[&str]) -> (String, String) {
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

async fn create_request(http: &Http, name: &str, pem: &str, signer: &str, usages: &[&str]) {
    let answer = http.post(REQUESTS, &request(name, pem, signer, usages)).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn decide(admin: &Http, name: &str, verdict: &str) {
    let mut request = admin.get(&format!("{REQUESTS}/{name}")).await.json();
    request["status"]["conditions"] = json!([{"type": verdict, "status": "True", "reason": "Test"}]);
    let answer = admin.put(&format!("{REQUESTS}/{name}/approval"), &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Waits for the certificate of a request.
async fn certificate(admin: &Http, name: &str) -> String {
    let issued = eventually("the request is signed", || async {
        let request = admin.get(&format!("{REQUESTS}/{name}")).await.json();
        request["status"]["certificate"].as_str().map(str::to_owned).ok_or_else(|| request.to_string())
    });
    String::from_utf8(STANDARD.decode(issued.await).unwrap()).unwrap()
}

/// Waits for the condition of this type.
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
    let answer = http.post(SELF_REVIEWS, &review).await;
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

/// Creates the bindings of kubeadm: bootstrappers may create requests, which are approved; nodes renew their own certificates.
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

/// Returns a client of a kubelet that obtained its certificate with a bootstrap token.
async fn kubelet(portico: &Portico, name: &str) -> Http {
    let user = format!("system:node:{name}");
    let bootstrapper = portico.anonymous().with_token("abcdef.0123456789abcdef");
    let (pem, key) = certificate_request(&user, &["system:nodes"], &[]);
    eventually("the bootstrap token may create a request", || async {
        let answer = bootstrapper.post(REQUESTS, &request(name, &pem, KUBELET_CLIENT, &CLIENT)).await;
        if answer.status == 201 || answer.status == 409 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let admin = portico.admin();
    let approved = condition(&admin, name, "Approved").await;
    assert_eq!(approved["reason"], "AutoApproved", "{approved}");
    let cert = certificate(&admin, name).await;
    let kubelet = portico.with_certificate(&CertPair { cert, key });
    let user_info = name_of(&kubelet).await.unwrap();
    assert_eq!(user_info["username"], user);
    assert_eq!(user_info["groups"], json!(["system:nodes", "system:authenticated"]));
    kubelet
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_bootstraps_and_is_limited_to_its_node() {
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

    // Its serving certificate needs the approval of an administrator.
    let (pem, _) = certificate_request("system:node:n1", &["system:nodes"], &["n1.example", "10.0.0.1"]);
    let usages = ["digital signature", "server auth"];
    create_request(&kubelet, "n1-serving", &pem, KUBELET_SERVING, &usages).await;
    let (foreign, _) = certificate_request("system:node:n2", &["system:nodes"], &["n2.example"]);
    let foreign = request("n2-serving", &foreign, KUBELET_SERVING, &usages);
    let refused = kubelet.post(REQUESTS, &foreign).await.status_body(403, "Forbidden");
    assert!(
        refused["message"].as_str().unwrap().ends_with("can only create a node CSR with CN=system:node:n1")
    );
    decide(&admin, "n1-serving", "Approved").await;
    let serving = certificate(&admin, "n1-serving").await;
    let info = portico_kit::pki::CertInfo::from_pem("serving", &serving).unwrap();
    assert_eq!(info.dns_names, ["n1.example"]);
    assert!(info.server_auth && !info.client_auth);

    // The kubelet renews its client certificate.
    let (pem, _) = certificate_request("system:node:n1", &["system:nodes"], &[]);
    create_request(&kubelet, "n1-again", &pem, KUBELET_CLIENT, &CLIENT).await;
    let approved = condition(&admin, "n1-again", "Approved").await;
    assert_eq!(
        approved["message"],
        "Auto approving self kubelet client certificate after SubjectAccessReview."
    );
    certificate(&admin, "n1-again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_info_is_signed_and_expired_tokens_are_deleted() {
    let portico = for_kubelets().await;
    let admin = portico.admin();
    bootstrap_token(&admin, "abcdef", "2100-01-01T00:00:00Z").await;
    let info = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-info"},
        "data": {"kubeconfig": "x"}});
    eventually("the namespace kube-public exists", || async {
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
    let expired = portico.anonymous().with_token("fedcba.0123456789abcdef");
    assert!(name_of(&expired).await.is_err());
    eventually("the expired token is deleted", || async {
        let answer = admin.get(&format!("{SECRETS}/bootstrap-token-fedcba")).await;
        if answer.status == 404 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    assert_eq!(admin.delete(&format!("{SECRETS}/bootstrap-token-abcdef")).await.status, 200);
    eventually("the signature is removed with its token", || signed(false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_certificate_authenticates_and_invalid_requests_fail() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let (pem, key) = certificate_request("jane", &["devs", "ops"], &[]);
    create_request(&admin, "jane", &pem, API_CLIENT, &CLIENT).await;
    decide(&admin, "jane", "Approved").await;
    let pair = CertPair { cert: certificate(&admin, "jane").await, key };
    let user_info = name_of(&portico.with_certificate(&pair)).await.unwrap();
    assert_eq!(
        (user_info["username"].as_str(), &user_info["groups"]),
        (Some("jane"), &json!(["ops", "devs", "system:authenticated"]))
    );

    // A second approval changes nothing; a denial is refused.
    let mut resubmitted = admin.get(&format!("{REQUESTS}/jane")).await.json();
    assert_eq!(admin.put(&format!("{REQUESTS}/jane/approval"), &resubmitted).await.status, 200);
    let conditions = resubmitted["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({"type": "Denied", "status": "True"}));
    admin.put(&format!("{REQUESTS}/jane/approval"), &resubmitted).await.status_body(422, "Invalid");

    let (masters, _) = certificate_request("root", &["system:masters"], &[]);
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
        let (pem, _) = certificate_request(user, &["system:nodes"], &[]);
        create_request(&admin, name, &pem, signer, usages).await;
        decide(&admin, name, "Approved").await;
        let failed = condition(&admin, name, "Failed").await;
        assert_eq!(
            (failed["reason"].as_str(), failed["message"].as_str()),
            (Some("SignerValidationFailure"), Some(why))
        );
    }

    // Requests of unknown signers and denied ones stay without a certificate after later ones are signed.
    for (name, signer, verdict) in
        [("other", "example.com/mine", "Approved"), ("denied", API_CLIENT, "Denied")]
    {
        create_request(&admin, name, &pem, signer, &CLIENT).await;
        decide(&admin, name, verdict).await;
    }
    create_request(&admin, "later", &pem, API_CLIENT, &CLIENT).await;
    decide(&admin, "later", "Approved").await;
    certificate(&admin, "later").await;
    for name in ["other", "denied"] {
        let request = admin.get(&format!("{REQUESTS}/{name}")).await.json();
        assert!(request["status"]["certificate"].is_null(), "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_separate_facade_trusts_signed_certificates_after_a_restart() {
    let mut server = Launch::server().start().await;
    let facade = Launch::facade(&server).start().await;
    let admin = facade.admin();
    eventually("the facade serves objects", || async {
        let answer = admin.get(REQUESTS).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let (pem, key) = certificate_request("jane", &[], &[]);
    create_request(&admin, "jane", &pem, API_CLIENT, &CLIENT).await;
    decide(&admin, "jane", "Approved").await;
    let jane = facade.with_certificate(&CertPair { cert: certificate(&admin, "jane").await, key });
    assert_eq!(name_of(&jane).await.unwrap()["username"], "jane");
    assert!(server.stop().await.success());
    server.restart().await;
    eventually("the certificate is good after a restart", || async {
        match name_of(&jane).await {
            Ok(user_info) if user_info["username"] == "jane" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_given_ca_signs_and_is_trusted_only_as_a_client_ca() {
    let (launch, folder) = Launch::new().prepare_folder();
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
    let (pem, key) = certificate_request("jane", &[], &[]);
    create_request(&admin, "jane", &pem, API_CLIENT, &CLIENT).await;
    decide(&admin, "jane", "Approved").await;
    let cert = certificate(&admin, "jane").await;
    let info = portico_kit::pki::CertInfo::from_pem("jane", &cert).unwrap();
    assert_eq!((info.issuer.as_str(), info.not_after - info.not_before), ("given-ca", 3900));
    assert!(own.cert_pem().starts_with("-----BEGIN CERTIFICATE-----"));
    let refused = name_of(&portico.with_certificate(&CertPair { cert, key })).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(!portico.data().join("certs").join("signing-ca.crt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_internal_ca_signs_no_requests() {
    let mut before = Portico::start().await;
    let certs = before.data().join("certs");
    assert!(before.stop().await.success());
    let path = |name: &str| certs.join(name).to_str().unwrap().to_owned();
    let files = ["--cluster-signing-cert-file", &path("internal-ca.crt"), "--cluster-signing-key-file"];
    let launch = Launch::new().with_data_of(&before).args(&files).args(&[&path("internal-ca.key")]);
    let (code, out, err) = launch.run().await;
    assert!(code.is_some_and(|code| code != 0), "{out}{err}");
    assert!(err.contains("the internal CA cannot sign certificate requests"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_cas_are_published_as_valid_pem() {
    let (launch, folder) = Launch::new().prepare_folder();
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
    assert!(text.lines().all(|line| line.len() <= 64), "each PEM marker has its own line: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_approves_denies_and_uses_a_certificate() {
    if !is_installed("kubectl") {
        return portico_tests::report_skip("kubectl is not installed");
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
    let (pem, key) = certificate_request("jane", &[], &[]);
    for name in ["jane", "denied"] {
        create_request(&admin, name, &pem, API_CLIENT, &CLIENT).await;
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
    let user_info = output(&mut command);
    assert_eq!(
        String::from_utf8_lossy(&user_info.stdout),
        "jane",
        "{}",
        String::from_utf8_lossy(&user_info.stderr)
    );
    let (_, table) = kubectl(&["get", "csr"]);
    assert!(table.contains("Approved,Issued") && table.contains("Denied"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ca_of_the_serving_certificate_is_published() {
    let portico = Launch::new()
        .args(&["--feature-gates", "ClusterTrustBundle=true"])
        .args(&["--runtime-config", "certificates.k8s.io/v1beta1/clustertrustbundles=true"])
        .start()
        .await;
    let admin = portico.admin();
    let bundles = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles";
    eventually("the trust bundle is published", || async {
        let all = admin.get(bundles).await.json();
        let name = all["items"][0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let right = name.starts_with("kubernetes.io:kube-apiserver-serving:")
            && all["items"][0]["spec"]["trustBundle"].as_str().map(str::as_bytes) == Some(portico.ca());
        if right { Ok(()) } else { Err(all.to_string()) }
    })
    .await;
}
