//! Bodies that are designed to be expensive, of nearly 3 MiB or with the maximum number of values: time for which each keeps
//! the server busy, and the latency of another user's GETs in the meantime, on Portico and kube-apiserver.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Request};
use http_body_util::Full;

use super::objects::{COLLECTION, config_map};
use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON};
use crate::load::{drive, get};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::{BenchContext, Failure};

const NAME: &str = "hostile";
/// Size just below the limit of a body.
const BYTES: usize = 3 * 1024 * 1024 - 1024;
/// Values accepted in one body, with room for the values around them.
const VALUES: usize = 99_900;
const MAX_MS: f64 = 100.0;
/// Clients that send such bodies continuously while another user reads.
const ATTACKERS: usize = 8;
const OTHERS_P99_MS: f64 = 20.0;
const LIVEZ_P99_MS: f64 = 50.0;
const LIVEZ: &str = "/livez";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// Objects that selectors are compared with.
const LABELLED: usize = 5_000;
const WRITERS: usize = 16;
/// Terms of a selector.
const SELECTED: usize = 3_000;
/// Maximum bytes of a selector: the HTTP library accepts URIs of up to 65,534.
const MAX_SELECTOR: usize = 65_000;
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PODS: &str = "/api/v1/namespaces/default/pods";
const OBJECT: &str = "/api/v1/namespaces/default/configmaps/hostile";
const APPLIED: &str = "/api/v1/namespaces/default/configmaps/applied?fieldManager=bench";

struct Body {
    name: &'static str,
    method: Method,
    path: &'static str,
    media_type: &'static str,
    text: String,
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let endpoint = portico.endpoint(setting)?;
    endpoint.client().await?.send_ok(Method::POST, COLLECTION, config_map("hostile", 'h')).await?;
    let bodies = bodies();
    let mut slowest = ("", 0.0_f64);
    for body in &bodies {
        let mut best = f64::INFINITY;
        for _ in 0..setting.options.rounds {
            best = best.min(once(&endpoint, body).await?);
        }
        note(&format!("{:<40} {best:>8.0} ms", body.name));
        if best > slowest.1 {
            slowest = (body.name, best);
        }
    }
    let figure = format!("the slowest body ({})", slowest.0);
    report.add(NAME, figure, slowest.1, "ms", Goal::AtMost(MAX_MS));
    measure_other_users(setting, "portico", &endpoint, &bodies, report).await?;
    drop(portico);
    let Some(kube) = Kube::start(setting).await? else {
        report.skip("the same on kube-apiserver", SKIP_REASON);
        return Ok(());
    };
    let endpoint = kube.endpoint(setting)?;
    endpoint.client().await?.send_ok(Method::POST, COLLECTION, config_map("hostile", 'h')).await?;
    measure_other_users(setting, "kube-apiserver", &endpoint, &bodies, report).await
}

/// Measures another user's GETs and health checks, without and during each attack. Only Portico has goals.
async fn measure_other_users(
    setting: &BenchContext,
    server: &str,
    endpoint: &Endpoint,
    bodies: &[Body],
    report: &mut Report,
) -> Result<(), Failure> {
    let goal = |most| if server == "portico" { Goal::AtMost(most) } else { Goal::None };
    let time = Duration::from_secs(setting.options.seconds.max(5));
    let alone = get(endpoint, OBJECT, 1, time).await?.require_success("GET")?;
    report.add(
        NAME,
        format!("{server}, another user's GETs alone, p99"),
        alone.p99() / 1e3,
        "ms",
        Goal::None,
    );
    create_labeled(endpoint).await?;
    for (name, requests) in attacks(endpoint, bodies)? {
        let attack = drive(endpoint, ATTACKERS, time, move |client, sent| {
            Ok(requests[(client + sent) % requests.len()].clone())
        });
        let during = get(endpoint, OBJECT, 1, time);
        let (during, livez, attack) = tokio::join!(during, get(endpoint, LIVEZ, 1, time), attack);
        let (during, livez, attack) =
            (during?.require_success("GET")?, livez?.require_success("livez")?, attack?);
        note(&format!("{server}, {name}: {:.0} responses to {ATTACKERS} attackers", attack.response_count()));
        let during_attack = format!("during {name} from {ATTACKERS} clients, p99");
        let figure = format!("{server}, another user's GETs {during_attack}");
        report.add(NAME, figure, during.p99() / 1e3, "ms", goal(OTHERS_P99_MS));
        let figure = format!("{server}, health checks {during_attack}");
        report.add(NAME, figure, livez.p99() / 1e3, "ms", goal(LIVEZ_P99_MS));
    }
    Ok(())
}

type Attack = (&'static str, Vec<Request<Full<Bytes>>>);

/// Returns the requests that several clients repeat while another user reads.
fn attacks(endpoint: &Endpoint, bodies: &[Body]) -> Result<Vec<Attack>, Failure> {
    let requests: Vec<_> = bodies.iter().map(|body| body.request(endpoint)).collect::<Result<_, _>>()?;
    let aliases = Body {
        name: "YAML aliases",
        method: Method::POST,
        path: COLLECTION,
        media_type: YAML,
        text: aliases(9),
    };
    let selector = |term: &str| {
        let terms: Vec<String> = (0..SELECTED).map(|at| term.replace('#', &at.to_string())).collect();
        let mut terms = terms.join(",");
        let last = terms.get(..MAX_SELECTOR).and_then(|terms| terms.rfind(','));
        terms.truncate(last.unwrap_or(terms.len()));
        terms
    };
    let absent = format!("{COLLECTION}?labelSelector={}", selector("!zz#"));
    let unequal = format!("{COLLECTION}?limit=1&labelSelector={}", selector("l1%21=#"));
    let names = format!("{COLLECTION}?limit=1&fieldSelector={}", selector("metadata.name%21=n#"));
    let mut table = endpoint.get(COLLECTION)?;
    table.headers_mut().insert(ACCEPT, HeaderValue::from_static(TABLE));
    Ok(vec![
        ("expensive bodies", requests),
        ("YAML aliases of 500 bytes", vec![aliases.request(endpoint)?]),
        (
            "long selectors of labels and fields",
            vec![endpoint.get(&absent)?, endpoint.get(&unequal)?, endpoint.get(&names)?],
        ),
        ("LISTs as tables", vec![table]),
    ])
}

/// Creates objects with ten labels each.
async fn create_labeled(endpoint: &Endpoint) -> Result<(), Failure> {
    let labels: Vec<String> = (0..10).map(|at| format!(r#""l{at}":"v{at}""#)).collect();
    let labels = labels.join(",");
    let writers = (0..WRITERS).map(|writer| {
        let labels = labels.clone();
        async move {
            let mut client = endpoint.client().await?;
            for at in (writer..LABELLED).step_by(WRITERS) {
                let meta = format!(r#""metadata":{{"name":"labelled-{at}","labels":{{{labels}}}}}"#);
                let object = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap",{meta}}}"#);
                client.send_ok(Method::POST, COLLECTION, object).await?;
            }
            Ok::<_, Failure>(())
        }
    });
    futures::future::try_join_all(writers).await.map(drop)
}

/// Returns YAML with nested lists of aliases.
fn aliases(levels: usize) -> String {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..levels {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    text
}

impl Body {
    fn request(&self, endpoint: &Endpoint) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = endpoint.json(self.method.clone(), self.path, self.text.clone())?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        Ok(request)
    }
}

/// Returns the milliseconds of a request with any response.
async fn once(endpoint: &Endpoint, body: &Body) -> Result<f64, Failure> {
    let mut client = endpoint.client().await?;
    let request = body.request(endpoint)?;
    let start = Instant::now();
    client.exchange(request).await?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn bodies() -> Vec<Body> {
    let post = |name, path, text| Body { name, method: Method::POST, path, media_type: JSON, text };
    let patch = |name, path, media_type, text| Body { name, method: Method::PATCH, path, media_type, text };
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"#;
    let meta = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x",""#;
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":["#;
    let applied = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"#;
    let finalizer = |at: usize, out: &mut String| write!(out, "\"a.b/{at}\"");
    vec![
        post("nested arrays", COLLECTION, "[".repeat(BYTES)),
        post("nested objects", COLLECTION, r#"{"a":"#.repeat(BYTES / 5)),
        post(
            "keys, more than accepted",
            COLLECTION,
            filled_up_to(BYTES, map, "}}", |at, out| write!(out, "\"k{at}\":\"\"")),
        ),
        post("keys", COLLECTION, filled(map, "}}", 1, |at, out| write!(out, "\"k{at}\":\"\""))),
        post("one repeated key", COLLECTION, filled(map, "}}", 1, |_, out| write!(out, "\"k\":\"\""))),
        post("bad keys", COLLECTION, filled(map, "}}", 1, |at, out| write!(out, "\"/{at}\":\"\""))),
        post(
            "bad labels",
            COLLECTION,
            filled(&format!("{meta}labels\":{{"), "}}}", 1, |at, out| write!(out, "\"/{at}\":\"_\"")),
        ),
        post(
            "several controlling owners",
            COLLECTION,
            filled(&format!("{meta}ownerReferences\":["), "]}}", 6, |at, out| {
                write!(out, r#"{{"apiVersion":"v1","kind":"Pod","name":"a","uid":"{at}","controller":true}}"#)
            }),
        ),
        post(
            "containers",
            PODS,
            filled(pod, "]}}", 3, |at, out| write!(out, r#"{{"name":"c{at}","image":"i"}}"#)),
        ),
        post(
            "containers with one name",
            PODS,
            filled(pod, "]}}", 2, |_, out| write!(out, r#"{{"name":"c"}}"#)),
        ),
        post(
            "conflicting host ports",
            PODS,
            filled(&format!(r#"{pod}{{"name":"c","image":"i","ports":["#), "]}]}}", 3, |_, out| {
                write!(out, r#"{{"containerPort":1,"hostPort":1}}"#)
            }),
        ),
        patch(
            "merge patch",
            OBJECT,
            "application/merge-patch+json",
            filled("{\"data\":{", "}}", 1, |at, out| write!(out, "\"k{at}\":null")),
        ),
        patch(
            "strategic merge patch of a list",
            OBJECT,
            "application/strategic-merge-patch+json",
            filled("{\"metadata\":{\"finalizers\":[", "]}}", 1, finalizer),
        ),
        patch(
            "apply keys",
            APPLIED,
            "application/apply-patch+yaml",
            filled(applied, "}}", 1, |at, out| write!(out, "\"k{at}\":\"\"")),
        ),
        Body {
            media_type: YAML,
            ..post("YAML keys", COLLECTION, filled(map, "}}", 1, |at, out| write!(out, "k{at}: x")))
        },
        Body { media_type: YAML, ..post("nested YAML", COLLECTION, "- ".repeat(BYTES / 2)) },
    ]
}

/// Returns as many items as fit between `begin` and `end`, each of `values` values, within the accepted number of values.
fn filled(
    begin: &str,
    end: &str,
    values: usize,
    item: impl Fn(usize, &mut String) -> std::fmt::Result,
) -> String {
    filled_up_to(VALUES / values, begin, end, item)
}

/// Returns as many items as fit between `begin` and `end`, and at most `most`.
fn filled_up_to(
    most: usize,
    begin: &str,
    end: &str,
    item: impl Fn(usize, &mut String) -> std::fmt::Result,
) -> String {
    let mut text = String::with_capacity(BYTES);
    text.push_str(begin);
    for at in 0.. {
        let before = text.len();
        if at > 0 {
            text.push(',');
        }
        if at == most || item(at, &mut text).is_err() || text.len() + end.len() > BYTES {
            text.truncate(before);
            break;
        }
    }
    text.push_str(end);
    text
}
