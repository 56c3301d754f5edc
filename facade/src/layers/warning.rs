//! WarningRecorder: writes warnings of inner handlers as `Warning` headers, each text once, within a size limit (1.6).

use std::sync::Arc;

use http::HeaderMap;
use http::header::{HeaderValue, WARNING};
use portico_kit::layer::ResponseTransform;

use crate::record::RequestRecord;
use crate::request::{Request, RequestView, Response};

/// Characters of all warnings of one response.
///
/// Limit (Serving): each warning is truncated.
const MAX_TOTAL: usize = 4096;
/// Characters of one warning once all warnings together are too long.
///
/// Limit (Serving): the warning is truncated.
const MAX_ITEM: usize = 256;

/// Prepares to write the warnings of a request.
pub fn record_warnings(request: &mut Request) -> RecordedWarnings {
    RecordedWarnings(request.record())
}

/// Record with the warnings of a request.
pub struct RecordedWarnings(Arc<RequestRecord>);

impl ResponseTransform<Response> for RecordedWarnings {
    fn apply(self, mut response: Response) -> Response {
        let warnings = self.0.take_warnings();
        if !warnings.is_empty() {
            write(&warnings, response.headers_mut());
        }
        response
    }
}

fn write(warnings: &[String], headers: &mut HeaderMap) {
    for text in select_warnings(warnings) {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            headers.append(WARNING, value);
        }
    }
}

/// Selects, truncates and escapes the texts to send.
fn select_warnings(warnings: &[String]) -> Vec<String> {
    let mut unique: Vec<&str> = Vec::new();
    let mut sent: Vec<String> = Vec::new();
    let (mut total_runes, mut is_truncating) = (0, false);
    for text in warnings.iter().map(String::as_str).filter(|t| !t.is_empty()) {
        if unique.contains(&text) || is_truncating && total_runes >= MAX_TOTAL {
            continue;
        }
        unique.push(text);
        let runes = text.chars().count();
        if !is_truncating && total_runes + runes > MAX_TOTAL {
            is_truncating = true;
            sent = sent.iter().map(|t| truncate(t)).collect();
            total_runes = sent.iter().map(|t| t.chars().count()).sum();
        }
        let text = if is_truncating { truncate(text) } else { text.to_owned() };
        let runes = text.chars().count();
        if is_truncating && total_runes + runes > MAX_TOTAL {
            continue;
        }
        total_runes += runes;
        sent.push(text);
    }
    sent.iter().map(|t| escape(t)).collect()
}

fn truncate(text: &str) -> String {
    text.chars().take(MAX_ITEM).collect()
}

fn escape(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_texts_are_sent_once_and_quotes_are_escaped() {
        let texts = vec!["a \"b\"".to_owned(); 20];
        let mut headers = HeaderMap::new();
        write(&texts, &mut headers);
        let all: Vec<_> = headers.get_all(WARNING).iter().collect();
        assert_eq!(all, ["299 - \"a \\\"b\\\"\""]);
    }

    #[test]
    fn too_many_runes_truncate_each_text_and_drop_the_rest() {
        let texts: Vec<String> = (0..50).map(|n| format!("{n:0500}")).collect();
        let sent = select_warnings(&texts);
        assert!(sent.iter().all(|t| t.chars().count() == MAX_ITEM));
        assert_eq!(sent.len(), MAX_TOTAL / MAX_ITEM);
    }
}
