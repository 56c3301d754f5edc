//! Validation of iSCSI volumes: names of targets and initiators.

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::holder::Holder;
use crate::Errors;
use crate::checks;

/// Maximum bytes of `NAME:PORTAL`, the name of a network interface if there is an initiator.
const INTERFACE_MAX: usize = 64;
const TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";

/// Validates the source. For pods, [`interface`] validates the length separately.
pub(super) fn iscsi(here: &Cursor<'_>, holder: Holder<'_>, errors: &mut Errors) {
    let (portal, name) = (here.field("targetPortal"), here.field("iqn"));
    checks::not_empty(&portal, errors);
    if let Holder::PersistentVolume(volume) = holder
        && is_too_long(here, volume)
    {
        // Upstream's path of this field is in lower case.
        errors.push(Error::invalid(&here.path().child("targetportal"), portal.str(), TOO_LONG));
    }
    if checks::not_empty(&name, errors) {
        iscsi_name(&name, "iqn", holder, errors);
    }
    lun(here, errors);
    let chap = here.field("chapAuthDiscovery").bool() || here.field("chapAuthSession").bool();
    let secret = here.field("secretRef");
    if chap && !secret.is_present() {
        errors.push(secret.required(""));
    }
    if matches!(holder, Holder::PersistentVolume(_)) && secret.is_present() {
        checks::not_empty(&secret.field("name"), errors);
    }
    let initiator = here.field("initiatorName");
    if initiator.is_present() {
        iscsi_name(&initiator, "initiatorname", holder, errors);
    }
}

/// Validates the length of an interface name, which consists of the name of a pod's volume and the portal.
pub(super) fn interface(volume: &Cursor<'_>, errors: &mut Errors) {
    let name = volume.field("name");
    if is_too_long(&volume.field("iscsi"), name.str()) {
        errors.push(Error::invalid(&name.path(), name.str(), TOO_LONG));
    }
}

fn is_too_long(here: &Cursor<'_>, volume: &str) -> bool {
    let portal = here.field("targetPortal").str();
    here.field("initiatorName").is_present() && volume.len() + 1 + portal.len() > INTERFACE_MAX
}

pub(super) fn lun(here: &Cursor<'_>, errors: &mut Errors) {
    checks::in_range(&here.field("lun"), 0, 255, "must be between 0 and 255, inclusive", errors);
}

/// Validates a name at `at`; `shown` is the field in the path of errors.
fn iscsi_name(at: &Cursor<'_>, shown: &str, holder: Holder<'_>, errors: &mut Errors) {
    let name = at.str();
    let has_known_prefix = ["iqn", "eui", "naa"].iter().any(|prefix| name.starts_with(prefix));
    let text = match holder {
        Holder::Pod if !has_known_prefix => "must be valid format starting with iqn, eui, or naa",
        _ if !is_iscsi_name(name) => "must be valid format",
        _ => return,
    };
    let path = at.path();
    let parent = path.as_str().rsplit_once('.').map_or("", |(parent, _)| parent);
    errors.push(Error::invalid(&format!("{parent}.{shown}").as_str().into(), name, text));
}

/// True for `iqn.YYYY-MM.reversed.domain:rest`, `eui.` and 16, `naa.` and 32 letters or digits.
fn is_iscsi_name(name: &str) -> bool {
    let coded = |rest: &str, length: usize| {
        let mut signs = rest.chars();
        let separator = signs.next();
        let code = signs.as_str();
        separator.is_some_and(|sign| sign != '\n')
            && code.len() == length
            && code.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    match name.get(..3) {
        Some("eui") => coded(&name[3..], 16),
        Some("naa") => coded(&name[3..], 32),
        // Upstream's expression is anchored at the end of the name only.
        Some("iqn") => name.match_indices("iqn.").any(|(at, _)| is_qualified(&name[at + 4..])),
        _ => false,
    }
}

/// True for `YYYY-MM.domain:rest`.
fn is_qualified(name: &str) -> bool {
    let Some((date, rest)) = name.split_once('.') else { return false };
    let Some((domain, rest)) = rest.split_once(':') else { return false };
    let digits = |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2))
        && !domain.is_empty()
        && domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
        && !rest.is_empty()
        && !rest.contains([',', ';', '*', '&', '$', '|', ' ', '\t', '\n', '\r', '\u{c}'])
}

#[cfg(test)]
mod tests {
    use super::is_iscsi_name;

    #[test]
    fn names_have_the_iqn_eui_or_naa_format() {
        for (name, valid) in [
            ("iqn.2015-02.example.com:test", true),
            ("iqn.2015-02.example.com", false),
            ("iqn.15-02.example.com:test", false),
            ("iqn.2015-02.example.com:a b", false),
            ("iqnx.iqn.2015-02.example.com:t", true),
            ("eui.0123456789abcdef", true),
            ("eui.0123", false),
            ("naa.0123456789abcdef0123456789abcdef", true),
            ("", false),
        ] {
            assert_eq!(is_iscsi_name(name), valid, "{name}");
        }
    }
}
