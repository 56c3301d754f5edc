"""Measures the time that envtest's two programs take to start and to end, with envtest's arguments.

Usage: envtest_times.py FOLDER [ROUNDS]. FOLDER contains `etcd` and `kube-apiserver`. Prints medians and maxima, in milliseconds.
Nothing is asserted: .ci/testenv prints the times for docs/internals/benchmarks.md.
"""

import pathlib
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATIENCE = 60
ANYBODY = ssl._create_unverified_context()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(url):
    """Waits until it returns 200, polling every two milliseconds."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        try:
            with urllib.request.urlopen(url, context=ANYBODY, timeout=PATIENCE) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.002)
    raise TimeoutError(url)


def key_pair(folder):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=sa", "-keyout", folder / "sa.key", "-out", folder / "sa.crt"],
        check=True, capture_output=True)


def once(assets):
    """Returns milliseconds from the first start to a successful response of the second program, and from SIGTERM to both ends."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        key_pair(folder)
        clients, peers, secure = free_port(), free_port(), free_port()
        etcd_url, running = f"http://127.0.0.1:{clients}", []
        began = time.monotonic()
        with open(folder / "log", "wb") as log:
            try:
                running.append(subprocess.Popen(
                    [assets / "etcd", f"--data-dir={folder}/etcd", f"--advertise-client-urls={etcd_url}", f"--listen-client-urls={etcd_url}",
                     f"--listen-peer-urls=http://127.0.0.1:{peers}", "--unsafe-no-fsync=true"], stdout=log, stderr=log))
                wait_for(f"{etcd_url}/health")
                running.append(subprocess.Popen(
                    [assets / "kube-apiserver", "--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1",
                     f"--cert-dir={folder}", f"--client-ca-file={folder}/sa.crt", "--disable-admission-plugins=ServiceAccount",
                     f"--etcd-servers={etcd_url}", f"--secure-port={secure}", f"--service-account-issuer=https://127.0.0.1:{secure}/",
                     f"--service-account-key-file={folder}/sa.crt", f"--service-account-signing-key-file={folder}/sa.key",
                     "--service-cluster-ip-range=10.0.0.0/24"], stdout=log, stderr=log, cwd=folder))
                wait_for(f"https://127.0.0.1:{secure}/healthz")
                healthy = time.monotonic()
            finally:
                for program in reversed(running):
                    program.terminate()
                    program.wait(PATIENCE)
        return (healthy - began) * 1000, (time.monotonic() - healthy) * 1000


def main():
    assets, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 11
    starts, ends = zip(*(once(assets) for _ in range(rounds)))
    for what, times in ("start to a good /healthz", starts), ("SIGTERM to the end of both", ends):
        print(f"{assets.name}: {what}: median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms ({rounds} times)")


main()
