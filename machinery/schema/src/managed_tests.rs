//! `managedFields` entries are read and written as in upstream, and invalid ones are rejected.

use super::*;

fn object(entries: &str) -> Object {
    Object::from_json(format!(r#"{{"metadata":{{"name":"x","managedFields":{entries}}}}}"#).as_bytes())
        .unwrap()
}

fn entries_of(object: &Object) -> String {
    Object::from_json(&object.to_json())
        .unwrap()
        .get(&["metadata", "managedFields"])
        .unwrap_or_default()
        .0
        .to_string()
}

/// Creates entries from `manager operation version subresource time fields`, with `-` for an empty value.
fn managed(rows: &[&str]) -> ManagedFields {
    let entries: Vec<Value> = rows
        .iter()
        .map(|row| {
            let words: Vec<&str> = row.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
            let mut entry = Map::new();
            for (field, word) in
                ["manager", "operation", "apiVersion", "subresource", "time"].iter().zip(&words)
            {
                entry.insert((*field).to_owned(), Value::from(*word));
            }
            entry.insert("fieldsType".to_owned(), Value::from("FieldsV1"));
            let fields = words[5].split(',').map(|field| (format!("f:{field}"), Value::Object(Map::new())));
            entry.insert("fieldsV1".to_owned(), Value::Object(fields.collect()));
            Value::Object(entry)
        })
        .collect();
    ManagedFields::read(&object(&Value::Array(entries).to_string())).unwrap()
}

fn rows(managed: &ManagedFields) -> Vec<String> {
    let mut object = object("[]");
    managed.write(&mut object);
    let word = |entry: &Value, field: &str| match entry.get(field).and_then(Value::as_str) {
        None | Some("") => "-".to_owned(),
        Some(text) => text.to_owned(),
    };
    let written = entries(&object).unwrap_or_default();
    written
        .iter()
        .map(|entry| {
            let words = ["manager", "operation", "apiVersion", "subresource", "time"].map(|f| word(entry, f));
            let fields: Vec<&str> =
                entry["fieldsV1"].as_object().unwrap().keys().map(|k| k.trim_start_matches("f:")).collect();
            format!("{} {}", words.join(" "), fields.join(","))
        })
        .collect()
}

#[test]
fn entries_are_sorted_by_operation_time_manager_version_and_subresource() {
    let entries = [
        "u Update v1 - 2026-01-01T00:00:02Z a",
        "u Update v1 status 2026-01-01T00:00:01Z b",
        "u Update v2 - 2026-01-01T00:00:01Z c",
        "t Update v2 - 2026-01-01T00:00:01Z d",
        "z Apply v1 - - e",
    ];
    let want = [
        "z Apply v1 - - e",
        "t Update v2 - 2026-01-01T00:00:01Z d",
        "u Update v1 status 2026-01-01T00:00:01Z b",
        "u Update v2 - 2026-01-01T00:00:01Z c",
        "u Update v1 - 2026-01-01T00:00:02Z a",
    ];
    assert_eq!(rows(&managed(&entries)), want);
}

#[test]
fn invalid_entries_are_rejected_with_upstream_messages() {
    let rows = [
        (r#"[{"manager":"m"}]"#, "operation must be `Apply` or `Update`"),
        (r#"[{"operation":"Apply"}]"#, "apiVersion must not be empty"),
        (r#"[{"operation":"Apply","apiVersion":"v1"}]"#, "invalid fieldsType \"\" in managed fields entry 0"),
        (
            r#"[{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"x":{}}}]"#,
            "error decoding set: parsing key as path element: key must be 2 characters long: x",
        ),
    ];
    for (entries, want) in rows {
        assert_eq!(ManagedFields::read(&object(entries)).unwrap_err().to_string(), want);
    }
}

#[test]
fn an_empty_list_or_one_empty_entry_resets_all_managers() {
    for (entries, want) in [("[]", true), ("[{}]", true), ("[{},{}]", false), (r#"[{"manager":"m"}]"#, false)]
    {
        assert_eq!(is_reset(&object(entries)), want, "{entries}");
    }
    assert!(!is_reset(&Object::default()));
}

#[test]
fn managed_fields_without_owners_are_null() {
    let mut object = object(r#"[{"manager":"m"}]"#);
    ManagedFields::default().write(&mut object);
    assert_eq!(entries_of(&object), "null");
}

#[test]
fn the_oldest_updaters_of_a_version_share_a_bucket() {
    let time = |n: usize| format!("2026-01-01T00:00:{n:02}Z");
    let entries: Vec<String> = (0..12).map(|n| format!("m{n} Update v1 - {} f{n}", time(n))).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let mut managed = managed(&entries);
    managed.cap_updaters(10, "ancient-changes");
    let rows = rows(&managed);
    assert_eq!(rows.len(), 10);
    assert_eq!(rows[0], format!("ancient-changes Update v1 - {} f0,f1,f2", time(2)));
    managed.cap_updaters(10, "ancient-changes");
    assert_eq!(rows.len(), 10);
}

#[test]
fn appliers_and_single_updaters_are_not_merged() {
    let mut entries: Vec<String> = (0..11).map(|n| format!("m{n} Update v{n} - - f{n}")).collect();
    entries.extend((0..20).map(|n| format!("a{n} Apply v1 - - f{n}")));
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let mut managed = managed(&entries);
    managed.cap_updaters(10, "ancient-changes");
    assert_eq!(managed.owners.len(), 31);
}
