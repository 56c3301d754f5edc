//! Legacy text format of an event: one line (upstream's `EventString`).

use portico_gostd::strconv::quote;
use portico_gostd::time::Time;

use super::Event;

impl Event {
    /// Encodes the event as one line of text, without a line break at the end.
    #[must_use]
    pub fn to_line(&self) -> String {
        let user = &self.user;
        let (name, groups) = match user.name.as_str() {
            "" => ("<none>", "<none>".to_owned()),
            name if user.groups.is_empty() => (name, "<none>".to_owned()),
            name => (name, quote_all(&user.groups)),
        };
        let (as_user, as_groups) = match &self.impersonated_user {
            None => ("<self>", "<lookup>".to_owned()),
            Some(user) if user.groups.is_empty() => (user.name.as_str(), "<lookup>".to_owned()),
            Some(user) => (user.name.as_str(), quote_all(&user.groups)),
        };
        let namespace = self.object_ref.as_ref().map_or("", |object| object.namespace.as_str());
        let response = self.response_status.as_ref().map(|status| status.code.to_string());
        let response = response.as_deref().unwrap_or("<deferred>");
        let fields = [
            ("id", self.audit_id.as_str()),
            ("stage", self.stage.as_str()),
            ("ip", self.source_ips.first().map_or("<unknown>", String::as_str)),
            ("method", &self.verb),
            ("user", name),
            ("groups", &groups),
            ("as", as_user),
            ("asgroups", &as_groups),
            ("user-agent", &self.user_agent),
            ("namespace", if namespace.is_empty() { "<none>" } else { namespace }),
            ("uri", &self.request_uri),
        ];
        let fields: Vec<String> = fields.map(|(name, value)| format!("{name}={}", quote(value))).into();
        let at = Time::from(self.request_received);
        format!("{at} AUDIT: {} response=\"{response}\"", fields.join(" "))
    }
}

fn quote_all(values: &[String]) -> String {
    values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(",")
}
