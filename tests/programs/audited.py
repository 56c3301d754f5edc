"""Prints the requests and responses of clients from an audit log: each once, sorted, without variable parts.

Usage: audited.py LOG [VERB …]: only requests of these verbs, for programs whose reads depend on timing.
"""

import json
import re
import sys

# Users that are not clients of the test.
OTHERS = re.compile(r"^(kubectl|kube-apiserver|kube-controller-manager|portico)\b")

# Depends on timing: a client may find a new definition established when it starts to wait.
WAITING = re.compile(r"/customresourcedefinitions\?.*fieldSelector=metadata\.name%3D")

CHANGING = [
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r'("resourceVersion": ")\d+'), r"\1RV"),
    (re.compile(r"(resourceVersion=)[1-9]\d*"), r"\1RV"),
    (re.compile(r"((?:timeoutSeconds|timeout)=)\d+"), r"\1N"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "IP"),
]


def ordered(answer):
    """Sorts entries of managed fields, whose times have a precision of seconds."""
    for item in [answer, *(answer.get("items") or [])]:
        fields = item.get("metadata", {}).get("managedFields", [])
        fields.sort(key=lambda entry: (entry["manager"], entry["operation"], entry.get("subresource", "")))
    return answer


def asked(event):
    """Returns a request and its response as a line."""
    code = event.get("responseStatus", {}).get("code", "")
    # Discovery documents are compared by other tests.
    answer = event.get("responseObject") if "objectRef" in event else None
    body = json.dumps(ordered(answer), sort_keys=True) if answer else ""
    return f"{event['verb']} {event['requestURI']} {code} {body}".rstrip()


def normal(line):
    for pattern, replacement in CHANGING:
        line = pattern.sub(replacement, line)
    return line


def main(path, *verbs):
    with open(path) as log:
        events = [json.loads(line) for line in log]
    of_clients = [event for event in events if not OTHERS.match(event.get("userAgent", "")) and not WAITING.search(event["requestURI"])]
    print(*sorted({normal(asked(event)) for event in of_clients if not verbs or event["verb"] in verbs}), sep="\n")


main(*sys.argv[1:])
