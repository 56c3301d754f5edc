//! Runs the command blocks of the pages in docs/operate.

use crate::documentation;

documentation::pages! {
    the_installed_program_starts {
        file: "docs/operate/install.md",
        needs: ["kubectl"],
        prints: ["v1.apps"],
    }
    settings_come_from_a_file {
        file: "docs/operate/configuration.md",
        needs: ["kubectl"],
        prints: ["[Node,RBAC]"],
    }
    a_command_runs_against_a_temporary_server {
        file: "docs/operate/ephemeral.md",
        needs: ["kubectl"],
        prints: ["configmap/demo created", "demo   1"],
    }
    a_sqlite_database_is_examined_and_backed_up {
        file: "docs/operate/storage-sqlite.md",
        needs: ["kubectl"],
        prints: ["sound: revision ", "objects.backup: store ", "[+]storage-space ok"],
    }
    a_store_is_backed_up_restored_and_moved {
        file: "docs/operate/backup-restore-migrate.md",
        needs: [],
        prints: ["remote.backup: store ", "objects.backup: complete: store ", "restored: store ", ", epoch 2, ", "moved: store "],
    }
    unreadable_objects_are_searched_for {
        file: "docs/operate/unreadable-objects.md",
        needs: ["kubectl"],
        prints: ["[+]storage-readable ok", "all objects can be read", "sound: revision "],
    }
    stored_secrets_are_encrypted_again {
        file: "docs/operate/encryption.md",
        needs: [],
        prints: ["secrets: 0 of 0 rewritten"],
    }
    certificates_show_when_they_expire {
        file: "docs/operate/certificates.md",
        needs: ["openssl"],
        prints: ["portico-data/certs/internal-ca.crt: notAfter="],
    }
    a_user_gets_a_certificate_and_an_account_a_token {
        file: "docs/operate/authentication.md",
        needs: ["kubectl", "openssl"],
        prints: ["certificatesigningrequest.certificates.k8s.io/jane condition met", "Groups ", "[dev system:authenticated]", "serviceaccount/ci created", "\neyJ"],
    }
    a_user_gets_permissions {
        file: "docs/operate/authorization.md",
        needs: ["kubectl"],
        prints: ["\nyes\n", "allowed by RoleBinding \"jane-view/default\"", "clusterrole.rbac.authorization.k8s.io/route-try created"],
    }
    a_policy_denies_a_write_and_is_explained {
        file: "docs/operate/admission.md",
        needs: ["kubectl"],
        prints: ["denied request: debug settings are not allowed", "A WRITE MEETS", "Evaluated"],
    }
    requests_are_recorded_in_a_log {
        file: "docs/operate/audit.md",
        needs: ["kubectl", "python3"],
        prints: [r#""name": "recorded""#, r#""stage": "ResponseComplete""#],
    }
    spans_are_counted {
        file: "docs/operate/tracing.md",
        needs: ["kubectl"],
        prints: ["portico_tracing_spans_exported_total 0"],
    }
    queues_are_shown_and_a_flow_schema_is_added {
        file: "docs/operate/fairness.md",
        needs: ["kubectl"],
        prints: ["PriorityLevelName, ActiveQueues", "FlowSchema \"exempt\"", "flowschema.flowcontrol.apiserver.k8s.io/ci created"],
    }
    metrics_are_read_and_prometheus_gets_a_token {
        file: "docs/operate/monitoring.md",
        needs: ["kubectl"],
        prints: ["\nportico_store_revision ", "clusterrolebinding.rbac.authorization.k8s.io/prometheus created"],
    }
    health_is_read_and_the_log_level_changes {
        file: "docs/operate/logging-and-health.md",
        needs: ["kubectl", "curl"],
        prints: ["readyz check passed", "successfully set klog.logging.verbosity to debug", "apiserver flagz"],
    }
    an_older_release_is_emulated {
        file: "docs/operate/upgrade.md",
        needs: ["kubectl"],
        prints: [r#""emulationMinor": "34""#],
    }
}
