"""Prints the warnings in logs: each warning and error once, sorted, without variable parts.

Usage: log_warnings.py LOG …
"""

import json
import re
import sys

# Severity marks of log lines: klog, logfmt (slog, logrus), zap's console form, zerolog's, Python's and Java's logging, Helm.
LEVELS = [
    re.compile(r"^[WEF]\d{4} "),
    re.compile(r"\blevel=(warn|error|fatal)", re.IGNORECASE),
    re.compile(r"\t(WARN|ERROR|FATAL|DPANIC)\t"),
    re.compile(r"\b(WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE|WRN|ERR)\b"),
    re.compile(r"^(panic|fatal error|Error|Traceback)\b"),
]
# Fields of a JSON entry that are kept; others are times, ids and stack traces.
FIELDS = ["logger", "controller", "msg", "message", "error", "err", "reason"]

COLOURS = re.compile(r"\x1b\[\d*m")
CHANGING = [
    (re.compile(r"^[WEF]\d{4} [\d:.]+ +\d+ [\w.-]+:\d+\] "), lambda match: match[0][0] + " "),
    (re.compile(r"\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"/tmp/tmp\.\w+"), "SCRATCH"),
    (re.compile(r"(?<=[\w\]]):\d{4,5}\b"), ":PORT"),
    (re.compile(r"\b0x[0-9a-f]+\b"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{10,64}\b"), "HEX"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:ms|µs|ns|s|m\d+s)\b"), "DURATION"),
    (re.compile(r'(resourceVersion|rv|RV)(["=: ]+)\d+'), r"\1\2RV"),
    (re.compile(r"(Channel #)\d+"), r"\1N"),
    (re.compile(r"(?<=goroutine )\d+"), "N"),
    (re.compile(r"\.(go|py|java):\d+"), r".\1:LINE"),
    (re.compile(r"\s+$"), ""),
]


def entry(line):
    """Returns the warning in a line, or None."""
    if line.startswith("{"):
        try:
            return from_json(json.loads(line))
        except json.JSONDecodeError:
            pass
    line = COLOURS.sub("", line)
    return line if any(level.search(line) for level in LEVELS) else None


def from_json(fields):
    if str(fields.get("level", "")).lower() not in ("warn", "warning", "error", "fatal", "dpanic", "panic"):
        return None
    kept = [f"{name}={fields[name]}" for name in FIELDS if name in fields]
    return " ".join([str(fields["level"]).lower(), *kept]).replace("\n", " ")


def normal(warning):
    for pattern, replacement in CHANGING:
        warning = pattern.sub(replacement, warning)
    return warning


def main():
    found = set()
    for path in sys.argv[1:]:
        with open(path, errors="replace") as log:
            found.update(normal(warning) for line in log if (warning := entry(line.rstrip("\n"))))
    print(*sorted(found), sep="\n", end="\n" if found else "")


main()
