//! Watches over WebSocket, with an independent WebSocket client.

use futures::{SinkExt, StreamExt};
use http::Request;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Launch, Portico, WAIT_LIMIT, wait_until};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::audit::{METADATA, events, lines, with_audit_log};

type Socket = WebSocketStream<TlsStream<TcpStream>>;
type Headers = &'static [(&'static str, &'static str)];

/// Makes the handshake for this path and query, with these headers in addition to the usual ones.
async fn open(portico: &Portico, query: &str, headers: Headers) -> Result<(Socket, Option<String>), Error> {
    let url = format!("wss://{}{CONFIG_MAPS}?watch=true&{query}", portico.https());
    let mut request: Request<()> = url.into_client_request().unwrap();
    for (name, value) in [("origin", "http://localhost"), ("authorization", "Bearer admin-token")] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let stream = portico.admin().dial().await.unwrap();
    let (socket, response) = client_async(request, stream).await?;
    let protocol = response.headers().get("sec-websocket-protocol");
    Ok((socket, protocol.map(|p| p.to_str().unwrap().to_owned())))
}

async fn config_map(portico: &Portico, name: &str) {
    let created = portico.admin().post(CONFIG_MAPS, &json!({"metadata": {"name": name}})).await;
    assert_eq!(created.status, 201, "{}", created.text());
}

async fn next(socket: &mut Socket) -> Message {
    let message = tokio::time::timeout(WAIT_LIMIT, socket.next()).await;
    message.unwrap().unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_one_message_and_the_end_is_a_close_frame() {
    let portico = Portico::start().await;
    config_map(&portico, "before").await;
    let (mut socket, protocol) = open(&portico, "timeoutSeconds=2", &[]).await.unwrap();
    assert_eq!(protocol, None);
    config_map(&portico, "after").await;
    let mut names = Vec::new();
    loop {
        match next(&mut socket).await {
            Message::Text(text) => {
                let event: Value = serde_json::from_str(&text).unwrap();
                assert!(text.ends_with('\n') && event["type"] == "ADDED", "{text}");
                names.push(event["object"]["metadata"]["name"].as_str().unwrap().to_owned());
            }
            Message::Close(frame) => {
                assert_eq!(frame.unwrap().code, CloseCode::Normal);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    names.retain(|name| name == "before" || name == "after");
    assert_eq!(names, ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subprotocol_is_negotiated_and_protobuf_is_binary() {
    let portico = Portico::start().await;
    config_map(&portico, "one").await;
    let query = "fieldSelector=metadata.name=one";
    let headers: Headers = &[("sec-websocket-protocol", "base64.binary.k8s.io")];
    let (mut socket, protocol) = open(&portico, query, headers).await.unwrap();
    assert_eq!(protocol.as_deref(), Some("base64.binary.k8s.io"));
    assert!(matches!(next(&mut socket).await, Message::Text(_)));
    socket.send(Message::Ping("x".into())).await.unwrap();
    assert_eq!(next(&mut socket).await, Message::Pong("x".into()));
    let headers: Headers = &[("accept", "application/vnd.kubernetes.protobuf;stream=watch")];
    let (mut socket, _) = open(&portico, query, headers).await.unwrap();
    let Message::Binary(event) = next(&mut socket).await else { panic!("protobuf is binary") };
    // Field 1 of WatchEvent is its type; the envelope is inside.
    assert_eq!(&event[..7], b"\x0a\x05ADDED");
    assert!(event.windows(4).any(|w| w == b"k8s\0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_websocket_watches_are_refused_over_http() {
    let portico = Portico::start().await;
    let refusals: [(Headers, &str, u16); 4] = [
        (&[("origin", "nonsense")], "", 403),
        (&[("sec-websocket-version", "12")], "", 400),
        (&[("accept", "application/yaml")], "", 406),
        (&[], "labelSelector=(", 400),
    ];
    for (headers, query, code) in refusals {
        match open(&portico, query, headers).await {
            Err(Error::Http(response)) => assert_eq!(response.status(), code, "{headers:?}"),
            other => panic!("{headers:?}: {:?}", other.map(|(_, protocol)| protocol)),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_ends_its_watch() {
    let portico = Portico::start().await;
    let (mut socket, _) = open(&portico, "", &[]).await.unwrap();
    socket.close(None).await.unwrap();
    let ended = async { while let Some(Ok(_)) = socket.next().await {} };
    tokio::time::timeout(WAIT_LIMIT, ended).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_counted_and_incomplete_in_the_audit_log_until_it_ends() {
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let portico = launch.start().await;
    let (mut socket, _) =
        open(&portico, "fieldSelector=metadata.name=a", &[("audit-id", "watch")]).await.unwrap();
    config_map(&portico, "a").await;
    assert!(matches!(next(&mut socket).await, Message::Text(_)), "the handshake has completed");
    let stages = || {
        let of_watch = lines(&log).into_iter().filter(|event| event["auditID"] == "watch");
        of_watch.map(|mut event| event["stage"].take()).collect::<Vec<Value>>()
    };
    assert_eq!(stages(), ["RequestReceived", "ResponseStarted"]);
    let under_way = async |count: u32| {
        let metrics = portico.admin().get("/metrics").await.text();
        let series =
            "apiserver_longrunning_requests{verb=\"WATCH\",group=\"\",version=\"v1\",resource=\"configmaps\"";
        metrics.lines().any(|line| line.starts_with(series) && line.ends_with(&format!(" {count}")))
    };
    assert!(under_way(1).await);
    socket.close(None).await.unwrap();
    assert_eq!(events(&log, "watch", 3).await[2]["stage"], "ResponseComplete");
    wait_until("the watch has ended", async || under_way(0).await).await;
}
