//! Query options of connections: parsing as upstream, and the query that is passed to the kubelet.

use portico_machinery::Status;

use super::kind::Kind;
use portico_registry::Result;
use portico_registry::options::{Query, number_error};

/// Returns the query for a stream of the kubelet, with sorted keys.
pub(super) fn stream(connection: Kind, query: &Query<'_>) -> Result<String> {
    if connection == Kind::Ports {
        let ports = ports(query)?;
        return Ok(if ports.is_empty() { String::new() } else { format!("port={}", ports.join("%2C")) });
    }
    let mut pairs = Vec::new();
    if connection == Kind::Exec {
        pairs.extend(query.escaped("command").into_iter().map(|word| format!("command={word}")));
    }
    for (flag, name) in [("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty")] {
        if query.flag(flag) == Some(true) {
            pairs.push(format!("{name}=1"));
        }
    }
    Ok(pairs.join("&"))
}

/// Parses `ports`, which can be repeated and can contain several ports separated by commas.
fn ports(query: &Query<'_>) -> Result<Vec<String>> {
    let mut ports = Vec::new();
    for text in query.all("ports").iter().flat_map(|list| list.split(',')) {
        // Go accepts no sign here.
        let read = if text.starts_with('+') { "+".parse() } else { text.parse::<u16>() };
        let port = read.map_err(|error| {
            let why = number_error("ParseUint", text, error.kind());
            Box::new(Status::bad_request(format!("cannot convert to []int32: {why}")))
        })?;
        ports.push(port.to_string());
    }
    Ok(ports)
}

/// Parses the first value of a key as a 64-bit integer, with the error of Go.
pub(super) fn integer(query: &Query<'_>, key: &str) -> Result<Option<i64>> {
    let Some(text) = query.first(key) else { return Ok(None) };
    let read = text.parse::<i64>();
    read.map(Some)
        .map_err(|error| Box::new(Status::bad_request(number_error("ParseInt", text, error.kind()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(connection: Kind, query: &str) -> Result<String, String> {
        stream(connection, &Query::parse(query)).map_err(|status| status.message)
    }

    #[test]
    fn streams_are_asked_for_in_the_kubelets_words() {
        let exec = "container=c&command=sh&command=-c&stdin=true&stdout&stderr=0&tty=false&x=y";
        assert_eq!(translated(Kind::Exec, exec).unwrap(), "command=sh&command=-c&input=1&output=1");
        let bytes = "command=%ff%fe&command=a+b%26%C3%A9&command=";
        assert_eq!(translated(Kind::Exec, bytes).unwrap(), "command=%FF%FE&command=a+b%26%C3%A9&command=");
        assert_eq!(translated(Kind::Attach, exec).unwrap(), "input=1&output=1");
        assert_eq!(translated(Kind::Ports, "ports=80,81&ports=82").unwrap(), "port=80%2C81%2C82");
        assert_eq!(translated(Kind::Ports, "").unwrap(), "");
    }

    #[test]
    fn numbers_are_refused_in_gos_words() {
        let wrong = |text| translated(Kind::Ports, text).unwrap_err();
        let prefix = "cannot convert to []int32: strconv.ParseUint: parsing";
        assert_eq!(wrong("ports=70000"), format!("{prefix} \"70000\": value out of range"));
        assert_eq!(wrong("ports=%2B5"), format!("{prefix} \"+5\": invalid syntax"));
        assert_eq!(wrong("ports="), format!("{prefix} \"\": invalid syntax"));
        let number = |text: &str| integer(&Query::parse(text), "n").map_err(|s| s.message);
        assert_eq!(number("m=1"), Ok(None));
        assert_eq!(number("n=-7&n=x"), Ok(Some(-7)));
        assert_eq!(number("n=abc").unwrap_err(), "strconv.ParseInt: parsing \"abc\": invalid syntax");
    }
}
