"""Faults: what happens, to which requests, and how often.

Every method of :class:`Faults` takes the requests that are meant as keywords, all of resources if none is given: ``verbs``,
``api_group`` (empty for core), ``resource``, ``subresource``, ``namespace``, ``name``, ``user``, ``user_agent`` (how it begins); and
``times``, without which the fault happens until it is removed.
"""

import http.client
import json
import ssl

PATH = "/portico/test-faults"
TIMEOUT_SECONDS = 60


class Refused(Exception):
    """The server refuses a fault, in these words."""


class Fault:
    """A fault that is set."""

    def __init__(self, faults, listed):
        self._faults, self._path = faults, f"{PATH}/{listed['id']}"

    def hits(self):
        """To how many requests it has happened."""
        return self._faults._ask("GET", self._path)["hits"]

    def remove(self):
        """Removes it; gives back to how many requests it has happened."""
        return self._faults._ask("DELETE", self._path)["hits"]


class Faults:
    """Sets the faults of a server."""

    def __init__(self, server):
        self._host = server.url.removeprefix("https://")
        self._context = ssl.create_default_context(cafile=str(server.certs / "internal-ca.crt"))
        self._context.load_cert_chain(server.certs / "admin.crt", server.certs / "admin.key")

    def latency(self, milliseconds, **meant):
        """Requests are handled later."""
        return self._set("latency", {"milliseconds": milliseconds}, meant)

    def status(self, code=None, reason=None, message=None, retry_after_seconds=None, **meant):
        """Requests are refused: 409 is a conflict, 410 expired, 429, 500, 503 and so on."""
        refusal = {"code": code, "reason": reason, "message": message, "retryAfterSeconds": retry_after_seconds}
        return self._set("status", refusal, meant)

    def drop_request(self, **meant):
        """The connection breaks, and nothing was done."""
        return self._set("dropRequest", {}, meant)

    def drop_answer(self, **meant):
        """What is asked for is done, and the connection breaks in the place of the answer."""
        return self._set("dropAnswer", {}, meant)

    def cut_watch(self, after_events=None, after_milliseconds=None, clean=None, **meant):
        """Watches break off, open ones, too; ``clean`` ones end as at their timeout."""
        end = {"afterEvents": after_events, "afterMilliseconds": after_milliseconds, "clean": clean}
        return self._set("cutWatch", end, meant)

    def expire_watch(self, after_events=None, after_milliseconds=None, **meant):
        """Watches, open ones, too, end with an event that says 410."""
        end = {"afterEvents": after_events, "afterMilliseconds": after_milliseconds}
        return self._set("expireWatch", end, meant)

    def stale_reads(self, resource_version=None, **meant):
        """Gets and lists answer as of a revision, that of now if none is given, and watches stand still."""
        return self._set("staleReads", {"resourceVersion": resource_version}, meant)

    def clear(self):
        """Removes all."""
        self._ask("DELETE", PATH)

    def _set(self, kind, values, meant):
        def given(values):
            return {key: value for key, value in values.items() if value is not None}

        times = meant.pop("times", None)
        names = {"api_group": "apiGroup", "user_agent": "userAgent"}
        meant = given({names.get(key, key): value for key, value in meant.items()})
        rule = given({"match": meant, "times": times, "fault": {kind: given(values)}})
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
