//! Requests of reviews, and validation of their responses.

use super::*;

const V2: &str = "g.io/v2";

fn objects(json: &[&str]) -> Vec<Object> {
    json.iter().map(|json| Object::from_json(json.as_bytes()).unwrap()).collect()
}

fn a() -> Vec<Object> {
    objects(&[
        r#"{"apiVersion":"g.io/v1","kind":"K","metadata":{"name":"a","namespace":"n","uid":"u","generation":3,"labels":{"l":"1"}},"spec":{"x":1}}"#,
    ])
}

fn review(objects: &[Object], single: bool) -> Review<'_> {
    Review { version: ReviewVersion::V1, uid: "q", desired_api_version: V2, objects, single }
}

/// Response with these objects.
fn answer(objects: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{{"uid":"q","result":{{"status":"Success"}},"convertedObjects":[{objects}]}}}}"#
    )
}

fn converted(metadata: &str) -> String {
    answer(&format!(r#"{{"apiVersion":"g.io/v2","kind":"K","metadata":{metadata},"spec":{{"y":"1"}}}}"#))
}

#[test]
fn a_request_is_a_review_of_the_unchanged_objects() {
    let objects = [br#"{"a":1}"#.to_vec(), br#"{"b":2}"#.to_vec()];
    let asked = encode_request(ReviewVersion::V1Beta1, "q", V2, &objects);
    assert_eq!(
        String::from_utf8(asked).unwrap(),
        r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1","request":{"uid":"q","desiredAPIVersion":"g.io/v2","objects":[{"a":1},{"b":2}]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#
            .to_owned()
            + "\n"
    );
}

#[test]
fn null_parts_of_a_response_are_empty() {
    let objects = a();
    let message = |body: &str| review(&objects, true).read(body.as_bytes()).unwrap_err().message;
    let with = |response: &str| {
        format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":null,"response":{response}}}"#
        )
    };
    assert_eq!(message(&with("null")), "failed: no response provided");
    let no_status = "failed: response.result.status was '', not 'Success'";
    assert_eq!(message(&with(r#"{"uid":"q","result":null,"convertedObjects":null}"#)), no_status);
    let none = with(r#"{"uid":"q","result":{"status":"Success","metadata":null},"convertedObjects":null}"#);
    assert_eq!(message(&none), "returned 0 objects, expected 1");
}

#[test]
fn the_first_supported_version_is_used() {
    let first = |names: &[&str]| {
        ReviewVersion::first_of(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(first(&["v2", "v1beta1", "v1"]), Some(ReviewVersion::V1Beta1));
    assert_eq!(first(&["v1", "v1beta1"]), Some(ReviewVersion::V1));
    assert_eq!(first(&["v3"]), None);
}

#[test]
fn a_review_contains_as_many_objects_as_fit_and_at_least_one() {
    let objects = [4, 4, 4, 20, 1].map(|size| vec![b'x'; size]);
    assert_eq!(batches(&objects, 10), [0..2, 2..3, 3..4, 4..5]);
    assert_eq!(batches(&objects, 100), vec![0..5]);
    assert!(batches(&[], 10).is_empty());
}

#[test]
fn metadata_is_restored_except_labels_and_annotations() {
    let originals = a();
    let body = converted(
        r#"{"name":"a","namespace":"n","uid":"u","generation":9,"annotations":{"k":"v"},"labels":null,"finalizers":["f"]}"#,
    );
    let read = review(&originals, true).read(body.as_bytes()).unwrap();
    let expected = objects(&[
        r#"{"apiVersion":"g.io/v2","kind":"K","metadata":{"name":"a","namespace":"n","uid":"u","generation":3,"annotations":{"k":"v"}},"spec":{"y":"1"}}"#,
    ]);
    assert_eq!(read, expected);
}

#[test]
fn wrong_responses_are_reported_in_upstreams_words() {
    let originals = a();
    let good = r#"{"name":"a","namespace":"n","uid":"u"}"#;
    let table = [
        (
            converted(good).replace("/v1\"", "/v9\""),
            Fault::Malformed,
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v9, Kind=ConversionReview",
        ),
        (
            "{}".to_owned(),
            Fault::Malformed,
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
        ),
        (
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}"#.to_owned(),
            Fault::Malformed,
            "failed: no response provided",
        ),
        (
            converted(good).replace("\"q\"", "\"p\""),
            Fault::Malformed,
            "failed: expected response.uid=\"q\", got \"p\"",
        ),
        (
            converted(good).replace("Success", "Failure"),
            Fault::Malformed,
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (
            converted(good).replace("\"Success\"", "\"Failure\",\"message\":\"no\""),
            Fault::Malformed,
            "failed: no",
        ),
        (answer(""), Fault::Partial, "returned 0 objects, expected 1"),
        (answer("{},{}"), Fault::Partial, "returned 2 objects, expected 1"),
        (answer("7"), Fault::Object, "returned invalid object: "),
        (answer("{}"), Fault::Object, "returned invalid object: Object 'Kind' is missing in '{}'"),
        (
            converted(good).replace("g.io/v2", "g.io/v3"),
            Fault::Object,
            "returned invalid object at index 0: invalid groupVersion (expected g.io/v2, received g.io/v3)",
        ),
        (
            converted(good).replace("\"K\"", "\"L\""),
            Fault::Object,
            "returned invalid object at index 0: invalid kind (expected K, received L)",
        ),
        (converted("{}"), Fault::Object, "returned invalid object: must have the same name: a != "),
        (
            converted(r#"{"name":"a","namespace":"m","uid":"u"}"#),
            Fault::Object,
            "returned invalid object: must have the same namespace: n != m",
        ),
        (
            converted(r#"{"name":"a","namespace":"n","uid":"v"}"#),
            Fault::Object,
            "returned invalid object: must have the same UID: u != v",
        ),
        (
            converted(r#"{"name":"a","namespace":"n","uid":"u","labels":[]}"#),
            Fault::Object,
            "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            converted(r#"{"name":"a","namespace":"n","uid":"u","annotations":{"k":1}}"#),
            Fault::Object,
            "returned invalid metadata: metadata.annotations[k] must be a string, but is int64 in converted object",
        ),
        (
            converted(r#"{"name":"a","namespace":"n","uid":"u","labels":{"a b":""}}"#),
            Fault::Object,
            "returned invalid metadata: metadata.labels: Invalid value: \"a b\"",
        ),
        ("nonsense".to_owned(), Fault::Call, "failed: couldn't get version/kind; json parse error: "),
    ];
    for (body, fault, words) in table {
        let failure = review(&originals, true).read(body.as_bytes()).unwrap_err();
        assert_eq!(failure.fault, fault, "{body}");
        assert!(failure.message.starts_with(words), "{}: {words}", failure.message);
    }
}

#[test]
fn an_error_in_a_list_names_the_index() {
    let mut originals = a();
    originals.extend(a());
    let good = r#"{"apiVersion":"g.io/v2","kind":"K","metadata":{"name":"a","namespace":"n","uid":"u"}}"#;
    let failure = |second: &str| {
        let body = answer(&format!("{good},{second}"));
        review(&originals, false).read(body.as_bytes()).unwrap_err().message
    };
    let table = [
        (
            good.replace("v2", "v3"),
            "returned invalid converted object at index 1: invalid groupVersion (expected g.io/v2, received g.io/v3)",
        ),
        (
            good.replace("\"u\"", "\"w\""),
            "returned invalid converted object at index 1: must have the same UID: u != w",
        ),
        (
            good.replace("\"u\"", "\"u\",\"labels\":3"),
            "returned invalid metadata in object at index 1: invalid metadata.labels of type int64 in converted object",
        ),
    ];
    for (second, words) in table {
        assert_eq!(failure(&second), words);
    }
}

#[test]
fn a_cluster_scoped_object_without_metadata_is_refused() {
    let originals = objects(&[r#"{"apiVersion":"g.io/v1","kind":"K","metadata":{}}"#]);
    let read = |body: &str| review(&originals, true).read(answer(body).as_bytes());
    let missing = read(r#"{"apiVersion":"g.io/v2","kind":"K"}"#).unwrap_err();
    assert_eq!(missing.message, "returned invalid metadata: missing metadata in converted object");
    let wrong = read(r#"{"apiVersion":"g.io/v2","kind":"K","metadata":"x"}"#).unwrap_err();
    assert_eq!(
        wrong.message,
        "returned invalid metadata: invalid metadata of type string in converted object"
    );
}

#[test]
fn older_reviews_are_validated_less_strictly() {
    let originals = a();
    let review = Review { version: ReviewVersion::V1Beta1, ..review(&originals, true) };
    let object = r#"{"apiVersion":"g.io/v2","kind":"K","metadata":{"name":"a","namespace":"n","uid":"u"}}"#;
    let body = format!(
        r#"{{"response":{{"uid":"other","result":{{"status":"Success"}},"convertedObjects":[{object}]}}}}"#
    );
    assert_eq!(review.read(body.as_bytes()).unwrap().len(), 1);
}
