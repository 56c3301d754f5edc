//! Uploads over HTTP/2 that the client cuts: a reset without an error means that no more of the response is needed, but is not
//! the end of the request.

use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use http::{Method, Request};

use super::backend::{Backend, Upload};
use super::rig::{Rig, route, served};
use super::stalled::{http2, request};

/// Codes that can end a stream whose request is not complete.
const CODES: [Reason; 3] = [Reason::NO_ERROR, Reason::CANCEL, Reason::REFUSED_STREAM];

/// Creates the head of an upload by an authorized user.
fn upload(method: Method, path: &str, media_type: &'static str) -> Request<()> {
    let mut request = request(method, path);
    let headers = request.headers_mut();
    headers.insert("authorization", http::HeaderValue::from_static("Bearer master"));
    headers.insert("content-type", http::HeaderValue::from_static(media_type));
    request
}

/// Waits until everything sent before on this connection has arrived.
async fn wait_until_received(sender: &mut SendRequest<Bytes>) {
    let (answer, _) = sender.send_request(upload(Method::GET, "/livez", ""), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_patch_that_is_cut_does_not_reach_the_control_service() {
    let rig = Rig::start(vec![served("apps", "v1")]).await.until_configured().await;
    let mut sender = http2(&rig, 1 << 16).await;
    let path = "/apis/apps/v1/namespaces/n/deployments/d?fieldManager=m";
    // Each prefix is valid on its own: of the patch in YAML, and of the JSON value.
    for (media_type, begin) in
        [("application/apply-patch+yaml", "a: 1\n"), ("application/merge-patch+json", "{}")]
    {
        for code in CODES.repeat(8) {
            let (response, mut body) =
                sender.send_request(upload(Method::PATCH, path, media_type), false).unwrap();
            body.send_data(begin.into(), false).unwrap();
            wait_until_received(&mut sender).await;
            body.send_reset(code);
            assert!(response.await.is_err());
            wait_until_received(&mut sender).await;
        }
    }
    let whole = upload(Method::PATCH, path, "application/apply-patch+yaml");
    let (response, mut body) = sender.send_request(whole, false).unwrap();
    body.send_data("a: 1\n".into(), false).unwrap();
    body.send_data("b: 2\n".into(), true).unwrap();
    response.await.unwrap();
    let bodies: Vec<_> =
        rig.control.received_calls().into_iter().map(|received| received.call.body).collect();
    assert_eq!(bodies, ["a: 1\nb: 2\n"]);
}

#[tokio::test]
async fn a_cut_upload_is_cut_at_the_backend_as_well() {
    let mut backend = Backend::start("svc.ns.svc");
    let rig = Rig::start(route("v1.g.example", &backend)).await.until_configured().await;
    let mut sender = http2(&rig, 1 << 16).await;
    let path = "/apis/g.example/v1/namespaces/n/things/upload";
    for code in CODES {
        let (response, mut body) =
            sender.send_request(upload(Method::PUT, path, "application/yaml"), false).unwrap();
        body.send_data("a: 1\n".into(), false).unwrap();
        assert_eq!(backend.uploads.recv().await, Some(Upload::Started));
        wait_until_received(&mut sender).await;
        body.send_reset(code);
        assert!(response.await.is_err());
        assert_eq!(backend.uploads.recv().await, Some(Upload::Cut), "{code:?}");
    }
    let (response, mut body) =
        sender.send_request(upload(Method::PUT, path, "application/yaml"), false).unwrap();
    body.send_data("a: 1\n".into(), true).unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
    let uploads = [backend.uploads.recv().await.unwrap(), backend.uploads.recv().await.unwrap()];
    assert_eq!(uploads, [Upload::Started, Upload::Completed("a: 1\n".into())]);
}
