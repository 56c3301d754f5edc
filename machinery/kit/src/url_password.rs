//! Passwords in URLs, which logs, error messages and debugging endpoints must not show.

const HIDDEN: &str = "xxxxx";
const PARAMETER: &str = "password=";

/// Returns a valid URL, or text that ends in one, with `xxxxx` in place of the user's password and of the parameter `password`.
/// Returns other text unchanged.
#[must_use]
pub fn without_password(text: &str) -> String {
    let Some(at) = text.find("://") else { return text.to_owned() };
    let (scheme, rest) = text.split_at(at + 3);
    let path = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(path);
    let authority = match authority.rsplit_once('@').map(|(user, host)| (user.split_once(':'), host)) {
        Some((Some((name, _)), host)) => format!("{name}:{HIDDEN}@{host}"),
        _ => authority.to_owned(),
    };
    let Some((path, query)) = path.split_once('?') else { return format!("{scheme}{authority}{path}") };
    let query: Vec<_> = query.split('&').map(parameter).collect();
    format!("{scheme}{authority}{path}?{}", query.join("&"))
}

fn parameter(pair: &str) -> String {
    match pair.starts_with(PARAMETER) {
        true => format!("{PARAMETER}{HIDDEN}"),
        false => pair.to_owned(),
    }
}

/// Removes everything from an invalid URL that may be a password: of a URL of a database, or a URL with a user or a
/// parameter `password`, only the scheme remains.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest))
            if scheme.contains("postgres") || rest.contains('@') || rest.contains(PARAMETER) =>
        {
            format!("{scheme}://{HIDDEN}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_urls_are_hidden() {
        for (url, shown) in [
            ("postgres://u:p@h:1/d?x=y:z@w", "postgres://u:xxxxx@h:1/d?x=y:z@w"),
            ("postgres://u:p:q@r@h/d", "postgres://u:xxxxx@h/d"),
            ("--database-url=postgres://u:p@h?a=b", "--database-url=postgres://u:xxxxx@h?a=b"),
            (
                "postgres://h/d?user=u&password=p&sslmode=require",
                "postgres://h/d?user=u&password=xxxxx&sslmode=require",
            ),
            ("postgres://u@h:1/d", "postgres://u@h:1/d"),
            ("postgres://h:1/d", "postgres://h:1/d"),
            ("--profiling=true", "--profiling=true"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn nothing_of_an_invalid_url_is_shown_that_may_be_a_password() {
        for (text, shown) in [
            ("postgres://u:p@h:99999/d", "postgres://xxxxx"),
            (" postgresql://u:p#q", " postgresql://xxxxx"),
            ("mysql://u:p@h", "mysql://xxxxx"),
            ("http://h/d?password=p", "http://xxxxx"),
            ("http://issuer.example", "http://issuer.example"),
            ("7 days", "7 days"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
