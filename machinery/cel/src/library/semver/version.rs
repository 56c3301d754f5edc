//! Semantic versions: strict and lenient parsing, comparison. Build metadata is ignored in comparisons.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use portico_gostd::strconv::quote;

/// A version such as `1.2.3-rc.1+build`. Builds do not count when versions are compared.
#[derive(Clone, Debug)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// Pre-release identifiers.
    before: Vec<Identifier>,
}

/// Printed form, without build metadata.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, part) in self.before.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        Ok(())
    }
}

/// A part of what comes before a release. Numbers come before texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(Box<str>),
}

impl FromStr for Version {
    type Err = String;

    /// kube-apiserver's message for an invalid version.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number(major, "Major", "major")?, number(minor, "Minor", "minor")?);
        let (rest, build) = cut(rest, '+');
        let (patch, before) = cut(rest, '-');
        let patch = number(patch, "Patch", "patch")?;
        let before =
            before.map_or_else(|| Ok(Vec::new()), |before| before.split('.').map(identifier).collect())?;
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.bytes().all(is_identifier) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
        }
        Ok(Self { major, minor, patch, before })
    }
}

impl Version {
    /// Bytes of the parts that come before the release.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |part: &Identifier| match part {
            Identifier::Number(_) => size_of::<u64>(),
            Identifier::Text(text) => text.len() + size_of::<Identifier>(),
        };
        self.before.iter().map(bytes).sum()
    }

    /// A version without its leading `v` and zeros, whose missing numbers are zero.
    ///
    /// # Errors
    /// kube-apiserver's message for a version that is invalid after normalization.
    pub fn normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        parts.join(".").parse()
    }
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) { rest.to_owned() } else { format!("0{rest}") }
}

fn cut(text: &str, separator: char) -> (&str, Option<&str>) {
    text.split_once(separator).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn number(text: &str, name: &str, lower: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {lower} number {}", quote(text)));
    }
    if has_leading_zero(text) {
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    parse(text)
}

fn parse(text: &str) -> Result<u64, String> {
    let reason = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {reason}", quote(text)))
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if has_leading_zero(text) {
            let quoted = quote(text);
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {quoted}"));
        }
        return parse(text).map(Identifier::Number);
    }
    if !text.bytes().all(is_identifier) {
        return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
    }
    Ok(Identifier::Text(text.into()))
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        // A release comes behind what comes before it.
        let released = |version: &Self| version.before.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then(released(self).cmp(&released(other)))
            .then_with(|| self.before.cmp(&other.before))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_version_is_refused() {
        for (text, want) in [
            ("", "Version string empty"),
            ("1.0", "No Major.Minor.Patch elements found"),
            ("v1.0.0", "Invalid character(s) found in major number \"v1\""),
            ("01.0.0", "Major number must not contain leading zeroes \"01\""),
            ("1. 0.0", "Invalid character(s) found in minor number \" 0\""),
            ("1.0.0 ", "Invalid character(s) found in patch number \"0 \""),
            (".0.0", "strconv.ParseUint: parsing \"\": invalid syntax"),
            (
                "18446744073709551616.0.0",
                "strconv.ParseUint: parsing \"18446744073709551616\": value out of range",
            ),
            ("1.0.0-", "Prerelease is empty"),
            ("1.0.0-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
            ("1.0.0-a_", "Invalid character(s) found in prerelease \"a_\""),
            ("1.0.0+", "Build meta data is empty"),
            ("1.0.0+a.ö", "Invalid character(s) found in build meta data \"ö\""),
        ] {
            assert_eq!(text.parse::<Version>().map(|_| ()), Err(want.to_owned()), "{text}");
        }
    }

    #[test]
    fn versions_are_ordered_and_builds_are_ignored() {
        let ordered = [
            "0.9.9",
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-11",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-beta",
            "1.0.0",
            "1.0.1",
            "1.1.0",
            "2.0.0",
        ];
        let versions: Vec<Version> = ordered.iter().map(|text| text.parse().unwrap()).collect();
        assert!(versions.is_sorted() && versions.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!("1.2.3+a".parse::<Version>(), "1.2.3+b".parse());
    }

    #[test]
    fn versions_are_normalized() {
        for (text, want) in [
            ("v1.0.0", Ok("1.0.0")),
            ("1", Ok("1.0.0")),
            ("v01.01", Ok("1.1.0")),
            ("00.00.00", Ok("0.0.0")),
            ("1.2.003-rc", Ok("1.2.3-rc")),
            ("1.0-rc", Err("short version cannot contain PreRelease/Build meta data")),
            ("", Err("strconv.ParseUint: parsing \"\": invalid syntax")),
            ("vv1.0.0", Err("Invalid character(s) found in major number \"0v1\"")),
            (" 1.0.0", Err("Invalid character(s) found in major number \"0 1\"")),
        ] {
            let want = want.map(|text| text.parse::<Version>().unwrap()).map_err(str::to_owned);
            assert_eq!(Version::normalized(text), want, "{text}");
        }
    }
}
