//! `pods/log`: output of a container.

use portico_machinery::connect::{ConnectKind, DialTarget, Security};
use portico_machinery::field::Error;
use portico_machinery::{GroupKind, Status};
use portico_schema::rfc3339;
use url::form_urlencoded::Serializer;

use super::{ConnectionResolver, options};
use portico_registry::Result;
use portico_registry::options::Query;

/// Zero time of Go, which an empty `sinceTime` means.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// `PodLogOptions` without the container.
#[derive(Debug, Default, PartialEq, Eq)]
struct LogOptions {
    follow: bool,
    previous: bool,
    since_seconds: Option<i64>,
    since_time: Option<String>,
    timestamps: bool,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    /// `insecureSkipTLSVerifyBackend`.
    skip_tls_verify: bool,
    /// True if `stream` is set. The feature gate of this option is off.
    stream: bool,
}

impl ConnectionResolver<'_> {
    /// Returns the target of the log, or `None` if the pod has no node.
    pub(super) async fn log_target(&self) -> Result<Option<DialTarget>> {
        let options = LogOptions::parse(self.request.query)?;
        options.check(self.name())?;
        let pod = self.parent(self.name()).await?;
        let container = self.container(&pod)?;
        let node = pod.str_at("spec.nodeName");
        if node.is_empty() {
            return Ok(None);
        }
        Ok(Some(DialTarget {
            targets: vec![self.kubelet_target(node, &self.request.served_resource.resource).await?],
            security: Security::Kubelet { verify: !options.skip_tls_verify },
            path: format!("/containerLogs/{}/{}/{container}", pod.namespace(), pod.name()),
            query: options.query(),
            kind: ConnectKind::Log,
            ..DialTarget::default()
        }))
    }
}

impl LogOptions {
    fn parse(query: &Query<'_>) -> Result<Self> {
        let flag = |key| query.flag(key) == Some(true);
        Ok(Self {
            follow: flag("follow"),
            previous: flag("previous"),
            since_seconds: options::parse_int64(query, "sinceSeconds")?,
            since_time: query.first("sinceTime").map(time).transpose()?,
            timestamps: flag("timestamps"),
            tail_lines: options::parse_int64(query, "tailLines")?,
            limit_bytes: options::parse_int64(query, "limitBytes")?,
            skip_tls_verify: flag("insecureSkipTLSVerifyBackend"),
            stream: query.first("stream").is_some(),
        })
    }

    fn check(&self, name: &str) -> Result<()> {
        let mut errors = Vec::new();
        if let Some(lines) = self.tail_lines.filter(|lines| *lines < 0) {
            errors.push(Error::invalid(&"tailLines".into(), lines, "must be greater than or equal to 0"));
        }
        let mut positive = |key: &str, number: Option<i64>| {
            if let Some(number) = number.filter(|number| *number < 1) {
                errors.push(Error::invalid(&key.into(), number, "must be greater than 0"));
            }
        };
        positive("limitBytes", self.limit_bytes);
        if self.since_time.is_none() {
            positive("sinceSeconds", self.since_seconds);
        } else if self.since_seconds.is_some() {
            let text = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(Error::forbidden(&"".into(), text));
        }
        if self.stream {
            errors.push(Error::forbidden(&"stream".into(), "may not be specified"));
        }
        if errors.is_empty() {
            return Ok(());
        }
        let kind = GroupKind { group: String::new(), kind: "PodLogOptions".to_owned() };
        Err(Box::new(Status::invalid(&kind, name, &errors)))
    }

    /// Encodes the options that are set as a query for the kubelet, with sorted keys.
    fn query(&self) -> String {
        let mut out = Serializer::new(String::new());
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                out.append_pair(key, &value);
            }
        };
        let if_set = |flag: bool| flag.then(|| "true".to_owned());
        put("follow", if_set(self.follow));
        put("limitBytes", self.limit_bytes.map(|n| n.to_string()));
        put("previous", if_set(self.previous));
        put("sinceSeconds", self.since_seconds.map(|n| n.to_string()));
        put("sinceTime", self.since_time.clone());
        put("tailLines", self.tail_lines.map(|n| n.to_string()));
        put("timestamps", if_set(self.timestamps));
        out.finish()
    }
}

fn time(text: &str) -> Result<String> {
    match text {
        "" | "null" => Ok(ZERO_TIME.to_owned()),
        text => rfc3339(text).map_err(|error| Box::new(Status::bad_request(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str) -> Result<LogOptions, String> {
        LogOptions::parse(&Query::parse(query)).map_err(|status| status.message)
    }

    #[test]
    fn only_options_that_are_set_are_passed_to_the_kubelet() {
        for (query, expected) in [
            ("", ""),
            ("container=c&follow=false&previous=0&dryRun=All", ""),
            ("follow&timestamps=1", "follow=true&timestamps=true"),
            ("tailLines=0&limitBytes=5&sinceSeconds=7", "limitBytes=5&sinceSeconds=7&tailLines=0"),
            ("sinceTime=2026-01-02T03:04:05.6%2B01:00", "sinceTime=2026-01-02T02%3A04%3A05Z"),
            ("sinceTime=", "sinceTime=0001-01-01T00%3A00%3A00Z"),
        ] {
            assert_eq!(options(query).unwrap().query(), expected, "{query}");
        }
    }

    #[test]
    fn parse_errors_precede_validation_errors() {
        let unreadable = options("tailLines=abc&limitBytes=0").unwrap_err();
        assert_eq!(unreadable, "strconv.ParseInt: parsing \"abc\": invalid syntax");
        let time = options("sinceTime=yesterday").unwrap_err();
        assert!(time.starts_with("parsing time \"yesterday\" as "), "{time}");
        let wrong = |query| options(query).unwrap().check("p").unwrap_err().message;
        let message = wrong("tailLines=-1&limitBytes=0&sinceSeconds=0&stream=Stdout");
        for part in
            ["tailLines: ", "limitBytes: ", "sinceSeconds: ", "stream: Forbidden: may not be specified"]
        {
            assert!(message.contains(part), "{part} is not in {message}");
        }
        let both = wrong("sinceSeconds=0&sinceTime=2026-01-02T03:04:05Z");
        assert!(both.contains("at most one of") && !both.contains("greater"), "{both}");
    }
}
