//! All targets, with their initial inputs.

/// Passes the table to a macro.
macro_rules! for_each_target {
    ($make:ident) => {
        $make! {
            paths on PATHS,
            conversion_answers on CONVERSIONS,
            admission_answers on ADMISSION,
            label_selectors on SELECTORS,
            field_selectors on SELECTORS,
            json_paths on JSON_PATHS,
            accept_headers on ACCEPT,
            authorization_headers on AUTHORIZATION,
            token_files on TOKEN_FILES,
            service_account_tokens on TOKENS,
            issuer_tokens on ISSUER_TOKENS,
            external_headers on EXTERNAL_HEADERS,
            impersonation_headers on IMPERSONATION,
            forwarded_identities on IMPERSONATION,
            json_patches on JSON_PATCHES,
            merge_patches on JSON,
            strategic_patches on JSON,
            applied_configurations on JSON,
            field_sets on FIELD_SETS,
            json_bodies on JSON,
            yaml_bodies on YAML,
            protobuf_bodies on PROTOBUF,
            pem on PEM,
            certificate_requests on CERTIFICATE_REQUESTS,
            kubeconfigs on KUBECONFIGS,
            backend_urls on URLS,
            egress_configurations on YAML,
            durations on DURATIONS,
            times on DURATIONS,
            expressions on EXPRESSIONS,
            regular_expressions on REGULAR_EXPRESSIONS,
            quantities on QUANTITIES,
            spdy_frames on SPDY_FRAMES,
            options on OPTIONS,
            continue_tokens on CONTINUE_TOKENS,
            http2_frames on HTTP2_FRAMES,
            web_socket_frames on WEB_SOCKET_FRAMES,
            grpc_messages on GRPC_MESSAGES,
            grpc_statuses on GRPC_STATUSES,
            statuses on STATUSES,
            reviews on REVIEWS,
            openapi_documents on OPENAPI_DOCUMENTS,
            proxied_pages on PAGES,
            audit_policies on AUDIT_POLICIES,
            abac_policies on ABAC_POLICIES,
            objects_of_every_kind on OBJECTS,
            custom_resources on CUSTOM_RESOURCES,
            backups on BACKUPS,
            sealed_values on SEALED_VALUES,
        }
    };
}

pub(crate) use for_each_target;

/// Lists the names of the targets.
macro_rules! names {
    ($($name:ident on $corpus:ident),* $(,)?) => {
        /// Names of all targets.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

for_each_target!(names);
