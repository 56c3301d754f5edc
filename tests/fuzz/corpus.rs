//! Initial inputs: correct ones, and wrong ones that were relevant before.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Decodes inputs. Inputs that are not text have the prefix `hex:` (characters other than digits are ignored) or `base64:`.
pub fn bytes(inputs: &[&str]) -> Vec<Vec<u8>> {
    inputs.iter().map(|input| decode(input)).collect()
}

fn decode(input: &str) -> Vec<u8> {
    if let Some(base64) = input.strip_prefix("base64:") {
        return STANDARD.decode(base64).expect("the input is base64");
    }
    let Some(hex) = input.strip_prefix("hex:") else { return input.as_bytes().to_vec() };
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

pub const PATHS: &[&str] = &[
    "GET /api/v1/namespaces/a/configmaps/b?x=1",
    "POST /apis/apiregistration.k8s.io/v1/apiservices?dryRun=All&fieldValidation=Strict",
    "GET /apis/g/v1/watch/namespaces/a/things?watch=1&labelSelector=a%3Db",
    "PUT /apis/g/v1/namespaces/a/things/b/status",
    "PATCH /api/v1/namespaces/a/finalize",
    "GET /api/v1/namespaces/a/services/https:b:c/proxy/x/../y",
    "DELETE /api/v1/nodes?fieldSelector=metadata.name%3Dx&fieldSelector=a",
    "HEAD /",
    "OPTIONS //api",
    "GET /apis//",
    "GET /%2e%2e/%00",
];

pub const JSON_PATHS: &[&str] = &[
    ".metadata.name",
    r".metadata.labels['a\.b']",
    ".spec.ports[0].port",
    ".spec.ports[-1:].name",
    ".spec.ports[::2]",
    ".spec.ports[0,1]['name','port']",
    r#".spec.ports[?(@.name=="http")].port"#,
    ".spec.ports[?(@.port>=80)].port",
    ".spec.ports[*].protocol",
    "..port",
    "..[?(@.port)].*",
    r#""a\tb\u0041\377""#,
    "-1.5",
    ".kind} and {.metadata",
];

pub const CONVERSIONS: &[&str] = &[
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"q","result":{"status":"Success"},"convertedObjects":[{"apiVersion":"g.io/v2","kind":"K","metadata":{"name":"a","uid":"u","labels":{"l":"1"},"annotations":null},"spec":{"x":[1,2.5,true,null]}}]}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"q","result":{"status":"Failure","message":"no"}}}"#,
    r#"{"response":{"result":{"status":"Success"},"convertedObjects":[{"apiVersion":"g.io/v2","kind":"K","metadata":{"name":"a","uid":"u"}}]}}"#,
    r#"{"response":{"result":{"status":"Success"},"convertedObjects":[{"apiVersion":"g.io/v2","kind":"K","metadata":[]},7]}}"#,
    r#"{"response":null}"#,
];

pub const ADMISSION: &[&str] = &[
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d","warnings":["a"],"auditAnnotations":{"k":"v"}}}"#,
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"allowed":false,"status":{"metadata":{},"code":418,"reason":"R","message":"m","details":{"name":"n","causes":[{"field":"f","message":"m","reason":"r"}],"retryAfterSeconds":3}}}}"#,
    r#"{"response":{"uid":"u","patch":"W10=","patchType":null}}"#,
    r#"{"response":null}"#,
];

pub const SELECTORS: &[&str] = &[
    "a=b",
    "a==b,c!=d",
    "a in (b,c),d notin (e)",
    "a,!b",
    "example.com/a=b",
    "x in (),y",
    "a>1,b<2",
    "in in (in)",
    "metadata.name=a",
    "metadata.name!=a,metadata.namespace=b",
    r"a=b\,c\=d\\",
    "!a in (b)",
    "a=\u{e9}",
    " , ",
    "a in (,)",
];

pub const ACCEPT: &[&str] = &[
    "application/json",
    "*/*",
    "application/*;q=0.5, text/plain",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/yaml;pretty=1;q=1.000",
    "application/vnd.kubernetes.protobuf, */*;q=0.1",
    "a/b;c=\"d,e;f\\\"\"",
    ";;;",
    "q=1",
    "application/json;q=nan",
];

pub const AUTHORIZATION: &[&str] = &[
    "Bearer admin-token",
    "bearer admin-token",
    "Bearer  admin-token",
    "Basic YTpi",
    "Bearer",
    "",
    "Bearer a b",
    "base64url.bearer.authorization.k8s.io.YWRtaW4tdG9rZW4, v4.channel.k8s.io",
    "base64url.bearer.authorization.k8s.io., a",
    "base64url.bearer.authorization.k8s.io.YQ, base64url.bearer.authorization.k8s.io.Yg",
];

pub const TOKEN_FILES: &[&str] = &[
    "t,alice,uid\n",
    "t,alice,uid,\"a,b\"\n",
    "t,\"a\"\"b\",u\r\n# comment\n\nx,y,z\n",
    "t,a\n",
    "\"open",
    "t,a,u,g,more,still\n",
    ",,,\n",
];

pub const IMPERSONATION: &[&str] = &[
    "Impersonate-User: a\nImpersonate-Group: b\nImpersonate-Group: c",
    "Impersonate-Uid: 1\nImpersonate-User: x",
    "Impersonate-Extra-acme.com%2Fproject: y\nimpersonate-user: system:serviceaccount:a:b",
    "Impersonate-Group: only",
    "Impersonate-Extra-: z",
    "Impersonate-User: system:anonymous",
    "Impersonate-Extra-%zz: q\nImpersonate-User: u",
];

pub const JSON_PATCHES: &[&str] = &[
    r#"[{"op":"add","path":"/metadata/labels/a","value":"b"}]"#,
    r#"[{"op":"remove","path":"/spec/ports/0"}]"#,
    r#"[{"op":"replace","path":"/spec","value":null},{"op":"test","path":"","value":{}}]"#,
    r#"[{"op":"move","from":"/spec","path":"/spec/ports"}]"#,
    r#"[{"op":"copy","from":"","path":"/spec/ports/-"}]"#,
    r#"[{"op":"copy","from":"/spec","path":"/spec/a"},{"op":"copy","from":"/spec","path":"/spec/b"}]"#,
    r#"[{"op":"add","path":"/spec/ports/-1","value":1}]"#,
    r#"[{"op":"add","path":"/a~1b~0c~2","value":1}]"#,
    "[]",
    "{}",
    "null",
    r#"[{"op":"add","path":"spec"}]"#,
    r#"[{"op":"remove","path":"/spec/ports/18446744073709551616"}]"#,
];

pub const JSON: &[&str] = &[
    r#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","labels":{"b":"c"}},"spec":{"ports":[{"port":443,"name":"https","protocol":"TCP"}]}}"#,
    r#"{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{"manager":"x"}]},"spec":{"ports":null}}"#,
    r#"{"spec":{"ports":[{"port":1,"$patch":"delete"}],"$patch":"replace"}}"#,
    r#"{"spec":{"ports":[{"$patch":"replace"}]}}"#,
    r#"{"spec":{"$setElementOrder/ports":[{"port":443}],"ports":[{"port":443,"protocol":"UDP"}]}}"#,
    r#"{"spec":{"$retainKeys":["type"]}}"#,
    r#"{"metadata":{"finalizers":["a/b"],"$deleteFromPrimitiveList/finalizers":["c/d"]}}"#,
    r#"{"a":1,"a":2,"spec":{"clusterIP":"None","clusterIP":""}}"#,
    r#"{"spec":{"ports":[{"port":1.5},{"port":"x"},{"targetPort":"http"}]}}"#,
    "null",
    "[]",
    "\"x\"",
    "1e400",
    "{\"a\":[[[[[[]]]]]]}",
    r#"{"metadata":{"name":"\ud800"}}"#,
];

pub const YAML: &[&str] = &[
    "kind: Service\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  ports:\n  - port: 443\n    name: https\n",
    "a: &x [1, 2]\nb: *x\nc:\n  <<: {d: e}\n",
    "a: |\n  text\n  more\nb: >-\n  folded\n",
    "a: !!binary YQ==\nb: 0755\nc: 1_000\nd: yes\ne: ~\n",
    "{a: [1, {b: c}], \"d\": 'e'}",
    "--- a\n--- b\n",
    "? a\n: b\n",
    "a: 2020-01-01\nb: .inf\nc: 0x1F\n",
    "- - - - a\n",
    "\"\\x41\\u00e9\": \"\\\n  x\"\n",
    "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: cluster\n  connection:\n    proxyProtocol: HTTPConnect\n    transport:\n      tcp:\n        url: https://127.0.0.1:8131\n        tlsConfig: {caBundle: a, clientKey: b, clientCert: c}\n",
    "egressSelections:\n- name: cluster\n  connection: {proxyProtocol: Direct}\n- name: etcd\n  connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /x}}}\n",
];

pub const PEM: &[&str] = &[
    "-----BEGIN CERTIFICATE-----\nMIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn+dNuaTAKBggqhkjOPQQDAjASMRAw\nDgYDVQQKEwdBY21lIENvMB4XDTE3MTAyMDE5NDMwNloXDTE4MTAyMDE5NDMwNlow\nEjEQMA4GA1UEChMHQWNtZSBDbzBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABD0d\n7VNhbWvZLWPuj/RtHFjvtJBEwOkhbN/BnnE8rnZR8+sbwnc/KhCk3FhnpHZnQz7B\n5aETbbIgmuvewdjvSBSjYzBhMA4GA1UdDwEB/wQEAwICpDATBgNVHSUEDDAKBggr\nBgEFBQcDATAPBgNVHRMBAf8EBTADAQH/MCkGA1UdEQQiMCCCDmxvY2FsaG9zdDo1\nNDUzgg4xMjcuMC4wLjE6NTQ1MzAKBggqhkjOPQQDAgNIADBFAiEA2zpJEPQyz6/l\nWf86aX6PepsntZv2GYlA5UpabfT2EZICICpJ5h/iI+i341gBmLiAFQOyTDT+/wQc\n6MF9+Yw1Yy0t\n-----END CERTIFICATE-----\n",
    "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg\n-----END PRIVATE KEY-----\n",
    "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
    "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----",
    "-----BEGIN X-----",
    "text before\n-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----",
];

/// A complete request, a truncated one, and data that is no request.
pub const CERTIFICATE_REQUESTS: &[&str] = &[
    "base64:MIIBEDCBtgIBADAvMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFjAUBgNVBAMMDXN5c3RlbTpub2RlOmEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARXjf8t6BdUks3sGwO1bNNSkbjOraRi4Qac1o6yxHYEftxPsNaJFiws52LLJzly76OawDuozc3ejwoX1//CQE7BoCUwIwYJKoZIhvcNAQkOMRYwFDASBgNVHREECzAJggFhhwQKAAABMAoGCCqGSM49BAMCA0kAMEYCIQCRxWRjl4EAQA0IKZFn9D3FZ/lEu5K/NLGc+8VXztEeqwIhANQ4kTWyXy22pjJ7M+wZ5w1j2imy0su8f4XpW60Dyffq",
    "base64:MIIBEDCBtgIBADAvMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFjAUBgNVBAMMDXN5c3RlbTpub2RlOmEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARXjf8t",
    "base64:MAA=",
    "base64:MIL/////",
];

pub const KUBECONFIGS: &[&str] = &[
    "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\nclusters:\n- {name: c, cluster: {server: 'https://x:1', certificate-authority-data: YQ==}}\nusers:\n- {name: u, user: {token: t}}\n",
    r#"{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"https://[::1]:1","tls-server-name":"n"}}],"users":[{"name":"u","user":{"client-certificate-data":"YQ==","client-key-data":"Yg=="}}]}"#,
    "current-context: a\ncontexts: [{name: a, context: {}}]\nclusters: []\nusers: [{name: u, user: {exec: {command: x}}}]\n",
    "contexts: {}",
    "[]",
];

pub const URLS: &[&str] = &[
    "https://a:8443",
    "https://a:8443,https://b:8443",
    "https://[::1]:1, https://10.0.0.1",
    "http://a",
    "https://u:p@a",
    "https://a/path",
    "https://a?q#f",
    "https://a:0",
    "https://a:99999",
    ",",
    "https://",
    "https://a%00b",
    "https://xn--e1afmkfd.example",
    "HTTPS://A",
];

pub const PROTOBUF: &[&str] = &[
    "k8s\0\n\x0d\n\x02v1\x12\x07Service\x12.\n\x0b\n\x01aZ\x06\n\x01b\x12\x01c\x12\x1f\n\x0c\n\x01h\x18P\"\x05\x08\x01\x1a\x01x\x12\x06\n\x01k\x12\x01v*\x071.2.3.4\x1a\0\"\0",
    "k8s\0\n\x0d\n\x02v1\x12\x07Service\x12\x08\n\x06B\x04\x08d\x10\0\x1a\0\"\0",
    "k8s\0\n\x04\n\0\x12\0\x12\0\x1a\0\"\0",
    "k8s\0\n\x04\n\0\x12\0\x12\n\x12\x08\x1a\x01A:\x03\n\x01v\x1a\0\"\0",
    "k8s\0",
    "k8s\0\x0b\x0b\x0b\x0c\x0c\x0c",
    "k8s",
    "k8s\0\n\x0d\n\x02v1\x12\x07Service\x12\x02\x12\x7f\x1a\0\"\0",
];

pub const DURATIONS: &[&str] = &[
    "1s",
    "1h30m",
    "1.5h",
    "-1s",
    "0",
    "300ms",
    "1us",
    "9223372036s",
    "1d",
    "1e3s",
    ".5s",
    "2020-01-01T00:00:00Z",
    "2020-02-30T24:61:00.123456+25:00",
    "0000-00-00T00:00:00Z",
];

pub const FIELD_SETS: &[&str] = &[
    r#"{}"#,
    r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
    r#"{"f:finalizers":{".":{},"v:\"a/b\"":{}},"i:3":{"f:x":{}},"v:1.5":{}}"#,
    r#"{"x:y":{},"f:":{"f:a":null},"v:[1,{}]":{},"k:{}":{".":{}}}"#,
    r#"{"f:a":{"f:b":{"f:c":{"f:d":{"f:e":{}}}}}}"#,
];

/// Parts of tokens with invalid signatures.
pub const TOKENS: &[&str] = &[
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJpIiwiYXVkIjpbImEiXSwiZXhwIjo5OTk5OTk5OTk5fQ.c2ln",
    "eyJhbGciOiJub25lIn0.eyJpc3MiOiJpIn0.",
    "eyJpc3MiOiJpIiwiYXVkIjoiYSIsImt1YmVybmV0ZXMuaW8iOnsibmFtZXNwYWNlIjoibiJ9fQ",
    "eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0",
    "eyJleHAiOjFlMzA4LCJuYmYiOi0xZTMwOCwiaXNzIjoiaSJ9",
    "W10.W10.W10",
    "..",
    "abcdef.0123456789abcdef",
];

/// Headers of external signers, as JSON and encoded.
pub const EXTERNAL_HEADERS: &[&str] = &[
    r#"{"alg":"ES256","kid":"k","typ":"JWT"}"#,
    r#"{"alg":"none","kid":"","typ":"JWT","crit":["b64"]}"#,
    "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsiLCJ0eXAiOiJKV1QifQ",
];

pub const ISSUER_TOKENS: &[&str] = &[
    "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJpIiwiYXVkIjpbImEiXSwiZXhwIjo5OTk5OTk5OTk5fQ.c2ln",
    "eyJhbGciOiJFUzI1NiIsImNyaXQiOlsiYjY0Il19",
    r#"{"keys":[{"use":"sig","kty":"EC","kid":"k","crv":"P-256","alg":"ES256","x":"I9t-Xbq0aIqMeqwobDpora7KfWpogtNa6B1icgq6oEs","y":"J9R2ihtmKqL12SVE_nUOcguvxcIPrWsqaOjYif6xx_c"}]}"#,
    r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"oct","k":"AA"},null]}"#,
    r#"{"sub":"s","groups":["a",null],"a":{"b":"c"},"exp":1e9,"aud":"x","jti":"j"}"#,
    r#"{"sub":null,"groups":"g","email_verified":"x","iss":"accounts.google.com"}"#,
    r#"{"_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"https://x","access_token":"t"}}}"#,
];

pub const EXPRESSIONS: &[&str] = &[
    "self.spec.replicas <= self.spec.maxReplicas",
    "has(self.spec.a) && self.spec.list.all(x, x.name.matches('^[a-z]+$')) || oldSelf == self",
    "self.?spec.?a.orValue('x') == 'x' ? [1, 2u, 3.0] : {'a': b'\\x00', true: null}",
    "'%s %d %.2f %x'.format(['a', 1, 2.5, b'z']) + strings.quote(\"q\\u00e9\")",
    "[3, 1, 2].sort().map(x, x * -1).filter(x, x > -3).sum() == -3",
    "quantity('1.5Gi').add(quantity('1k')).isLessThan(quantity('2e9'))",
    "cidr('10.0.0.0/8').containsIP(ip('10.1.2.3')) && isIP('::1')",
    "url('https://u:p@[::1]:80/a%20b?c=d&c=e').getQuery()['c'][1]",
    "semver('v1.2', true).compareTo(semver('1.2.0-rc.1+b')) > 0",
    "format.named('dns1123Label').value().validate('A').value()[0]",
    "timestamp('2020-01-01T00:00:00Z').getDayOfWeek('+01:00') + duration('1h2m3.5s').getSeconds()",
    "{'a': 1}.transformMap(k, v, v > 0, v + 1).exists(k, v, v == 2)",
    "[[1], [2, [3]]].flatten(2).sortBy(x, -x).slice(0, 2).first().optMap(y, y + 1)",
    "lists.range(5).exists_one(i, i % 2 == 0) || !(1 in [1, 2]) && 0x1F >= 9223372036854775807",
    "'a,b'.split(',').join('-').replace('-', '').substring(1).indexOf('b') == r'\\d'.size()",
    "sets.contains([1], [1]) && 'abc'.findAll('[a-z]', 2).size() == 2",
    "type(1) == int && dyn(1) != 'a' // comment",
    "`a-b`",
    "a.b.c[0][?1].?d",
    "",
];

pub const REGULAR_EXPRESSIONS: &[&str] = &[
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    r"(?i)a|b(?-i:c)\d+\w*?\S{2,5}",
    r"\Qa.b\E[[:alpha:]\pL\P{Greek}-]",
    r"(?P<name>x)(?<other>y)\x{1F600}\101\b",
    r"[]^&&~~\-a-\x7f]",
    "((a{2}){3}){4}",
    "a**",
    "[z-a]",
    "(?=a)",
    "(",
];

pub const QUANTITIES: &[&str] = &[
    "1",
    "1.5Gi",
    "100m",
    "1e3",
    "-.5k",
    "1E",
    "9223372036854775807",
    "1e2147483647",
    "0.1n",
    "+1Ei",
    "1.00",
    "Mi",
];

/// Frames of `moby/spdystream` and others, as hexadecimal digits.
pub const SPDY_FRAMES: &[&str] = &[
    "hex:80030001000000290000000100000000000078f9e3c6a7c262606060 04a7b392a2d4c45c6851c29a0a0a6800000000ffff\
     8003000100000017000000030000000000 00c22e555c9292990700000000ffff",
    "hex:8003000600000004 00000001 0000000501000003 616263 80030003000000080000000500000005",
    "hex:80030004000000 0c000000010100000400000064 800300070000000800000000 00000000 8003000900000008000000000000ffff",
    "hex:80030002000000050000000178 80020006 80030006 00ffffff 00000001 00ffffff",
];

/// Query strings, and bodies of deletions.
pub const OPTIONS: &[&str] = &[
    "limit=5&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiJhXHUwMDAwIn0&labelSelector=a%3Db&fieldSelector=metadata.name%3Dx",
    "watch=1&resourceVersion=7&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&allowWatchBookmarks=1&timeoutSeconds=5",
    "dryRun=All&fieldManager=m&fieldValidation=Strict&force=true",
    "gracePeriodSeconds=-1&propagationPolicy=Foreground&uid=u&orphanDependents=false",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true",
    "resourceVersion=18446744073709551616&limit=%zz;x",
    r#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Orphan","preconditions":{"uid":"u","resourceVersion":"7"},"dryRun":["All"]}"#,
];

/// JSON of tokens, and encoded tokens.
pub const CONTINUE_TOKENS: &[&str] = &[
    r#"{"v":"meta.k8s.io/v1","rv":7,"start":"ns/a\u0000"}"#,
    r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"a\u0000"}"#,
    r#"{"v":"other","rv":0,"start":"../a"}"#,
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiJhXHUwMDAwIn0",
    "nonsense",
    "",
];

/// Starts of connections.
pub const HTTP2_FRAMES: &[&str] = &[
    "base64:UFJJICogSFRUUC8yLjANCg0KU00NCg0KAAAABAAAAAABAAADAQQAAAABYWJjAAAKAAEAAAABeHh4eHh4eHh4eA==",
    "base64:UFJJICogSFRUUC8yLjANCg0KU00NCg0KAAADAQAAAAABYWJjAAACCQQAAAABZGUAAAgGAQAAAAEwMDAwMDAwMAAABAgAAAAAAQAAAQA=",
    "base64:UFJJICogSFRUUA==",
    "base64:UFJJICogSFRUUC8yLjANCg0KU00NCg0KAAAGAQUAAAABYWJj",
];

/// Messages, pings and close frames of clients; and invalid frames.
pub const WEB_SOCKET_FRAMES: &[&str] = &[
    "base64:goYBAgMEAXF3YGhsiIUBAgMEAuphfWQ=",
    "base64:gZMBAgMEeiBUbWV2ayY7OjMoI8GqJjszfg==",
    "base64:AoEBAgMEYImEAQIDBHFrbWOAgQECAwRj",
    "base64:gv4BLAECAwR5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3x5ent8eXp7fHl6e3yKgAECAwQ=",
    "base64:gYIBAgME/vw=",
    "base64:gv9AAAAAAAAAAA==",
    "base64:ggVoZWxsbw==",
    "base64:iIEBAgMEAg==",
];

/// `Entries` with a payload of each kind, an APIService, a call.
pub const GRPC_MESSAGES: &[&str] = &[
    "base64:CggKAXMSAWUYBxJpCgd2MS5nLmlvEAVSXAoEZy5pbxICdjEY6AcgDyomCgFuEgFzGLsDIg0KCDEwLjAuMC4xELsDOgdzLm4uc3ZjUgF0WAEyIwgBEgZQYXNzZWQaAW0iFDIwMjAtMDEtMDFUMDA6MDA6MDBaEgwKAXQQBmIFCgNwZW0SEwoBYxAGagwKBWxpdmV6EAEaAW0SCgoBcxAGcgMKAXgSLAoOY2x1c3RlcnJvbGVzL2EQB3oYChYKFAoDZ2V0EgAaBHBvZHMiAXAqAi94Ei4KEHJvbGViaW5kaW5ncy9uL2IQCHoYEhYIARIBchoFCAEaAXUaCAgDEgFuGgFhEkQKDWZsb3dzY2hlbWFzL2YQCYoBMAouCgF1EGQaAWwgASoiCgUIARoBdRIQCgNnZXQSASoaASogASoBbhoHCgEqEgIvKhI3Ch1wcmlvcml0eWxldmVsY29uZmlndXJhdGlvbnMvbBAJigETEhEKAXUQHhgyIBQ6BghAEAYYMhIRCgZzdG9yZWQQCZIBBAgFEGQSDwoHdjEuZy5pbxAKGAFSAA==",
    "base64:EmkKB3YxLmcuaW8QBVJcCgRnLmlvEgJ2MRjoByAPKiYKAW4SAXMYuwMiDQoIMTAuMC4wLjEQuwM6B3Mubi5zdmNSAXRYATIjCAESBlBhc3NlZBoBbSIUMjAyMC0wMS0wMVQwMDowMDowMFo=",
    "base64:EgwKAXQQBmIFCgNwZW0=",
    "base64:EhMKAWMQBmoMCgVsaXZlehABGgFt",
    "base64:EgoKAXMQBnIDCgF4",
    "base64:EiwKDmNsdXN0ZXJyb2xlcy9hEAd6GAoWChQKA2dldBIAGgRwb2RzIgFwKgIveA==",
    "base64:Ei4KEHJvbGViaW5kaW5ncy9uL2IQCHoYEhYIARIBchoFCAEaAXUaCAgDEgFuGgFh",
    "base64:EkQKDWZsb3dzY2hlbWFzL2YQCYoBMAouCgF1EGQaAWwgASoiCgUIARoBdRIQCgNnZXQSASoaASogASoBbhoHCgEqEgIvKg==",
    "base64:EjcKHXByaW9yaXR5bGV2ZWxjb25maWd1cmF0aW9ucy9sEAmKARMSEQoBdRAeGDIgFDoGCEAQBhgy",
    "base64:EhEKBnN0b3JlZBAJkgEECAUQZA==",
    "base64:Eg8KB3YxLmcuaW8QChgBUgA=",
    "base64:CjcKB3YxLmcuaW8SAXUaATciCAiAwq/wBRAFMgYKAWESAWJCA2YvZ0oPCgJ2MRIBSxoBbiIBdSgBEiEKCQoBbhIBcxi7AxIEZy5pbxoCdjEgASoDcGVtMOgHOA8aJgokCglBdmFpbGFibGUSBFRydWUaBgiAwq/wBSIGUGFzc2VkKgFt",
    "base64:ClAKGgoAEgJ2MRoEcG9kcyIGc3RhdHVzKgFuMgFwEgVwYXRjaBoHZm9yY2U9MSICe30qEGFwcGxpY2F0aW9uL2pzb24yAyovKkIFUEFUQ0hIAg==",
];

/// `google.rpc.Status` with details of each kind.
pub const GRPC_STATUSES: &[&str] = &[
    "base64:CAMSAW0aaQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxI9CghOb3RGb3VuZBILcG9ydGljby5kZXYaCwoEY29kZRIDNDA0GgkKBG5hbWUSAW4aDAoEa2luZBIEcG9kcxo+Cil0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMuQmFkUmVxdWVzdBIRCg8KBnNwZWMuYRIFd3JvbmcaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAxCAyrXuAQ==",
    "base64:CAgaRAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIYChYI////////////ARD7//////////8B",
    "base64:CAgaNwordHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlF1b3RhRmFpbHVyZRIICgYKAXMSAWQaLwojdHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkhlbHASCAoGCgFkEgF1GkEKMnR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5QcmVjb25kaXRpb25GYWlsdXJlEgsKCQoBdBIBcxoBZBoyCih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMuRGVidWdJbmZvEgYKAWESAWIaNQordHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJlc291cmNlSW5mbxIGCgFhEgFiGjoKL3R5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5Mb2NhbGl6ZWRNZXNzYWdlEgcKAmVuEgFiGjEKKnR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXF1ZXN0SW5mbxIDCgFh",
];

/// Statuses of other servers.
pub const STATUSES: &[&str] = &[
    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m","reason":"NotFound","details":{"name":"n","group":"g","kind":"k","uid":"u","causes":[{"reason":"r","message":"m","field":"f"}],"retryAfterSeconds":3},"code":404}"#,
    r#"{"metadata":{"resourceVersion":"7","continue":null,"remainingItemCount":1,"shardInfo":{"selector":"s"}},"status":"Success","details":{}}"#,
    r#"{"kind":"Status","status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"300"}]}}"#,
    r#"{"kind":"Status","code":65536}"#,
];

/// Responses of webhooks to reviews of callers.
pub const REVIEWS: &[&str] = &[
    r#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true,"denied":false,"reason":"r"}}"#,
    r#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true,"denied":true}}"#,
    r#"{"authenticated":true,"user":{"username":"a","uid":"1","groups":["g"],"extra":{"k":["v"]}},"audiences":["x"],"error":""}"#,
    r#"{"status":null}"#,
    "{",
];

/// Documents of backends.
pub const OPENAPI_DOCUMENTS: &[&str] = &[
    r##"{"swagger":"2.0","info":{"title":"t","version":"1"},"paths":{"/apis/a/v1/x":{"get":{"schema":{"$ref":"#/definitions/X"}}},"/b":null},"definitions":{"X":{"properties":{"z":{"$ref":"#/definitions/Z"}}},"Z":{},"Y":{"$ref":"#/definitions/Y"}},"parameters":{"p":{"name":"p"}}}"##,
    r##"{"paths":{"/a":{"parameters":[{"$ref":"#/parameters/p"}],"d":"\"$ref\":\"#/definitions/Y\"","r":{"$ref":"#\/definitions\/Y"}}},"definitions":null,"parameters":{"p":{}}}"##,
    r#"{"paths":[]}"#,
    "[]",
];

/// The dialed address, a line end, and the response.
pub const PAGES: &[&str] = &[
    r#"10.0.0.1:80
<!DOCTYPE html><html><!-- <a href="/no"> --><head><link rel=x href=/css/a.css><script src="/a.js">var x = '<a href="/no">';</script></head>"#,
    r##"10.0.0.1:443
<BODY Background='/b.png'><a title="a > b" href="https://10.0.0.1/x?a=1&amp;b=2">1 < 2</a><img src = //10.0.0.1:443/i.png usemap="#m"/><input formaction="/../f" disabled>"##,
    r#"a
<textarea><a href=/x></TEXTAREA ><a href="http://a/api/v1/pods/p/proxy/../x""#,
    r#"k8s:6443
<a href="https://k8s:6443/a/./b"><a href='mailto:/x'><a href=?x><"#,
    "\n<!--->-->",
];

/// Audit policies.
pub const AUDIT_POLICIES: &[&str] = &[
    r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [u]
  userGroups: ["system:*"]
  verbs: [get]
  namespaces: [a, ""]
  resources:
  - group: ""
    resources: [secrets, pods/log, "*/status"]
    resourceNames: [b]
- level: RequestResponse
  nonResourceURLs: ["/healthz*", "/x"]
  omitManagedFields: true
  omitStages: [Panic]
"#,
    r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitManagedFields":true,"rules":[{"level":"None"}]}"#,
    "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: []\n",
    "rules:\n- level: Nothing\n",
];

/// Policies, one per line.
pub const ABAC_POLICIES: &[&str] = &[
    r#"{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"a","namespace":"n","resource":"pods","apiGroup":"*","readonly":true}}
# comment

{"user":"b","resource":"*"}
"#,
    r#"{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"*","nonResourcePath":"/x*"}}"#,
    r#"{"kind":"Other"}"#,
    "{}\n{",
];

/// Objects of several kinds, as JSON and as protobuf.
pub const OBJECTS: &[&str] = &[
    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","labels":{"a":"b"},"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"u"}]},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"100m","memory":"1Gi"}},"env":[{"name":"E","value":"v"}],"livenessProbe":{"httpGet":{"port":"http","path":"/"}},"volumeMounts":[{"name":"v","mountPath":"/m"}]}],"volumes":[{"name":"v","secret":{"secretName":"s"}}],"tolerations":[{"key":"k","operator":"Exists"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}}"#,
    r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ks.g.io"},"spec":{"group":"g.io","names":{"kind":"K","plural":"ks"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"integer","default":1,"enum":[1,2]},"b":{"x-kubernetes-int-or-string":true}},"additionalProperties":false}}}]}}"#,
    r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"eventTime":"2020-01-01T00:00:00.123456Z","series":{"count":2,"lastObservedTime":"2020-01-01T00:00:00.000000Z"},"action":"a"}"#,
    r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"object.spec.x > 1","messageExpression":"'a'"}]}}"#,
    r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","creationTimestamp":null},"data":{"a":"YQ=="},"stringData":{"b":"c"},"type":"kubernetes.io/tls","immutable":true}"#,
    r#"{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}}"#,
    "base64:azhzAAoJCgJ2MRIDUG9kEisKDgoBYRoBbloGCgFhEgFiEhkSDQoBYxIBaTIFCgFwGFAaBkFsd2F5cyAeGgAiAA==",
    "base64:azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhgKAwoBYRIGCgFrEgF2GgcKAWISAgD/IAEaACIA",
    "base64:azhzAAokChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgRSb2xlEhQKAwoBYRINCgNnZXQSABoEcG9kcxoAIgA=",
];

/// A schema on the first line, an object of it on the second.
pub const CUSTOM_RESOURCES: &[&str] = &[
    r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string","default":"d","maxLength":5,"pattern":"^[a-z]+$"},"i":{"type":"integer","minimum":1,"multipleOf":2},"n":{"type":"string","nullable":true},"f":{"type":"string","format":"date-time"},"e":{"enum":["x","y"],"type":"string"}},"required":["a"]}}}
{"apiVersion":"g.io/v1","kind":"K","metadata":{"name":"x"},"spec":{"a":"abc","i":2,"n":null,"f":"2020-01-01T00:00:00Z","zz":1}}"#,
    r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"},"v":{"x-kubernetes-int-or-string":true}},"required":["k"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"maxItems":5},"s":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},"m":{"type":"object","additionalProperties":{"type":"number"}}}}}}
{"apiVersion":"g.io/v1","kind":"K","metadata":{"name":"x"},"spec":{"l":[{"k":"a","v":1},{"k":"a","v":"x"}],"s":["a","a"],"m":{"x":1.5}}}"#,
    r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"n":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.n > 1","message":"m"},{"rule":"has(self.e) ? self.e.kind == 'Pod' : true","reason":"FieldValueForbidden","fieldPath":".e"}]}}}
{"apiVersion":"g.io/v1","kind":"K","metadata":{"name":"x"},"spec":{"n":1,"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","q":1}}}}"#,
    r#"{"type":"object","properties":{"spec":{"allOf":[{"required":["a"]}],"anyOf":[{"properties":{"a":{"minimum":1}}}],"not":{"required":["b"]},"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}}}}}
{"apiVersion":"g.io/v1","kind":"K","metadata":{"name":"x"},"spec":{"a":1}}"#,
    r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}
{"apiVersion":"g.io/v1","kind":"K","metadata":{"name":"x"},"any":[1,{"x":null}]}"#,
    r#"{"type":"array"}
{}"#,
    r##"{"$ref":"#/x","type":["object"]}"##,
];

/// A complete backup, a truncated one, states.
pub const BACKUPS: &[&str] = &[
    "base64:UE9SVElDTy1CQUNLVVAgMQpIAAAASwAAAEGrViouyS9K9UxRslJQKlbSUVBKLchPzgDyDIHsotSyzOLM/Dwg1xLITS5KTSxJTXEsgUoX5BeVZCbng7QaKNUCAAuOsvEnuNv+UgXCuDVsa9djOJjDfqSWLu++slDKdeeYUwAAADoAAAA847IQ4krOz0vLTM9NLCiWYsxTYkzUYDdiLLVg9pJiqFbKTS1JTEksSVSyqlbKS8xNVbJSSlSqrQ1izAcAy/CwBG4Ke5Yqpq3xoFYxcoUteeVr5z18h0G15jmUgYlFAAAADAAAAA6rViouSSxJLVayMqwFAIpVpqRyeWesKBbM7bLdAS6NYHxTksT5HAQGLEpg7+Mc",
    "base64:UE9SVElDTy1CQUNLVVAgMQpIAAAASwAAAEGrViouyS9K9UxRslJQKlbSUVBKLchPzgDyDIHsotSyzOLM/Dwg1xLITS5KTSxJTXEsgUoX5BeVZCbng7QaKNUCAAuOsvEnuNv+UgXCuDVsa9djOJjDfqSWLu++slDKdeeYUwAAADoAAAA847IQ4krOz0vLTM9NLCiWYsxTYkzUYDdiLLVg9pJiqFbKTS1JTEksSVSyqlbKS8xNVbJSSlSqrQ1izAcAy/CwBG4Ke5Y=",
    "base64:CjgSCmNvbmZpZ21hcHMaAW4iAWEoBzIBdTgDShoAeyJtZXRhZGF0YSI6eyJuYW1lIjoiYSJ9fVIBbwoeCgRnLmlvEgZ0aGluZ3MiAWIoCTIBdUABSgIBeFgB",
    "base64:CjgSCmNvbmZpZ21hcHMaAW4iAWEoBzIBdTgDShoAeyJtZXRhZGF0YSI6eyJuYW1lIjoiYSJ9fVIBbw==",
];

/// Values in the format of each provider.
pub const SEALED_VALUES: &[&str] = &[
    "k8s:enc:aesgcm:v1:k:0123456789abcdef0123456789abcdef",
    "k8s:enc:aescbc:v1:k:0123456789abcdef0123456789abcdef",
    "k8s:enc:secretbox:v1:k:0123456789abcdef0123456789abcdef0123456789abcdef",
    "k8s:enc:kms:v2:p:",
    "base64:azhzOmVuYzprbXM6djI6cDoKIDAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmEgJpZBoga2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2siCAoDYS5iEgF2KAE=",
    "base64:azhzOmVuYzprbXM6djI6cDoKIDAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmEgJpZBoga2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=",
];
