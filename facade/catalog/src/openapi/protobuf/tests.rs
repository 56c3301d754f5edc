//! The bytes are decoded by a decoder of the wire format that does not use the tables.

use super::*;

/// A field in wire format.
#[derive(Debug, PartialEq)]
enum Wire<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint without an end");
}

fn fields(mut bytes: &[u8]) -> Vec<(u32, Wire<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                fields.push(((tag >> 3) as u32, Wire::Varint(varint(&mut bytes))));
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            other => panic!("wire type {other}"),
        };
        let (content, rest) = bytes.split_at(length);
        bytes = rest;
        let wire =
            if tag & 7 == 1 { Wire::Fixed64(content.try_into().unwrap()) } else { Wire::Bytes(content) };
        fields.push(((tag >> 3) as u32, wire));
    }
    fields
}

/// Returns all values at a path of field numbers: text unchanged, numbers as their bits.
fn at(bytes: &[u8], path: &[u32]) -> Vec<String> {
    let (first, rest) = path.split_first().unwrap();
    let hits = fields(bytes).into_iter().filter(|(number, _)| number == first);
    hits.flat_map(|(_, wire)| match wire {
        Wire::Bytes(inner) if !rest.is_empty() => at(inner, rest),
        Wire::Bytes(text) => vec![String::from_utf8_lossy(text).into_owned()],
        Wire::Varint(value) => vec![value.cast_signed().to_string()],
        Wire::Fixed64(bits) => vec![f64::from_le_bytes(bits).to_string()],
    })
    .collect()
}

/// Encodes a document with one definition and returns the values at a path in its schema.
fn schema_at(json: &str, path: &[u32]) -> Vec<String> {
    let document = format!(r#"{{"definitions":{{"T":{json}}}}}"#);
    at(&encode_v2(document.as_bytes()).unwrap(), &[&[9, 1, 2], path].concat())
}

#[test]
fn fields_of_a_schema_have_their_numbers() {
    let rows: [(&str, &[u32], &[&str]); 19] = [
        (r##"{"$ref":"#/definitions/X"}"##, &[1], &["#/definitions/X"]),
        (r#"{"type":"object"}"#, &[22, 1], &["object"]),
        (r#"{"type":["string","null"]}"#, &[22, 1], &["string", "null"]),
        (r#"{"description":"a\nb \"c\" é"}"#, &[4], &["a\nb \"c\" é"]),
        (r#"{"default":{"a":[1,"x"]}}"#, &[5, 2], &[r#"{"a":[1,"x"]}"#]),
        (r#"{"default":null}"#, &[5, 2], &["null"]),
        (r#"{"enum":["",1]}"#, &[20, 2], &[r#""""#, "1"]),
        (r#"{"maximum":5,"minimum":-0.5}"#, &[7], &["5"]),
        (r#"{"minimum":-0.5}"#, &[9], &["-0.5"]),
        (r#"{"maxLength":3e2}"#, &[11], &["300"]),
        (r#"{"minItems":-1}"#, &[15], &["-1"]),
        (r#"{"uniqueItems":true}"#, &[16], &["1"]),
        (r#"{"additionalProperties":true}"#, &[21, 2], &["1"]),
        (r#"{"additionalProperties":{"type":"string"}}"#, &[21, 1, 22, 1], &["string"]),
        (r#"{"items":{"format":"int32"}}"#, &[23, 1, 2], &["int32"]),
        (r#"{"items":[{"format":"a"},{"format":"b"}]}"#, &[23, 1, 2], &["a", "b"]),
        (r#"{"allOf":[{"title":"a"},{"title":"b"}]}"#, &[24, 3], &["a", "b"]),
        (r#"{"properties":{"a":{"format":"x"},"b":{}}}"#, &[25, 1, 1], &["a", "b"]),
        (r#"{"x-list-type":"map","x-k":[{"group":""}]}"#, &[31, 2, 2], &[r#""map""#, r#"[{"group":""}]"#]),
    ];
    for (json, path, want) in rows {
        assert_eq!(schema_at(json, path), want, "{json}");
    }
}

#[test]
fn alternatives_are_distinguished_by_their_members() {
    let operation = |json: &str, path: &[u32]| {
        let document = format!(r#"{{"paths":{{"/a":{{"get":{json}}}}}}}"#);
        at(&encode_v2(document.as_bytes()).unwrap(), &[&[8, 2, 2, 2], path].concat())
    };
    let rows: [(&str, &[u32], &str); 9] = [
        (r##"{"parameters":[{"$ref":"#/parameters/p"}]}"##, &[8, 2, 1], "#/parameters/p"),
        (r#"{"parameters":[{"in":"body","schema":{"format":"f"}}]}"#, &[8, 1, 1, 5, 2], "f"),
        (r#"{"parameters":[{"in":"header","type":"string"}]}"#, &[8, 1, 2, 1, 5], "string"),
        (r#"{"parameters":[{"in":"formData","type":"file"}]}"#, &[8, 1, 2, 2, 6], "file"),
        (r#"{"parameters":[{"name":"n","in":"query","enum":["a"]}]}"#, &[8, 1, 2, 3, 21, 2], "\"a\""),
        (r#"{"parameters":[{"in":"path","name":"n"}]}"#, &[8, 1, 2, 4, 4], "n"),
        (r#"{"responses":{"200":{"schema":{"format":"f"}}}}"#, &[9, 1, 2, 1, 2, 1, 2], "f"),
        (r#"{"responses":{"200":{"schema":{"type":"file"}}}}"#, &[9, 1, 2, 1, 2, 2, 6], "file"),
        (r##"{"responses":{"default":{"$ref":"#/responses/r"}}}"##, &[9, 1, 2, 2, 1], "#/responses/r"),
    ];
    for (json, path, want) in rows {
        assert_eq!(operation(json, path), [want], "{json}");
    }
    let security = |json: &str, path: &[u32]| {
        let document = format!(r#"{{"securityDefinitions":{{"S":{json}}}}}"#);
        at(&encode_v2(document.as_bytes()).unwrap(), &[&[13, 1, 2], path].concat())
    };
    assert_eq!(security(r#"{"type":"apiKey","in":"header"}"#, &[2, 3]), ["header"]);
    assert_eq!(security(r#"{"type":"basic","description":"d"}"#, &[1, 2]), ["d"]);
    for (flow, number, path) in [
        ("implicit", 3, "authorizationUrl"),
        ("password", 4, "tokenUrl"),
        ("application", 5, "tokenUrl"),
        ("accessCode", 6, "authorizationUrl"),
    ] {
        let json = format!(r#"{{"type":"oauth2","flow":"{flow}","scopes":{{"s":"t"}},"{path}":"u"}}"#);
        assert_eq!(security(&json, &[number, 4]), ["u"]);
        assert_eq!(security(&json, &[number, 3, 1, 2]), ["t"]);
    }
}

#[test]
fn members_without_a_field_are_omitted_and_the_rest_is_kept() {
    let odd = r#"{"nullable":true,"type":5,"maxLength":"x","properties":[1,{"a":2}],"additionalProperties":"y",
        "items":3,"enum":{"a":1},"required":[1,"r"],"allOf":[false,{"title":"t"}],"description":null,"title":{"deep":[{}]},"format":"f"}"#;
    assert_eq!(schema_at(odd, &[2]), ["f"]);
    assert_eq!(schema_at(odd, &[19]), ["r"]);
    assert_eq!(schema_at(odd, &[24, 3]), ["t"]);
    for path in [3, 4, 11, 20, 21, 25] {
        assert!(schema_at(odd, &[path]).is_empty(), "{path}");
    }
    let nowhere =
        br#"{"paths":{"/a":{"parameters":[{"name":"p"},7]}},"securityDefinitions":{"S":{"type":"new"}}}"#;
    let bytes = encode_v2(nowhere).unwrap();
    assert_eq!(at(&bytes, &[8, 2, 1]), ["/a"]);
    assert!(at(&bytes, &[8, 2, 2, 9]).is_empty());
    assert_eq!(at(&bytes, &[13, 1, 1]), ["S"]);
    assert!(at(&bytes, &[13, 1, 2]).is_empty());
}

#[test]
fn lengths_of_all_sizes_are_correct() {
    for size in [0, 1, 100, 127, 128, 16_383, 16_384, 3_000_000] {
        let long = "x".repeat(size);
        assert_eq!(
            schema_at(&format!(r#"{{"properties":{{"a":{{"title":"{long}"}}}}}}"#), &[25, 1, 2, 3]),
            [long]
        );
    }
}

#[test]
fn extensions_are_valid_yaml() {
    let text = "{\"x-a\":\"\u{7f}\u{85}\u{2028}\u{feff}é😀\"}";
    assert_eq!(schema_at(text, &[31, 2, 2]), [r#""\u007f\u0085\u2028\ufeffé😀""#]);
}

#[test]
fn input_other_than_an_object_is_an_error() {
    for json in ["", "[]", "1", r#"{"paths":"#, "{} {}", r#"{"paths":{"/a":{"parameters":[{"in":]}}}"#] {
        assert!(encode_v2(json.as_bytes()).is_err(), "{json}");
    }
}

/// Encodes a version 3 document with one schema and returns the values at a path in it.
fn schema_v3_at(json: &str, path: &[u32]) -> Vec<String> {
    let document = format!(r#"{{"components":{{"schemas":{{"T":{json}}}}}}}"#);
    at(&encode_v3(document.as_bytes()).unwrap(), &[&[5, 1, 1, 2], path].concat())
}

#[test]
fn fields_of_a_version_3_schema_have_their_numbers() {
    let rows: [(&str, &[u32], &[&str]); 18] = [
        (r##"{"$ref":"#/components/schemas/X"}"##, &[2, 1], &["#/components/schemas/X"]),
        (r##"{"description":"d","$ref":"#/X","type":"object"}"##, &[2, 1], &["#/X"]),
        (r##"{"description":"d","$ref":"#/X","type":"object"}"##, &[1, 34], &[]),
        (r#"{"type":"object"}"#, &[1, 25], &["object"]),
        (r#"{"nullable":true}"#, &[1, 1], &["1"]),
        (r#"{"default":""}"#, &[1, 33, 3], &[""]),
        (r#"{"default":3}"#, &[1, 33, 1], &["3"]),
        (r#"{"default":-0.5}"#, &[1, 33, 1], &["-0.5"]),
        (r#"{"default":false}"#, &[1, 33, 2], &["0"]),
        (r#"{"default":{"a":1}}"#, &[1, 33], &[""]),
        (r#"{"default":[1]}"#, &[1, 33], &[""]),
        (r##"{"allOf":[{"$ref":"#/X"}],"default":{}}"##, &[1, 26, 2, 1], &["#/X"]),
        (r##"{"items":{"allOf":[{"$ref":"#/X"}]}}"##, &[1, 30, 1, 1, 26, 2, 1], &["#/X"]),
        (r#"{"oneOf":[{"type":"integer"},{"type":"string"}]}"#, &[1, 27, 1, 25], &["integer", "string"]),
        (r##"{"properties":{"default":{"$ref":"#/X"},"x-a":{}}}"##, &[1, 31, 1, 1], &["default", "x-a"]),
        (r##"{"additionalProperties":{"$ref":"#/X"}}"##, &[1, 32, 1, 2, 1], &["#/X"]),
        (r#"{"additionalProperties":true}"#, &[1, 32, 2], &["1"]),
        (r#"{"x-kubernetes-list-type":"atomic"}"#, &[1, 36, 2, 2], &[r#""atomic""#]),
    ];
    for (json, path, want) in rows {
        assert_eq!(schema_v3_at(json, path), want, "{json}");
    }
}

#[test]
fn a_version_3_operation_is_encoded_completely() {
    let operation = r##"{"operationId":"o","parameters":[{"$ref":"#/p"},{"name":"n","in":"query","schema":{"type":"integer"}}],
        "requestBody":{"content":{"*/*":{"schema":{"$ref":"#/X"}}}},
        "responses":{"default":{"$ref":"#/r"},"200":{"description":"OK","content":{"a/b":{"schema":{"$ref":"#/Y"}}}},"x-r":1},
        "x-kubernetes-action":"get"}"##;
    let document = format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"t","version":"v"}},"paths":{{"/a":{{"get":{operation}}},"x-p":1}}}}"#
    );
    let bytes = encode_v3(document.as_bytes()).unwrap();
    let inside = [4, 1, 2, 4];
    let rows: [(&[u32], &[&str]); 13] = [
        (&[5], &["o"]),
        (&[6, 2, 1], &["#/p"]),
        (&[6, 1, 1], &["n"]),
        (&[6, 1, 2], &["query"]),
        (&[6, 1, 10, 1, 25], &["integer"]),
        (&[7, 1, 2, 1, 1], &["*/*"]),
        (&[7, 1, 2, 1, 2, 1, 2, 1], &["#/X"]),
        (&[8, 1, 2, 1], &["#/r"]),
        (&[8, 2, 1], &["200"]),
        (&[8, 2, 2, 1, 1], &["OK"]),
        (&[8, 2, 2, 1, 3, 1, 2, 1, 2, 1], &["#/Y"]),
        (&[8, 3, 1], &["x-r"]),
        (&[13, 2, 2], &[r#""get""#]),
    ];
    for (path, want) in rows {
        assert_eq!(at(&bytes, &[&inside[..], path].concat()), want, "{path:?}");
    }
    assert_eq!(at(&bytes, &[1]), ["3.0.0"]);
    assert_eq!(at(&bytes, &[2, 6]), ["v"]);
    assert_eq!(at(&bytes, &[4, 2, 1]), ["x-p"]);
}
