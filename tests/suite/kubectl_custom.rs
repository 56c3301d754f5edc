//! kubectl with custom resources: columns, scales, status, selectable fields.

use portico_tests::Portico;
use portico_tests::tools::is_installed;

use crate::kubectl::prints;

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: farms.kubectl.example.com}
spec:
  group: kubectl.example.com
  scope: Namespaced
  names: {plural: farms, singular: farm, kind: Farm, shortNames: [fm]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Crop, type: string, jsonPath: .spec.crop}
    - {name: Wanted, type: integer, jsonPath: .spec.replicas}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Soil, type: string, jsonPath: .spec.soil, priority: 1}
    selectableFields: [{jsonPath: .spec.crop}]
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              crop: {type: string}
              soil: {type: string}
              replicas: {type: integer}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

const FARMS: &str = r"
apiVersion: kubectl.example.com/v1
kind: Farm
metadata: {name: east}
spec: {crop: rye, soil: loam, replicas: 2}
---
apiVersion: kubectl.example.com/v1
kind: Farm
metadata: {name: west}
spec: {crop: oats, replicas: 1}
";

fn apply(portico: &Portico, name: &str, manifest: &str) {
    let file = portico.folder().join(name);
    std::fs::write(&file, manifest).unwrap();
    prints(portico, &["apply", "-f", file.to_str().unwrap()]);
}

/// Splits each line into words.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_scales_and_selects_custom_resources() {
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    apply(&portico, "definition.yaml", DEFINITION);
    let crd = "crd/farms.kubectl.example.com";
    prints(&portico, &["wait", "--for=condition=Established", crd, "--timeout=30s"]);
    apply(&portico, "farms.yaml", FARMS);
    let plain = prints(&portico, &["get", "farms"]);
    assert_eq!(rows(&plain)[0], ["NAME", "CROP", "WANTED", "READY"], "{plain}");
    let ready = r#"{"status":{"replicas":2,"conditions":[{"type":"Ready","status":"True"}]}}"#;
    prints(&portico, &["patch", "farm", "east", "--subresource=status", "--type=merge", "-p", ready]);
    let wide = prints(&portico, &["get", "fm", "-o", "wide"]);
    let wide = rows(&wide);
    assert_eq!(wide[0], ["NAME", "CROP", "WANTED", "READY", "SOIL"]);
    assert_eq!(wide[1], ["east", "rye", "2", "True", "loam"]);
    assert_eq!(wide[2][..3], ["west", "oats", "1"]);
    prints(&portico, &["scale", "farm", "west", "--replicas=5", "--current-replicas=1"]);
    assert_eq!(prints(&portico, &["get", "farm", "west", "-o", "jsonpath={.spec.replicas}"]), "5");
    let scale = prints(&portico, &["get", "farm", "east", "--subresource=scale"]);
    assert_eq!(rows(&scale)[1][..3], ["east", "2", "2"], "{scale}");
    let rye = prints(&portico, &["get", "farms", "--field-selector=spec.crop=rye", "-o", "name"]);
    assert_eq!(rye.trim(), "farm.kubectl.example.com/east");
    prints(
        &portico,
        &["wait", "--for=jsonpath={.status.conditions[0].status}=True", "farm/east", "--timeout=10s"],
    );
    prints(&portico, &["delete", "farms", "--field-selector=spec.crop=rye"]);
    assert_eq!(prints(&portico, &["get", "farms", "-o", "name"]).trim(), "farm.kubectl.example.com/west");
    prints(&portico, &["delete", crd, "--timeout=30s"]);
}
