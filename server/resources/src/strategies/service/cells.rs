//! Table cells of Services.

use portico_machinery::{Cursor, Object};

/// Returns the cell of a function that the data file names.
pub(super) fn cell(function: &str, object: &Object) -> String {
    let spec = object.at(&["spec"]);
    match function {
        "service-cluster-ip" => {
            or_none(texts(&spec.field("clusterIPs")).into_iter().next().unwrap_or_default())
        }
        "service-external-ip" => external_ip(object, &spec),
        "service-ports" => ports(&spec),
        _ => String::new(),
    }
}

fn texts(list: &Cursor<'_>) -> Vec<String> {
    list.items().map(|w| w.str().to_owned()).collect()
}

fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}

fn external_ip(object: &Object, spec: &Cursor<'_>) -> String {
    let external = texts(&spec.field("externalIPs"));
    match spec.field("type").str() {
        "ClusterIP" | "NodePort" => or_none(external.join(",")),
        "ExternalName" => spec.field("externalName").str().to_owned(),
        "LoadBalancer" => {
            let mut ingress: Vec<String> = object
                .at(&["status", "loadBalancer", "ingress"])
                .items()
                .map(|i| match i.field("ip").str() {
                    "" => i.field("hostname").str().to_owned(),
                    ip => ip.to_owned(),
                })
                .filter(|w| !w.is_empty())
                .collect();
            ingress.sort_unstable();
            ingress.dedup();
            ingress.extend(external);
            if ingress.is_empty() { "<pending>".to_owned() } else { ingress.join(",") }
        }
        _ => "<unknown>".to_owned(),
    }
}

fn ports(spec: &Cursor<'_>) -> String {
    let texts: Vec<String> = spec
        .field("ports")
        .items()
        .map(|p| {
            let (port, protocol) = (p.field("port").i64().unwrap_or(0), p.field("protocol").str());
            match p.field("nodePort").i64().unwrap_or(0) {
                0 => format!("{port}/{protocol}"),
                node => format!("{port}:{node}/{protocol}"),
            }
        })
        .collect();
    or_none(texts.join(","))
}
