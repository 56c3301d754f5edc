"""A server of the tests' own: started, waited for, and ended with them."""

import json
import os
import pathlib
import subprocess
import threading

ARGUMENTS = ["run", "--ephemeral", "--test-faults", "--exit-with-stdin", "--ready-format", "json", "-v", "error"]
# Far beyond what a start takes, for machines that builds keep busy.
PATIENCE_SECONDS = 60


class NotReady(Exception):
    """The server cannot be started, or has ended before it was ready; standard error says why."""


class Server:
    """A running server. Its standard input is open as long as this process lives, and the server ends with it."""

    def __init__(self, program=None, arguments=()):
        program = program or os.environ.get("PORTICO_BIN") or "portico"
        try:
            self._process = subprocess.Popen(
                [program, *ARGUMENTS, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise NotReady(f"{program}: {error}: put portico on the PATH, or name it in PORTICO_BIN") from error
        timer = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            self.stop()
            raise NotReady(f"{program} has ended with {self._process.returncode} before it was ready")
        ready = json.loads(line)
        #: ``https://HOST:PORT``
        self.url = ready["url"]
        #: The administrator's kubeconfig.
        self.kubeconfig = pathlib.Path(ready["kubeconfig"])
        #: The folder of internal-ca.crt, admin.crt and admin.key.
        self.certs = pathlib.Path(ready["certs"])

    def stop(self):
        """Ends the server and removes its data."""
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
