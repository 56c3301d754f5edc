//! Extracts the descriptions of types and fields from k8s-openapi's schemas and compresses them for the binary.
//! `data/descriptions.json` adds descriptions that the crate lacks: of lists, of watch events, and of fields with enumerated
//! values, each with the meanings of the values. They are copied from a kube-apiserver's documents.
//!
//! The text has one record per type, ordered by name: the type's name, its description, then a name and a description for each
//! described field. Records end with `\x1e` and their parts are separated by `\x1f`, which do not occur in descriptions.

use std::collections::BTreeMap;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::{api, apiextensions_apiserver, apimachinery, kube_aggregator};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

/// Adds types, and all types that they reach, to the generator.
macro_rules! describe {
    ($generator:ident, $($module:path: $($ty:ident)+;)+) => {
        $({
            use $module as module;
            $(let _ = $generator.subschema_for::<module::$ty>();)+
        })+
    };
}

/// Folders with the code that generates documents.
const GENERATOR_FOLDERS: [&str; 2] = ["src/local", "src/custom"];

/// File with additional descriptions, by type and field; the key of the type's own description is empty.
const ADDED_DESCRIPTIONS: &str = "data/descriptions.json";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    for folder in GENERATOR_FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
    }
    println!("cargo::rerun-if-changed={ADDED_DESCRIPTIONS}");
    let mut definitions = definitions();
    add_descriptions(&mut definitions, serde_json::from_slice(&fs::read(ADDED_DESCRIPTIONS)?)?);
    let text = text(&definitions);
    let mut made_by = DefaultHasher::new();
    text.hash(&mut made_by);
    for folder in GENERATOR_FOLDERS {
        hash_sources(Path::new(folder), &mut made_by)?;
    }
    println!("cargo::rustc-env=PORTICO_OPENAPI_MADE_BY={:016x}", made_by.finish());
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("descriptions.deflate"), encoder.finish()?)?;
    Ok(())
}

/// Hashes the code that generates documents: documents may change with it.
fn hash_sources(folder: &Path, hasher: &mut impl Hasher) -> Result<(), Box<dyn Error>> {
    let entries: Result<Vec<_>, _> = fs::read_dir(folder)?.collect();
    let mut paths: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_sources(&path, hasher)?;
        } else {
            fs::read(&path)?.hash(hasher);
        }
    }
    Ok(())
}

/// Returns the schemas of all types that built-in kinds reach, by upstream's name.
fn definitions() -> Map<String, Value> {
    let mut generator = SchemaGenerator::default();
    describe!(generator,
        meta: APIGroup APIGroupList APIResourceList APIVersions DeleteOptions Patch Status;
        apimachinery::pkg::version: Info;
        api::admissionregistration::v1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
            MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration;
        api::admissionregistration::v1alpha1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        api::admissionregistration::v1beta1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        api::apiserverinternal::v1alpha1: StorageVersion;
        api::apps::v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        api::authentication::v1: SelfSubjectReview TokenRequest TokenReview;
        api::authorization::v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
            SubjectAccessReview;
        api::autoscaling::v1: HorizontalPodAutoscaler Scale;
        api::autoscaling::v2: HorizontalPodAutoscaler;
        api::batch::v1: CronJob Job;
        api::certificates::v1: CertificateSigningRequest;
        api::certificates::v1alpha1: ClusterTrustBundle;
        api::certificates::v1beta1: ClusterTrustBundle;
        api::coordination::v1: Lease;
        api::coordination::v1alpha2: LeaseCandidate;
        api::coordination::v1beta1: LeaseCandidate;
        api::core::v1: Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
            PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount;
        api::discovery::v1: EndpointSlice;
        api::events::v1: Event;
        api::flowcontrol::v1: FlowSchema PriorityLevelConfiguration;
        api::networking::v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
        api::networking::v1beta1: IPAddress ServiceCIDR;
        api::node::v1: RuntimeClass;
        api::policy::v1: Eviction PodDisruptionBudget;
        api::rbac::v1: ClusterRole ClusterRoleBinding Role RoleBinding;
        api::resource::v1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        api::resource::v1beta2: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        api::scheduling::v1: PriorityClass;
        api::storage::v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass;
        api::storage::v1beta1: VolumeAttributesClass;
        api::storagemigration::v1beta1: StorageVersionMigration;
        apiextensions_apiserver::pkg::apis::apiextensions::v1: CustomResourceDefinition;
        kube_aggregator::pkg::apis::apiregistration::v1: APIService;
    );
    generator.take_definitions(false)
}

/// Adds descriptions to those of the crate. Lists start with the descriptions of `apiVersion` and `kind`, which all objects have.
fn add_descriptions(definitions: &mut Map<String, Value>, added: BTreeMap<String, BTreeMap<String, String>>) {
    let status = &definitions["io.k8s.apimachinery.pkg.apis.meta.v1.Status"]["properties"];
    let list = json!({"properties": {"apiVersion": status["apiVersion"], "kind": status["kind"]}});
    for (name, descriptions) in added {
        let new = || if name.ends_with("List") { list.clone() } else { json!({}) };
        let schema = definitions.entry(name.clone()).or_insert_with(new);
        for (field, description) in descriptions {
            match field.as_str() {
                "" => schema["description"] = description.into(),
                field => schema["properties"][field]["description"] = description.into(),
            }
        }
    }
}

fn text(definitions: &Map<String, Value>) -> String {
    let mut types: Vec<(&String, &Value)> = definitions.iter().collect();
    types.sort_by_key(|(name, _)| name.as_str());
    let mut text = String::new();
    for (name, schema) in types {
        text.push_str(name);
        part(&mut text, description(schema));
        for (field, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if !description(schema).is_empty() {
                part(&mut text, field);
                part(&mut text, description(schema));
            }
        }
        text.push('\x1e');
    }
    text
}

fn description(schema: &Value) -> &str {
    schema.get("description").and_then(Value::as_str).unwrap_or_default()
}

fn part(text: &mut String, words: &str) {
    text.push('\x1f');
    text.push_str(words);
}
