//! Tests that the complete object of each kind in upstream's test data is the same in JSON and protobuf. The test data are in the
//! Go module `k8s.io/api`. `PORTICO_K8S_API_TESTDATA` names their folder; `.ci/go` sets it and runs the test.

use std::path::{Path, PathBuf};

use portico_machinery::Object;
use portico_schema::Format;

use crate::{KindInfo, Kinds};

/// Returns both documents of the kind, or `None` for kinds of other modules.
fn documents(folder: &Path, info: &KindInfo) -> Option<(Vec<u8>, Vec<u8>)> {
    let group = if info.gvk.group.is_empty() { "core" } else { &info.gvk.group };
    let name = format!("{group}.{}.{}", info.gvk.version, info.gvk.kind);
    let read = |extension| std::fs::read(folder.join(format!("{name}.{extension}"))).ok();
    Some((read("json")?, read("pb")?))
}

fn canonical(info: &KindInfo, mut object: Object) -> String {
    info.schema.normalize(&mut object);
    String::from_utf8(object.to_json()).unwrap()
}

#[test]
#[ignore = "PORTICO_K8S_API_TESTDATA must name upstream's test data: .ci/go does that"]
fn upstreams_own_documents_are_the_same_in_json_and_protobuf() {
    let folder = PathBuf::from(std::env::var_os("PORTICO_K8S_API_TESTDATA").unwrap());
    let kinds = Kinds::builtin().unwrap();
    let mut seen = 0;
    for info in kinds.iter() {
        let Some((json, protobuf)) = documents(&folder, info) else { continue };
        seen += 1;
        let of_json = info.schema.decode(&json, Format::Json, &info.gvk).unwrap();
        assert!(of_json.strict.is_empty(), "{}: {:?}", info.gvk.kind, of_json.strict);
        let of_protobuf = info.schema.decode(&protobuf, Format::Protobuf, &info.gvk).unwrap().object;
        assert_eq!(
            canonical(info, of_protobuf),
            canonical(info, of_json.object.clone()),
            "{}",
            info.gvk.kind
        );
        let mut object = of_json.object;
        info.schema.normalize(&mut object);
        let written = info.schema.to_enveloped_protobuf(&object);
        assert!(written == protobuf, "{} is written as {written:?} instead of {protobuf:?}", info.gvk.kind);
    }
    assert!(seen > 40, "the folder holds {seen} of our kinds");
}
