//! The targets: one parser each, with checks of its results.

mod files;
mod wire;

pub use files::*;
pub use wire::*;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::BytesMut;
use portico_auth::authn::{TokenFile, TokenKeys, TrustedAuthority, parse_bootstrap_token, without_token};
use portico_auth::headers::NoHeaders;
use portico_auth::impersonate::{self, ImpersonationRequest};
use portico_auth::jwt::{Claims, ExternalHeader, SigningKey, encode_key_set};
use portico_auth::oidc::{
    ClaimMapping, Expression, JsonWebKeys, JwtAuthenticator, SignedToken, SigningAlgorithm, untrusted_issuer,
};
use portico_auth::{AuthenticatorChain, AuthnOutcome, Credentials};
use portico_cel::{Environment, Language, SizeEstimate, SizeEstimator, Type, Value, kubernetes};
use portico_gostd::mime::parse_media_type;
use portico_gostd::netip::{Prefix, parse_address};
use portico_gostd::regexp as re2;
use portico_gostd::time::{Layout, Time, format_duration, parse_duration};
use portico_gostd::url::{Url, check_request_uri, first_value};
use portico_kinds::Kinds;
use portico_kit::egress;
use portico_kit::pki::CertificateRequest;
use portico_kit::tls::{CertPair, Roots};
use portico_machinery::accept::{Encoding, Form, MetaVersion, Offer, negotiate, parse_accept, route_accepts};
use portico_machinery::selector::{FieldSelector, LabelSelector};
use portico_machinery::{GroupVersionKind, JsonPath, Object, RequestInfo};
use portico_proto::client::{Connection, KubeconfigCluster, KubeconfigUsers};
use portico_proto::identity::ForwardedCaller;
use portico_registry::{ConversionReview, ReviewVersion};
use portico_schema::managed::ManagedFields;
use portico_schema::{Format, Schema, merge};
use portico_spdy::{Decoder, DecoderLimits, Encoder, Frame, SpdyError};
use tonic::metadata::{MetadataMap, MetadataValue};

use crate::input::text;

pub fn paths() -> impl Fn(&[u8]) {
    |input| {
        let input = text(input);
        let (method, target) = input.split_once(' ').unwrap_or(("GET", &input));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let _ = first_value(query, "watch");
        let Ok(info) = RequestInfo::parse(method, path, query) else { return };
        // Only the verb determines whether a request is read-only.
        assert_eq!(info.is_read_only(), ["get", "list", "watch"].contains(&info.verb.as_str()), "{info:?}");
        let _ = (info.resource_path(), info.scope(), info.api_path());
    }
}

pub fn conversion_answers() -> impl Fn(&[u8]) {
    let original = br#"{"apiVersion":"g.io/v1","kind":"K","metadata":{"name":"a","uid":"u"},"spec":{}}"#;
    let objects = [Object::from_json(original).unwrap()];
    move |input| {
        for version in [ReviewVersion::V1, ReviewVersion::V1Beta1] {
            let review = ConversionReview {
                version,
                uid: "q",
                desired_api_version: "g.io/v2",
                objects: &objects,
                single: true,
            };
            let Ok(converted) = review.read(input) else { continue };
            assert_eq!(converted.len(), 1);
            let (object, original) = (&converted[0], &objects[0]);
            assert_eq!((object.kind(), object.api_version()), ("K", "g.io/v2"));
            assert_eq!((object.name(), object.uid()), (original.name(), original.uid()));
            let texts =
                |name: &str| object.metadata().field(name).entries().all(|(_, v)| v.opt_str().is_some());
            assert!(texts("labels") && texts("annotations"), "{object:?}");
        }
    }
}

pub fn label_selectors() -> impl Fn(&[u8]) {
    |input| {
        let Ok(selector) = LabelSelector::parse(&text(input)) else { return };
        let matches = selector.matches([]);
        assert!(matches || !selector.is_empty(), "an empty selector matches everything");
        let _ = selector.matches([("a", "b")]);
    }
}

pub fn field_selectors() -> impl Fn(&[u8]) {
    |input| {
        let Ok(selector) = FieldSelector::parse(&text(input)) else { return };
        assert!(selector.matches(|_| None) || !selector.terms().is_empty());
        let _ = selector.requires_exact_match("metadata.name");
    }
}

/// Checks that found values can be formatted for every type of column.
pub fn json_paths() -> impl Fn(&[u8]) {
    let object = service();
    move |input| {
        let Ok(path) = JsonPath::parse(&text(input)) else { return };
        let Some(found) = path.first(&object) else { return };
        assert!(found.number().is_none() || !found.printed().is_empty());
        let _ = (found.text(), found.integer(), found.truth());
    }
}

pub fn accept_headers() -> impl Fn(&[u8]) {
    |input| {
        let header = text(input);
        for media in parse_accept(&header) {
            assert!(!media.essence().is_empty(), "{media:?}");
        }
        let _ = route_accepts(&header, &["application/json"]);
        let _ = parse_media_type(&header);
        let _ = negotiate(
            &header,
            Offer {
                encodings: &Encoding::ALL,
                forms: &[Form::Table(MetaVersion::V1)],
                object_as_protobuf: true,
            },
        );
    }
}

pub fn service_account_tokens() -> impl Fn(&[u8]) {
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    let claims = Claims { iss: "i".into(), aud: vec!["a".into()], sub: "s".into(), ..Claims::default() };
    let real = key.sign(&claims).unwrap();
    let keys = TokenKeys {
        issuers: vec!["i".into()],
        audiences: vec!["a".into()],
        keys: vec![key.public_key().clone()],
    };
    assert!(keys.verify(&real, &[], 0).unwrap().is_some());
    move |input| {
        let (input, parts) = (text(input), real.split('.').collect::<Vec<_>>());
        let spliced = [
            input.to_string(),
            format!("{input}.{}.{}", parts[1], parts[2]),
            format!("{}.{input}.{}", parts[0], parts[2]),
            format!("{}.{}.{input}", parts[0], parts[1]),
            format!("{real}{input}"),
        ];
        for token in spliced.iter().filter(|token| **token != real) {
            assert!(
                !matches!(keys.verify(token, &[], 0), Ok(Some(_))),
                "a token without a valid signature was accepted: {token:?}"
            );
        }
        let _ = parse_bootstrap_token(&input);
    }
}

pub fn external_headers() -> impl Fn(&[u8]) {
    |input| {
        let encoded = URL_SAFE_NO_PAD.encode(input);
        for header in [&*text(input), &encoded] {
            let Ok(read) = ExternalHeader::parse(header) else { continue };
            assert!((1..=1024).contains(&read.key_id.len()), "{read:?}");
        }
    }
}

pub fn issuer_tokens() -> impl Fn(&[u8]) {
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    let keys = JsonWebKeys::parse(&encode_key_set(&[key.public_key().clone()])).unwrap();
    let real = key.sign(&Claims { iss: "i".into(), ..Claims::default() }).unwrap();
    let authenticator = JwtAuthenticator {
        issuer: "i".to_owned(),
        audiences: vec!["a".to_owned()],
        algorithms: SigningAlgorithm::ALL.to_vec(),
        username: ClaimMapping::Expression(Expression::for_claims("claims.sub").unwrap()),
        groups: Some(ClaimMapping::Claim { claim: "groups".to_owned(), prefix: String::new() }),
        uid: None,
        extra: vec![("x/y".to_owned(), Expression::for_claims("claims.?a.b.orValue('')").unwrap())],
        claim_rules: Vec::new(),
        user_rules: Vec::new(),
    };
    move |input| {
        let (text_input, parts) = (text(input), real.split('.').collect::<Vec<_>>());
        for token in [
            text_input.to_string(),
            format!("{}.{text_input}.{}", parts[0], parts[2]),
            format!("{text_input}.{}.{}", parts[1], parts[2]),
        ] {
            let _ = untrusted_issuer(&token);
            if let Ok(signed) = SignedToken::parse(&token) {
                assert!(
                    token == real || signed.verify(&keys, &authenticator.verification(0)).is_err(),
                    "a token without a valid signature was accepted: {token:?}"
                );
            }
        }
        let _ = JsonWebKeys::parse(input);
        if let Ok(claims) = portico_auth::oidc::RawClaims::parse(input) {
            let _ = claims.source("groups");
            if let Ok(user) = authenticator.user(&claims) {
                assert!(!user.name.is_empty());
            }
        }
    }
}

pub fn authorization_headers() -> impl Fn(&[u8]) {
    let tokens = TokenFile::parse("admin-token,admin,1,system:masters\n").unwrap();
    let union = AuthenticatorChain::default().with_tokens(Arc::new(tokens)).with_anonymous(true);
    move |input| {
        let header = text(input);
        for (authorization, websocket_protocols) in [(Some(input), None), (None, Some(input))] {
            let credentials = Credentials {
                authorization,
                websocket_protocols,
                peer: None,
                headers: &NoHeaders,
                path: None,
            };
            if let AuthnOutcome::Authenticated(user, _) = union.authenticate(&credentials).outcome {
                assert_eq!(user.name, "admin");
                assert!(header.contains("admin-token") || header.contains("YWRtaW4tdG9rZW4"), "{header:?}");
            }
        }
        let rest = without_token(input);
        let token =
            |protocol: &[u8]| protocol.trim_ascii().starts_with(b"base64url.bearer.authorization.k8s.io.");
        assert!(!rest.split(|byte| *byte == b',').any(token), "the token stays in {rest:?}");
    }
}

pub fn token_files() -> impl Fn(&[u8]) {
    |input| {
        if let Ok(file) = TokenFile::parse(&text(input)) {
            assert!(file.len() <= input.len());
        }
    }
}

fn fields(input: &[u8]) -> Vec<(&str, &[u8])> {
    fn field(line: &[u8]) -> Option<(&str, &[u8])> {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((str::from_utf8(&line[..colon]).ok()?, line[colon + 1..].trim_ascii()))
    }
    input.split(|byte| *byte == b'\n').filter_map(field).collect()
}

pub fn impersonation_headers() -> impl Fn(&[u8]) {
    |input| {
        let fields = fields(input);
        let read = ImpersonationRequest::from_headers(&fields.as_slice());
        let user = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("impersonate-user"));
        if user.is_some_and(|(_, value)| !value.is_empty()) {
            assert!(!matches!(read, Ok(None)), "the impersonated user was ignored: {fields:?}");
        }
        let any = fields.iter().any(|(name, value)| impersonate::consumes_header(name) && !value.is_empty());
        assert!(
            any || !matches!(read, Ok(Some(_))),
            "impersonation without impersonation headers: {fields:?}"
        );
    }
}

pub fn forwarded_identities() -> impl Fn(&[u8]) {
    |input| {
        let mut metadata = MetadataMap::new();
        metadata.insert_bin("portico-user-bin", MetadataValue::from_bytes(input));
        metadata.insert_bin("portico-attributes-bin", MetadataValue::from_bytes(input));
        let _ = ForwardedCaller::read(&metadata);
        ForwardedCaller::strip(&mut metadata);
        assert!(matches!(ForwardedCaller::read(&metadata), Ok(None)));
    }
}

fn service() -> Object {
    let json = br#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","labels":{"b":"c"},"finalizers":["c/d"]},
        "spec":{"ports":[{"port":443,"name":"https","protocol":"TCP"},{"port":80,"name":"http","protocol":"TCP"}]}}"#;
    Object::from_json(json).unwrap()
}

pub fn json_patches() -> impl Fn(&[u8]) {
    let object = service();
    move |patch| {
        if let Ok(patched) = merge::json_patch(&object, patch) {
            assert!(
                patched.to_json().len() < 4 << 20,
                "the result of a patch of {} bytes is too large",
                patch.len()
            );
        }
    }
}

pub fn merge_patches() -> impl Fn(&[u8]) {
    let object = service();
    move |patch| {
        if let Ok(patched) = merge::merge_patch(&object, patch) {
            assert_eq!(merge::merge_patch(&patched, patch).unwrap(), patched, "a merge is the same twice");
        }
    }
}

fn schema_of_services() -> (Schema, GroupVersionKind) {
    let kinds = Kinds::builtin().unwrap();
    let kind = kinds.iter().find(|kind| kind.gvk.kind == "Service").unwrap();
    (kind.schema.clone(), kind.gvk.clone())
}

pub fn strategic_patches() -> impl Fn(&[u8]) {
    let ((schema, gvk), object) = (schema_of_services(), service());
    move |patch| {
        if let Ok(patched) = schema.strategic_merge(&object, patch) {
            let _ = schema.retype(&patched, &gvk);
        }
    }
}

/// Checks that a decoded object can be encoded and decoded again without a change.
fn check_decoding(schema: &Schema, gvk: &GroupVersionKind, body: &[u8], format: Format) {
    let Ok(mut decoded) = schema.decode(body, format, gvk) else { return };
    let again =
        schema.decode(&decoded.object.to_json(), Format::Json, gvk).expect("encoded data can be decoded");
    assert_eq!(again.object, decoded.object);
    assert!(again.strict.is_empty(), "{:?}", again.strict);
    schema.default(&mut decoded.object);
    schema.normalize(&mut decoded.object);
    let _ = schema.validate(&decoded.object);
}

pub fn json_bodies() -> impl Fn(&[u8]) {
    let (schema, gvk) = schema_of_services();
    move |body| check_decoding(&schema, &gvk, body, Format::Json)
}

pub fn yaml_bodies() -> impl Fn(&[u8]) {
    let (schema, gvk) = schema_of_services();
    move |body| check_decoding(&schema, &gvk, body, Format::Yaml)
}

/// Checks that a decoded set of fields can be encoded and decoded again without a change.
pub fn field_sets() -> impl Fn(&[u8]) {
    |input| {
        let entry = format!(
            r#"{{"metadata":{{"managedFields":[{{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}}]}}}}"#,
            text(input)
        );
        let Ok(mut object) = Object::from_json(entry.as_bytes()) else { return };
        let Ok(managed) = ManagedFields::read(&object) else { return };
        managed.write(&mut object);
        assert_eq!(ManagedFields::read(&object).expect("encoded data can be decoded"), managed);
    }
}

/// Checks that a second apply changes nothing.
pub fn applied_configurations() -> impl Fn(&[u8]) {
    let ((schema, gvk), object) = (schema_of_services(), service());
    move |body| {
        let Ok((config, _)) = schema.read_applied(body) else { return };
        if schema.check_applied(&config).is_err() {
            return;
        }
        let set = schema.fields_of(&config);
        let merged = schema.merge_applied(&object, &config).expect("the configuration was validated");
        assert_eq!(schema.merge_applied(&merged, &config).expect("the configuration was validated"), merged);
        let _ = (
            schema.without_fields(&merged, &set),
            schema.retype(&merged, &gvk),
            schema.compare_raw(&object, &merged),
        );
    }
}

/// Checks services as the other bodies do, and definitions, whose schemas nest.
pub fn protobuf_bodies() -> impl Fn(&[u8]) {
    let kinds = Kinds::builtin().unwrap();
    let kind_named = |name: &str| kinds.iter().find(|kind| kind.gvk.kind == name).unwrap().clone();
    let kinds = [kind_named("Service"), kind_named("CustomResourceDefinition")];
    move |body| {
        for kind in &kinds {
            let (schema, gvk) = (&kind.schema, &kind.gvk);
            check_decoding(schema, gvk, body, Format::Protobuf);
            let Ok(decoded) = schema.decode(body, Format::Protobuf, gvk) else { continue };
            let sealed = schema.to_enveloped_protobuf(&decoded.object);
            let again =
                schema.decode(&sealed, Format::Protobuf, gvk).expect("encoded data can be decoded").object;
            assert_eq!(schema.to_enveloped_protobuf(&again), sealed);
        }
    }
}

pub fn pem() -> impl Fn(&[u8]) {
    |input| {
        let _ = TrustedAuthority::from_pem(input);
        let _ = CertPair::from_pem("fuzz", input, input);
        let _ = Roots::bundle("fuzz", input);
    }
}

pub fn certificate_requests() -> impl Fn(&[u8]) {
    |input| {
        let _ = CertificateRequest::from_der(input);
        if let Ok(der) = STANDARD.decode(input.trim_ascii()) {
            let _ = CertificateRequest::from_der(&der);
        }
    }
}

pub fn admission_answers() -> impl Fn(&[u8]) {
    |input| {
        portico_admission::read_any_answer(input);
        portico_admission::read_any_image_review(input);
    }
}

pub fn kubeconfigs() -> impl Fn(&[u8]) {
    // The channel of a client needs a runtime, although nothing is dialed.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    move |input| {
        let _inside = runtime.enter();
        let _ = KubeconfigUsers::parse(input, std::path::Path::new("."));
        let _ = KubeconfigCluster::parse(input, std::path::Path::new("."));
        for context in [None, Some("a")] {
            if let Ok(connection) = Connection::from_kubeconfig_bytes(input, context) {
                let _ = portico_proto::client::Client::connect(&connection);
            }
        }
    }
}

pub fn backend_urls() -> impl Fn(&[u8]) {
    |input| {
        if let Ok(targets) = portico_machinery::resolve::backend_urls(&text(input)) {
            assert!((1..=16).contains(&targets.len()), "{targets:?}");
        }
    }
}

pub fn egress_configurations() -> impl Fn(&[u8]) {
    |input| {
        let _ = egress::EgressConfig::parse(&text(input));
    }
}

pub fn durations() -> impl Fn(&[u8]) {
    |input| {
        if let Ok(duration) = parse_duration(&text(input)) {
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }
}

pub fn times() -> impl Fn(&[u8]) {
    |input| {
        let text = text(input);
        if let Some(time) = portico_machinery::time::parse(&text) {
            let _ = portico_machinery::time::rfc3339(time);
        }
        for layout in [Layout::Rfc3339, Layout::Micro] {
            let printed = Time::parse(layout, &text).ok().and_then(|time| time.rfc3339_micro());
            assert!(printed.is_none_or(|printed| Time::parse(layout, &printed).is_ok()));
        }
        // Addresses and URLs are equally short, and are checked with the same inputs.
        let _ = (parse_address(&text), text.parse::<Prefix>());
        if check_request_uri(&text).is_ok() {
            let _ = Url::parse(&text).map(|url| url.to_string());
        }
    }
}

/// Estimator without any sizes.
struct NoSizes;

impl SizeEstimator for NoSizes {
    fn size(&self, _: portico_cel::AstNode<'_>) -> Option<SizeEstimate> {
        None
    }
}

pub fn expressions() -> impl Fn(&[u8]) {
    const BUDGET: u64 = 20_000;
    let language = Language::of_release(kubernetes::NEW_EXPRESSIONS);
    let builder = Environment::builder().language(language);
    let environment = builder.variable("self", Type::Dyn).variable("oldSelf", Type::Dyn).build();
    let object: serde_json::Value = serde_json::from_str(
        r#"{"spec":{"replicas":2,"maxReplicas":3,"a":"x","list":[{"name":"abc"}],"n":null,"f":1.5}}"#,
    )
    .unwrap();
    move |input| {
        let Ok(program) = environment.compile(&text(input)) else { return };
        let estimate = program.estimate(&NoSizes);
        assert!(estimate.min <= estimate.max, "{estimate:?}");
        let to_cel =
            |object| portico_cel::value::from_json(object, portico_cel::DeclType::dynamic()).unwrap();
        let variables = [("self", to_cel(&object)), ("oldSelf", Value::Null)];
        let (result, cost) = program.evaluate(&variables, BUDGET, &|| false);
        assert!(result.is_err() || cost <= BUDGET);
        // A second evaluation must have the same result.
        let (again, same) = program.evaluate(&variables, BUDGET, &|| false);
        assert_eq!((result.is_ok(), cost), (again.is_ok(), same));
    }
}

pub fn regular_expressions() -> impl Fn(&[u8]) {
    |input| {
        let input = text(input);
        match (re2::translate(&input), re2::compile(&input)) {
            (Ok(_), Ok(regex)) => assert!(regex.find(&input).is_none_or(|found| found.end() <= input.len())),
            // The expression may still be too large.
            (Ok(_), Err(error)) => assert_eq!(error.code, re2::Code::Size, "{error}"),
            (Err(_), compiled) => assert!(compiled.is_err()),
        }
    }
}

pub fn quantities() -> impl Fn(&[u8]) {
    use portico_machinery::Quantity;
    |input| {
        let Ok(amount) = text(input).parse::<Quantity>() else { return };
        let one = Quantity::whole(1);
        assert_eq!(amount.cmp(&one), one.cmp(&amount).reverse());
        assert_eq!(amount.minus(&amount).sign(), 0);
        assert!(amount.integer().is_none_or(|whole| Quantity::whole(whole) == amount));
        let _ = (amount.plus(&one).to_string(), amount.approximate(), amount.value(), amount.milli_value());
        let _ = (amount.to_string(), amount.clone().rounded_to_milli().to_string());
    }
}

/// Checks that frames are decoded independently of chunk boundaries, within the limits, and can be encoded and
/// decoded again.
pub fn spdy_frames() -> impl Fn(&[u8]) {
    fn read(input: &[u8], step: usize) -> (Vec<Frame>, Option<SpdyError>) {
        let (mut decoder, mut bytes, mut frames) =
            (Decoder::new(DecoderLimits::default()), BytesMut::new(), Vec::new());
        for piece in input.chunks(step) {
            bytes.extend_from_slice(piece);
            loop {
                match decoder.decode(&mut bytes) {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
        }
        (frames, None)
    }
    fn whole(frames: &[Frame]) -> Vec<Frame> {
        let mut joined: Vec<Frame> = Vec::new();
        for frame in frames {
            match (joined.last_mut(), frame) {
                (
                    Some(Frame::Data { stream: last, fin, data }),
                    Frame::Data { stream, fin: ends, data: more },
                ) if last == stream && !*fin => {
                    *data = [&data[..], &more[..]].concat().into();
                    *fin = *ends;
                }
                _ => joined.push(frame.clone()),
            }
        }
        joined
    }
    |input| {
        let (frames, error) = read(input, input.len().max(1));
        let (pieces, in_pieces) = read(input, 3);
        assert_eq!((whole(&frames), error), (whole(&pieces), in_pieces));
        let (mut encoder, mut written) = (Encoder::new().unwrap(), BytesMut::new());
        for frame in &frames {
            encoder.encode(frame, &mut written).unwrap();
        }
        assert_eq!(read(&written, 1 << 20), (frames, None));
    }
}
