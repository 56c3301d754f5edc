//! Conversion of usages of the API to those of X.509 (upstream's `keyUsagesFromStrings`).

/// A usage of the extended key usage extension: its name in the API and its OID.
type Extended = (&'static str, &'static [u64]);

/// Bits of the key usage extension, by the usage's name.
const KEY: [(&str, u16); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// Extended usages in encoding order. `email protection` and `s/mime` are the same usage.
const EXTENDED: [Extended; 13] = [
    ("any", &[2, 5, 29, 37, 0]),
    ("server auth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape sgc", &[2, 16, 840, 1, 113_730, 4, 1]),
];

/// Returns the bits of the key usage extension, and the extended key usages.
///
/// # Errors
/// Returns the names of unknown usages.
pub(super) fn from_names(usages: &[&str]) -> Result<(u16, Vec<&'static [u64]>), String> {
    let bit = |usage: &str| KEY.iter().find(|(name, _)| *name == usage).map(|(_, bit)| 1u16 << bit);
    let is_extended = |usage: &str| EXTENDED.iter().any(|(name, _)| *name == usage);
    let unknown: Vec<String> = usages
        .iter()
        .filter(|usage| bit(usage).is_none() && !is_extended(usage))
        .map(|usage| format!("{usage:?}"))
        .collect();
    if !unknown.is_empty() {
        return Err(format!("unrecognized usage values: [{}]", unknown.join(" ")));
    }
    let key = usages.iter().filter_map(|usage| bit(usage)).fold(0, |all, one| all | one);
    let requested = EXTENDED.iter().filter(|(name, _)| usages.contains(name)).map(|(_, oid)| *oid);
    let mut extended: Vec<&'static [u64]> = requested.collect();
    extended.dedup();
    Ok((key, extended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usages_are_bits_and_ordered_oids() {
        let (key, extended) =
            from_names(&["s/mime", "client auth", "signing", "key encipherment", "email protection"])
                .unwrap();
        assert_eq!(key, 0b101);
        assert_eq!(extended, [&[1u64, 3, 6, 1, 5, 5, 7, 3, 2][..], &[1, 3, 6, 1, 5, 5, 7, 3, 4]]);
        assert_eq!(from_names(&["decipher only"]).unwrap(), (256, Vec::new()));
        assert_eq!(
            from_names(&["any", "no", "such"]).unwrap_err(),
            r#"unrecognized usage values: ["no" "such"]"#
        );
    }
}
