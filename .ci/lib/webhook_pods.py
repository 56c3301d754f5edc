"""Runs webhooks of e2e tests (containers of upstream's test image) as processes on this host.

Each process listens on a free port, to which connections to the pod's address are forwarded. `.ci/e2e` assigns the addresses of
pods to this host, in a network namespace.
"""

import base64
import pathlib
import socket
import subprocess
import tempfile
import threading
import time

# Timeout in seconds until a process listens.
PATIENCE = 20


class WebhookPods:
    """Processes by the UID of their pod. `program` is upstream's `agnhost`; `secret(namespace, name)` reads a Secret."""

    def __init__(self, program, secret):
        self.program, self.secret, self.running = program, secret, {}

    def runs(self, pod):
        """True if the container of this pod is a webhook, which runs as a process."""
        arguments = pod["spec"]["containers"][0].get("args", [])
        return self.program is not None and arguments[:1] == ["webhook"]

    def start(self, pod, address):
        """Starts the process of a pod, forwards its ports from the pod's address, and returns once it listens."""
        container = pod["spec"]["containers"][0]
        folder = tempfile.TemporaryDirectory()
        arguments, port = container["args"], free_port()
        for path in self.mount(pod, container, pathlib.Path(folder.name)):
            arguments = [argument.replace(path, folder.name + path) for argument in arguments]
        arguments = [f"--port={port}" if argument.startswith("--port=") else argument for argument in arguments]
        process = subprocess.Popen([self.program, *arguments])
        listeners = [forward((address, listed["containerPort"]), port) for listed in container.get("ports", [])]
        self.running[pod["metadata"]["uid"]] = process, listeners, folder
        wait_for(process, port)

    def mount(self, pod, container, root):
        """Writes the Secrets that a container mounts below a folder. Returns the mount paths."""
        volumes = {volume["name"]: volume.get("secret") for volume in pod["spec"].get("volumes", [])}
        mounts = [mount for mount in container.get("volumeMounts", []) if volumes.get(mount["name"])]
        for mount in mounts:
            target = root / mount["mountPath"].lstrip("/")
            target.mkdir(parents=True)
            data = self.secret(pod["metadata"]["namespace"], volumes[mount["name"]]["secretName"])["data"]
            for name, value in data.items():
                (target / name).write_bytes(base64.b64decode(value))
        return [mount["mountPath"] for mount in mounts]

    def stop(self, pod):
        """Ends the process of a pod, if it has one."""
        process, listeners, folder = self.running.pop(pod["metadata"]["uid"], (None, [], None))
        for listener in listeners:
            listener.close()
        if process is not None:
            process.kill()
            process.wait()
            folder.cleanup()

    def stop_all(self):
        """Ends all processes."""
        for uid in list(self.running):
            self.stop({"metadata": {"uid": uid}})


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(process, port):
    """Returns once a process listens on a port. Raises if it exits or the timeout expires."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the webhook does not listen on port {port}")


def forward(address, port):
    """Accepts connections at an address and joins each with one to a port of this host."""
    listener = socket.create_server(address)

    def accept():
        while True:
            try:
                incoming, _ = listener.accept()
                outgoing = socket.create_connection(("127.0.0.1", port))
            except OSError:
                return
            for source, target in ((incoming, outgoing), (outgoing, incoming)):
                threading.Thread(target=pump, args=(source, target), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def pump(source, target):
    """Copies one direction of a connection until it ends."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side is closed: close the other one.
        source.close()
        target.close()
