//! Query options of connections: parsing as upstream, and the query that is passed to the kubelet.

use portico_machinery::Status;

use super::kind::ConnectionKind;
use portico_registry::Result;
use portico_registry::options::{Query, number_error};

/// Returns the query for a stream of the kubelet, with sorted keys.
pub(super) fn stream_query(connection: ConnectionKind, query: &Query<'_>) -> Result<String> {
    if connection == ConnectionKind::PortForward {
        let ports = parse_ports(query)?;
        return Ok(if ports.is_empty() { String::new() } else { format!("port={}", ports.join("%2C")) });
    }
    let mut pairs = Vec::new();
    if connection == ConnectionKind::Exec {
        pairs.extend(query.escaped("command").into_iter().map(|argument| format!("command={argument}")));
    }
    for (flag, name) in [("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty")] {
        if query.flag(flag) == Some(true) {
            pairs.push(format!("{name}=1"));
        }
    }
    Ok(pairs.join("&"))
}

/// Parses `ports`, which can be repeated and can contain several ports separated by commas.
fn parse_ports(query: &Query<'_>) -> Result<Vec<String>> {
    let mut ports = Vec::new();
    for text in query.all("ports").iter().flat_map(|list| list.split(',')) {
        // Go accepts no sign here.
        let read = if text.starts_with('+') { "+".parse() } else { text.parse::<u16>() };
        let port = read.map_err(|error| {
            let message = number_error("ParseUint", text, error.kind());
            Box::new(Status::bad_request(format!("cannot convert to []int32: {message}")))
        })?;
        ports.push(port.to_string());
    }
    Ok(ports)
}

/// Parses the first value of a key as a 64-bit integer, with the error of Go.
pub(super) fn parse_int64(query: &Query<'_>, key: &str) -> Result<Option<i64>> {
    let Some(text) = query.first(key) else { return Ok(None) };
    let read = text.parse::<i64>();
    read.map(Some)
        .map_err(|error| Box::new(Status::bad_request(number_error("ParseInt", text, error.kind()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(connection: ConnectionKind, query: &str) -> Result<String, String> {
        stream_query(connection, &Query::parse(query)).map_err(|status| status.message)
    }

    #[test]
    fn stream_options_are_translated_for_the_kubelet() {
        let exec = "container=c&command=sh&command=-c&stdin=true&stdout&stderr=0&tty=false&x=y";
        assert_eq!(translate(ConnectionKind::Exec, exec).unwrap(), "command=sh&command=-c&input=1&output=1");
        let bytes = "command=%ff%fe&command=a+b%26%C3%A9&command=";
        assert_eq!(
            translate(ConnectionKind::Exec, bytes).unwrap(),
            "command=%FF%FE&command=a+b%26%C3%A9&command="
        );
        assert_eq!(translate(ConnectionKind::Attach, exec).unwrap(), "input=1&output=1");
        assert_eq!(
            translate(ConnectionKind::PortForward, "ports=80,81&ports=82").unwrap(),
            "port=80%2C81%2C82"
        );
        assert_eq!(translate(ConnectionKind::PortForward, "").unwrap(), "");
    }

    #[test]
    fn invalid_numbers_give_the_errors_of_go() {
        let wrong = |text| translate(ConnectionKind::PortForward, text).unwrap_err();
        let prefix = "cannot convert to []int32: strconv.ParseUint: parsing";
        assert_eq!(wrong("ports=70000"), format!("{prefix} \"70000\": value out of range"));
        assert_eq!(wrong("ports=%2B5"), format!("{prefix} \"+5\": invalid syntax"));
        assert_eq!(wrong("ports="), format!("{prefix} \"\": invalid syntax"));
        let number = |text: &str| parse_int64(&Query::parse(text), "n").map_err(|s| s.message);
        assert_eq!(number("m=1"), Ok(None));
        assert_eq!(number("n=-7&n=x"), Ok(Some(-7)));
        assert_eq!(number("n=abc").unwrap_err(), "strconv.ParseInt: parsing \"abc\": invalid syntax");
    }
}
