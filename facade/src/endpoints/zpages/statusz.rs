//! `/statusz`: start time and version of the process, and links to other endpoints.

use axum::extract::{Request, State};
use jiff::Timestamp;
use serde::Serialize;

use super::negotiation::{Page, Version, object, serve_page};
use crate::endpoints::state::SharedEndpoints;
use crate::request::Response;
use crate::status_page::StatusPage;
use crate::version_info::VersionInfo;

/// Fields of the object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    start_time: String,
    uptime_seconds: i64,
    go_version: &'a str,
    binary_version: &'a str,
    emulation_version: String,
    paths: &'a [String],
}

struct StatusView<'a> {
    page: &'a StatusPage,
    version: &'a VersionInfo,
}

pub async fn statusz(State(endpoints): SharedEndpoints, request: Request) -> Response {
    serve_page(&request, &StatusView { page: &endpoints.status_page, version: &endpoints.version })
}

impl StatusView<'_> {
    fn up_seconds(&self) -> i64 {
        Timestamp::now().as_second().saturating_sub(self.page.started.as_second()).max(0)
    }

    fn binary_version(&self) -> &str {
        self.version.git_version.trim_start_matches('v')
    }

    fn emulation_version(&self) -> String {
        format!("{}.{}", self.version.emulation_major, self.version.emulation_minor)
    }
}

impl Page for StatusView<'_> {
    const KIND: &'static str = "Statusz";

    fn text(&self, delimiter: &str) -> String {
        let up = self.up_seconds();
        let rows = [
            ("Started", self.page.started.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()),
            ("Up", format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60)),
            ("Go version", self.version.go_version.clone()),
            ("Binary version", self.binary_version().to_owned()),
            ("Emulation version", self.emulation_version()),
            ("Paths", self.page.paths.join(" ")),
        ];
        let rows = rows.map(|(name, value)| format!("{name}{delimiter} {value}\n"));
        format!("\n{}", rows.concat())
    }

    fn json(&self, version: Version) -> Vec<u8> {
        object::<Self>(
            version,
            &Content {
                start_time: self.page.started.to_string(),
                uptime_seconds: self.up_seconds(),
                go_version: &self.version.go_version,
                binary_version: self.binary_version(),
                emulation_version: self.emulation_version(),
                paths: &self.page.paths,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_reads_as_upstreams() {
        let listed = ["/", "/apis", "/openapi/v2", "/readyz", "/metrics/slis", "/metrics", "/flagz"];
        let page = StatusPage::new(1_795_547_129.8, listed);
        let status = StatusView { page: &page, version: &VersionInfo::default() };
        let text = status.text(":");
        assert!(text.starts_with("\nStarted: Tue Nov 24 19:05:29 UTC 2026\nUp: "), "{text}");
        assert!(text.ends_with("\nEmulation version: 1.36\nPaths: /flagz /metrics /readyz\n"), "{text}");
        let json = String::from_utf8(status.json(Version::V1Beta1)).unwrap();
        assert!(json.contains(r#""startTime":"2026-11-24T19:05:29Z""#), "{json}");
    }
}
