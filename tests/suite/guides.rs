//! Runs the command blocks of the guides in docs/guides.

use std::process::Command;

use portico_tests::tools::{is_installed, output};

use crate::documentation::{self, assert_contains};

documentation::pages! {
    an_aggregated_api_server_is_registered_traced_and_lost {
        file: "docs/guides/aggregated-apis.md",
        needs: ["kubectl", "curl"],
        prints: [
            "v1alpha1.wardle.example.com available",
            "portico:admin",
            "flunders: 200 after",
            "\"jane\" may not: no rule allows it",
            "could be sent (--send sends it)",
            "flunders fails at ",
            "kube-system",
            r#""causes":[{"reason":"FailedDiscoveryCheck""#,
            "apiservice.apiregistration.k8s.io/v1alpha1.wardle.example.com configured",
        ],
    }
    a_browser_user_gets_a_token_and_programs_get_json {
        file: "docs/guides/console.md",
        needs: ["kubectl", "openssl", "curl"],
        prints: ["rolebinding.rbac.authorization.k8s.io/viewers created", r#""apiService":"v1.apps","ok":true"#, r#""backends":[]"#],
    }
    a_changed_definition_is_checked_before_it_is_applied {
        file: "docs/guides/crd-changes.md",
        needs: ["kubectl"],
        prints: ["4 found, 1 of 1 stored objects affected", "has a lower maximum, 10", r#"unknown field "spec.color""#, "\n4\n"],
    }
    a_site_is_served_without_its_control_service {
        file: "docs/guides/edge.md",
        needs: ["kubectl"],
        prints: [
            "condition met",
            "FlunderList",
            "the control service is unreachable",
            "readyz check passed",
            "central objects are unavailable",
        ],
    }
    a_product_ships_a_folder_and_one_program {
        file: "docs/guides/embed-in-a-product.md",
        needs: ["kubectl"],
        prints: ["2 documents in 2 files: 0 errors", "\n1400\n", "IPv4 needs 576", "refused"],
    }
    past_states_are_compared_and_restored {
        file: "docs/guides/history.md",
        needs: ["kubectl"],
        prints: ["kubectl-patch", "+  color: green", "rolled back to revision", "\nblue\n", "undeleted from revision"],
    }
    a_folder_of_manifests_is_applied_before_a_command_runs {
        file: "docs/guides/manifests.md",
        needs: ["kubectl"],
        prints: ["2 documents in 2 files: 0 errors", "settings   1"],
    }
    a_test_sets_a_fault_and_counts_its_hits {
        file: "docs/guides/testing-with-faults.md",
        needs: ["kubectl", "curl"],
        prints: [r#""reason":"AlreadyExists""#, "refused", "configmap/one created", r#""hits":1"#],
    }
}

const GRPC_CLIENT: &str = "docs/guides/grpc-client.md";
const OPERATOR_TESTS: &str = "docs/guides/operator-tests.md";

/// Pages that the tests below run.
pub(crate) const OTHER_FILES: &[&str] = &[GRPC_CLIENT, OPERATOR_TESTS];

#[test]
fn objects_are_read_and_written_over_grpc() {
    let printed = documentation::run(GRPC_CLIENT, &[]).unwrap();
    assert_contains(&printed, &["configmap/one serverside-applied", "fails at registered"]);
    if is_installed("grpcurl") {
        let answers = [
            "\"kind\": \"Deployment\"",
            "\"reason\": \"ServiceNotFound\"",
            "\"versionPriority\": 20",
            "\"code\": 201",
        ];
        assert_contains(&printed, &answers);
    }
}

/// Script that starts the programs that envtest starts, instead of compiling and running tests.
const GO: &str = r#"#!/bin/sh
[ "$*" = "test ./..." ] || exit 2
"$KUBEBUILDER_ASSETS/kube-apiserver" --version
"$KUBEBUILDER_ASSETS/etcd" --version
"$KUBEBUILDER_ASSETS/kubectl" --help >/dev/null
echo "from $KUBEBUILDER_ASSETS, controllers: ${PORTICO_TESTENV_CONTROLLERS-none}"
"#;

/// Parts of a Makefile of kubebuilder 4.16 that find `setup-envtest` and run the tests.
const MAKEFILE: &str = r#"
LOCALBIN ?= $(shell pwd)/bin
ENVTEST ?= $(LOCALBIN)/setup-envtest
ENVTEST_VERSION ?= release-0.24
ENVTEST_K8S_VERSION ?= 1.36

test: setup-envtest
	KUBEBUILDER_ASSETS="$(shell "$(ENVTEST)" use $(ENVTEST_K8S_VERSION) --bin-dir "$(LOCALBIN)" -p path)" go test ./...

.PHONY: setup-envtest
setup-envtest:
	@[ -f "$(ENVTEST)-$(ENVTEST_VERSION)" ] && [ "$$(readlink -- "$(ENVTEST)")" = "$(ENVTEST)-$(ENVTEST_VERSION)" ]
"#;

#[test]
fn the_tests_of_an_operator_find_their_programs() {
    if !is_installed("make") || !is_installed("kubectl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    documentation::write_program(&programs.join("go"), GO);
    std::os::unix::fs::symlink(portico_tests::binary(), programs.join("portico")).unwrap();
    std::fs::write(folder.path().join("Makefile"), MAKEFILE).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &documentation::script(OPERATOR_TESTS)]);
    bash.current_dir(folder.path()).env("PATH", path).env("HOME", folder.path());
    let output = output(bash.env_remove("XDG_DATA_HOME"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{printed}{errors}");
    let home = folder.path().display();
    assert_contains(
        &printed,
        &[
            "Kubernetes v1.",
            &format!("from {home}/.local/share/portico/testenv/k8s/"),
            &format!("from {home}/bin/k8s/"),
            "controllers: garbage-collector,namespace",
        ],
    );
}
