//! Access to the gRPC services: every method of every service is enumerated, so that new ones are included.

use bytes::{Buf, BufMut};
use portico_proto::client::{Connection, Credentials};
use portico_proto::objects;
use portico_tests::{Portico, pki};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request, Status};

/// Codec of messages as bytes, for methods of which this test knows only the name.
#[derive(Clone, Copy, Default)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut item = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut item);
        Ok(Some(item))
    }
}

/// Returns `/package.Service/Method` of everything that the server serves.
fn methods() -> Vec<String> {
    let sets = [
        portico_proto::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let mut methods = Vec::new();
    for set in sets {
        for file in FileDescriptorSet::decode(set).unwrap().file {
            let package = file.package().to_owned();
            for service in &file.service {
                let name = |m: &prost_types::MethodDescriptorProto| {
                    format!("/{package}.{}/{}", service.name(), m.name())
                };
                methods.extend(service.method.iter().map(name));
            }
        }
    }
    methods.sort();
    methods.dedup();
    methods
}

/// Returns a message with a name, for methods that need one.
fn message(method: &str) -> Vec<u8> {
    let call = |verb: &str| {
        let target = objects::Target {
            group: "apiregistration.k8s.io".into(),
            version: "v1".into(),
            resource: "apiservices".into(),
            ..Default::default()
        };
        Some(objects::Call { target: Some(target), verb: verb.into(), ..Default::default() })
    };
    match method {
        "/portico.objects.v1.Objects/Do" | "/portico.objects.v1.Objects/List" => {
            objects::ListRequest { call: call("list") }.encode_to_vec()
        }
        "/portico.objects.v1.Objects/Watch" => objects::WatchRequest { call: call("watch") }.encode_to_vec(),
        "/portico.objects.v1.Objects/Connect" => {
            objects::ConnectRequest { call: call("get") }.encode_to_vec()
        }
        _ => Vec::new(),
    }
}

/// Returns the status of a call; a stream without a first message is OK as well.
async fn code(connection: &Connection, method: &str) -> Code {
    let mut grpc = tonic::client::Grpc::new(connection.channel().unwrap());
    grpc.ready().await.unwrap();
    let mut request = Request::new(futures::stream::iter([message(method)]));
    if let Credentials::Token(token) = &connection.credentials {
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    request.set_timeout(std::time::Duration::from_secs(5));
    match grpc.streaming(request, method.parse().unwrap(), RawCodec).await {
        Err(status) => status.code(),
        Ok(response) => match response.into_inner().message().await {
            Err(status) => status.code(),
            Ok(_) => Code::Ok,
        },
    }
}

fn is_health(method: &str) -> bool {
    method.starts_with("/grpc.health.v1.Health/")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_except_health_requires_authentication() {
    let portico = Portico::start().await;
    let untrusted = pki::Authority::new("rogue-ca").client("admin", &["system:masters"]);
    let rogue = Credentials::Certificate { cert_pem: untrusted.cert.into(), key_pem: untrusted.key.into() };
    for credentials in [Credentials::None, Credentials::Token("wrong".into()), rogue] {
        let connection = portico.control_with(credentials);
        for method in methods() {
            let want = if is_health(&method) { Code::Ok } else { Code::Unauthenticated };
            assert_eq!(code(&connection, &method).await, want, "{method}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_except_health_requires_permission() {
    let portico = Portico::start().await;
    let connection = portico.control_with(Credentials::Token("alice-token".into()));
    let methods = methods();
    assert!(methods.len() >= 25, "{methods:?}");
    for method in methods {
        let want = match method.as_str() {
            health if is_health(health) => Code::Ok,
            // All users who may read discovery may call it.
            "/portico.objects.v1.Objects/Resources" => Code::Ok,
            _ => Code::PermissionDenied,
        };
        assert_eq!(code(&connection, &method).await, want, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_facades_stream_the_configuration_and_fetch_documents() {
    let portico = Portico::start().await;
    let connection = portico.control_with(Credentials::Token("admin-token".into()));
    for method in [
        "/portico.config.v1.Config/Stream",
        "/portico.config.v1.Config/Sign",
        "/portico.catalog.v1.Catalog/Get",
    ] {
        assert_eq!(code(&connection, method).await, Code::PermissionDenied, "{method}");
    }
    assert_eq!(code(&connection, "/portico.config.v1.Config/Facades").await, Code::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_facades_may_act_for_other_users() {
    let portico = Portico::start().await;
    let connection = portico.control_with(Credentials::Token("alice-token".into()));
    let admin = portico_proto::identity_v1::User {
        name: "admin".into(),
        groups: vec!["system:masters".into()],
        ..Default::default()
    };
    let mut grpc = tonic::client::Grpc::new(connection.channel().unwrap());
    grpc.ready().await.unwrap();
    let method = "/portico.objects.v1.Objects/Do";
    let mut request = Request::new(message(method));
    request.metadata_mut().insert("authorization", "Bearer alice-token".parse().unwrap());
    let forged = tonic::metadata::MetadataValue::from_bytes(&admin.encode_to_vec());
    request.metadata_mut().insert_bin("portico-user-bin", forged);
    let refused = grpc.unary(request, method.parse().unwrap(), RawCodec).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("\"alice\""), "{}", refused.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_describes_every_service_in_both_versions() {
    use tonic_reflection::pb::{v1, v1alpha};
    let portico = Portico::start().await;
    let connection = portico.control_with(Credentials::Token("admin-token".into()));
    let mut wanted: Vec<String> =
        methods().iter().map(|m| m[1..].split('/').next().unwrap().to_owned()).collect();
    wanted.dedup();

    macro_rules! listed {
        ($version:ident) => {{
            let question = $version::ServerReflectionRequest {
                host: String::new(),
                message_request: Some($version::server_reflection_request::MessageRequest::ListServices(
                    String::new(),
                )),
            };
            let mut request = Request::new(futures::stream::iter([question]));
            request.metadata_mut().insert("authorization", "Bearer admin-token".parse().unwrap());
            let mut client = $version::server_reflection_client::ServerReflectionClient::new(
                connection.channel().unwrap(),
            );
            let mut answers = client.server_reflection_info(request).await.unwrap().into_inner();
            let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
            let $version::server_reflection_response::MessageResponse::ListServicesResponse(list) = answer
            else {
                panic!("{answer:?}")
            };
            let mut names: Vec<String> = list.service.into_iter().map(|s| s.name).collect();
            names.sort();
            names
        }};
    }
    for (own, names) in [("v1", listed!(v1)), ("v1alpha", listed!(v1alpha))] {
        // Each version lists itself and not the other, because a client uses only one of them.
        let listed = |service: &String| {
            !service.starts_with("grpc.reflection.") || service.contains(&format!(".{own}."))
        };
        for service in wanted.iter().filter(|service| listed(service)) {
            assert!(names.contains(service), "{own}: {service} is not among {names:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_describes_the_details_that_errors_carry() {
    use tonic_reflection::pb::v1;
    use v1::server_reflection_request::MessageRequest;
    use v1::server_reflection_response::MessageResponse;
    let portico = Portico::start().await;
    let connection = portico.control_with(Credentials::Token("admin-token".into()));
    let symbols = ["google.rpc.BadRequest", "google.rpc.ErrorInfo", "google.rpc.RetryInfo"];
    let questions = symbols.map(|symbol| v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::FileContainingSymbol(symbol.to_owned())),
    });
    let mut request = Request::new(futures::stream::iter(questions));
    request.metadata_mut().insert("authorization", "Bearer admin-token".parse().unwrap());
    let channel = connection.channel().unwrap();
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel);
    let mut answers = client.server_reflection_info(request).await.unwrap().into_inner();
    for symbol in symbols {
        let answer = answers.message().await.unwrap().unwrap().message_response;
        assert!(matches!(answer, Some(MessageResponse::FileDescriptorResponse(_))), "{symbol}: {answer:?}");
    }
}
