"""Faults: their effect, the requests they match, and how often they occur.

The methods of :class:`Faults` take keywords that select requests: ``verbs``, ``api_group`` (empty for the core group), ``resource``,
``subresource``, ``namespace``, ``name``, ``user`` and ``user_agent`` (a prefix). Without any, a fault affects every request for a
resource. ``times`` limits the number of affected requests; without it, the fault stays until it is removed.
"""

import http.client
import json
import ssl

PATH = "/portico/test-faults"
TIMEOUT_SECONDS = 60


class Refused(Exception):
    """The server refuses a fault; the text is its message."""


class Fault:
    """A fault that is set on the server."""

    def __init__(self, faults, listed):
        self._faults, self._path = faults, f"{PATH}/{listed['id']}"

    def hits(self):
        """Returns the number of requests that the fault has affected."""
        return self._faults._ask("GET", self._path)["hits"]

    def remove(self):
        """Removes the fault. Returns the number of requests that it has affected."""
        return self._faults._ask("DELETE", self._path)["hits"]


class Faults:
    """Sets and removes the faults of a server."""

    def __init__(self, server):
        self._host = server.url.removeprefix("https://")
        self._context = ssl.create_default_context(cafile=str(server.certs / "internal-ca.crt"))
        self._context.load_cert_chain(server.certs / "admin.crt", server.certs / "admin.key")

    def latency(self, milliseconds, **match):
        """Delays requests."""
        return self._set("latency", {"milliseconds": milliseconds}, match)

    def status(self, code=None, reason=None, message=None, retry_after_seconds=None, **match):
        """Refuses requests: 409 is a conflict, 410 expired, also 429, 500, 503 and others."""
        refusal = {"code": code, "reason": reason, "message": message, "retryAfterSeconds": retry_after_seconds}
        return self._set("status", refusal, match)

    def drop_request(self, **match):
        """Closes the connection before the request is handled."""
        return self._set("dropRequest", {}, match)

    def drop_answer(self, **match):
        """Handles the request, then closes the connection instead of responding."""
        return self._set("dropAnswer", {}, match)

    def cut_watch(self, after_events=None, after_milliseconds=None, clean=None, **match):
        """Ends watches, including open ones; ``clean`` ends them as a timeout does."""
        end = {"afterEvents": after_events, "afterMilliseconds": after_milliseconds, "clean": clean}
        return self._set("cutWatch", end, match)

    def expire_watch(self, after_events=None, after_milliseconds=None, **match):
        """Ends watches, including open ones, with an ERROR event of 410."""
        end = {"afterEvents": after_events, "afterMilliseconds": after_milliseconds}
        return self._set("expireWatch", end, match)

    def stale_reads(self, resource_version=None, **match):
        """Serves gets and lists at a revision, by default the current one, and pauses watches."""
        return self._set("staleReads", {"resourceVersion": resource_version}, match)

    def clear(self):
        """Removes all faults."""
        self._ask("DELETE", PATH)

    def _set(self, kind, values, match):
        def given(values):
            return {key: value for key, value in values.items() if value is not None}

        times = match.pop("times", None)
        names = {"api_group": "apiGroup", "user_agent": "userAgent"}
        match = given({names.get(key, key): value for key, value in match.items()})
        rule = given({"match": match, "times": times, "fault": {kind: given(values)}})
        return Fault(self, self._ask("POST", PATH, rule))

    def _ask(self, method, path, body=None):
        connection = http.client.HTTPSConnection(self._host, context=self._context, timeout=TIMEOUT_SECONDS)
        try:
            body = None if body is None else json.dumps(body)
            connection.request(method, path, body, {"content-type": "application/json", "accept": "application/json"})
            answer = connection.getresponse()
            text = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(text["message"])
        return text
