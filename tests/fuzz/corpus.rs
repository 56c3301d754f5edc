//! Inputs to begin with: right ones, and wrong ones that were interesting once.

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

/// DER in base64: a whole request, its beginning, no request.
pub const CERTIFICATE_REQUESTS: &[&str] = &[
    "MIIBEDCBtgIBADAvMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFjAUBgNVBAMMDXN5c3RlbTpub2RlOmEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARXjf8t6BdUks3sGwO1bNNSkbjOraRi4Qac1o6yxHYEftxPsNaJFiws52LLJzly76OawDuozc3ejwoX1//CQE7BoCUwIwYJKoZIhvcNAQkOMRYwFDASBgNVHREECzAJggFhhwQKAAABMAoGCCqGSM49BAMCA0kAMEYCIQCRxWRjl4EAQA0IKZFn9D3FZ/lEu5K/NLGc+8VXztEeqwIhANQ4kTWyXy22pjJ7M+wZ5w1j2imy0su8f4XpW60Dyffq",
    "MIIBEDCBtgIBADAvMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFjAUBgNVBAMMDXN5c3RlbTpub2RlOmEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARXjf8t",
    "MAA=",
    "MIL/////",
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

/// Parts of signed tokens; nobody has signed these.
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

/// Tokens, key sets and claims of issuers.
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

/// Frames of `moby/spdystream`, as hexadecimal digits, and others.
pub const SPDY_FRAMES: &[&str] = &[
    "hex:80030001000000290000000100000000000078f9e3c6a7c262606060 04a7b392a2d4c45c6851c29a0a0a6800000000ffff\
     8003000100000017000000030000000000 00c22e555c9292990700000000ffff",
    "hex:8003000600000004 00000001 0000000501000003 616263 80030003000000080000000500000005",
    "hex:80030004000000 0c000000010100000400000064 800300070000000800000000 00000000 8003000900000008000000000000ffff",
    "hex:80030002000000050000000178 80020006 80030006 00ffffff 00000001 00ffffff",
];
