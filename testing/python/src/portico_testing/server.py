"""Starts a server for tests and stops it with them."""

import json
import os
import pathlib
import subprocess
import threading

ARGUMENTS = ["run", "--ephemeral", "--test-faults", "--exit-with-stdin", "--ready-format", "json", "-v", "error"]
# Timeout for start and stop. Generous, because test machines can be busy.
TIMEOUT_SECONDS = 60


class NotReady(Exception):
    """The server could not be started, or exited before it was ready; its standard error has the reason."""


class Server:
    """A running server. It exits when its standard input closes, at the latest with this process."""

    def __init__(self, program=None, arguments=()):
        program = program or os.environ.get("PORTICO_BIN") or "portico"
        try:
            self._process = subprocess.Popen(
                [program, *ARGUMENTS, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise NotReady(f"cannot start {program}: {error}; install portico on the PATH or set PORTICO_BIN") from error
        timer = threading.Timer(TIMEOUT_SECONDS, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            self.stop()
            raise NotReady(f"{program} exited with {self._process.returncode} before it was ready")
        ready = json.loads(line)
        #: ``https://HOST:PORT``
        self.url = ready["url"]
        #: Path of an administrator's kubeconfig.
        self.kubeconfig = pathlib.Path(ready["kubeconfig"])
        #: Folder with internal-ca.crt, admin.crt and admin.key.
        self.certs = pathlib.Path(ready["certs"])

    def stop(self):
        """Stops the server and removes its data."""
        self._process.stdin.close()
        try:
            self._process.wait(TIMEOUT_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
