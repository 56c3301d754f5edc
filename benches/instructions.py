#!/usr/bin/env python3
"""Instructions that one request costs in user space, counted by callgrind: the same on a busy machine and on a quiet one.

    benches/instructions.py BINARY GET|POST|PUT [REQUESTS]

Starts the binary under valgrind (Debian: valgrind), sends ConfigMaps of 1 KiB over one connection, once 50 and once 50 and
REQUESTS (1,500) more, and prints the difference of both counts for each request. Encryption runs without the processor's own
instructions there, alike for all builds. Compare two builds; a figure by itself says little.
"""

import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time

WARM_UP = 50
PATH = "/api/v1/namespaces/default/configmaps"
# Until what a start does once is done, under valgrind.
SETTLE_SECONDS = 20
START_ATTEMPTS = 300


def connect(folder):
    """A connection to the server, as soon as it is ready."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for _ in range(START_ATTEMPTS):
        try:
            with open(f"{folder}/addresses.json") as file:
                host, port = json.load(file)["https"].rsplit(":", 1)
            certificates = f"{folder}/data/certs"
            context.load_cert_chain(f"{certificates}/admin.crt", f"{certificates}/admin.key")
            return http.client.HTTPSConnection(host, int(port), context=context, timeout=60)
        except (OSError, ValueError):
            time.sleep(0.5)
    raise SystemExit("the server did not become ready")


def send(connection, verb, number):
    """One request; a PUT or GET is of an object that the first request makes."""
    verb, name = ("POST", "one") if number == 0 and verb != "POST" else (verb, f"n{number}" if verb == "POST" else "one")
    value = "x" * 1023 + str(number % 10)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}}
    path = PATH if verb == "POST" else f"{PATH}/{name}"
    headers = {"Content-Type": "application/json"}
    connection.request(verb, path, None if verb == "GET" else json.dumps(body), {} if verb == "GET" else headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status not in (200, 201):
        raise SystemExit(f"{verb} {path}: {answer.status} {text[:200]}")


def instructions(binary, verb, requests):
    """All instructions of a server's life with so many requests."""
    with tempfile.TemporaryDirectory() as folder:
        counts = f"{folder}/counts"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", binary]
        command += ["--secure-port", "0", "--control-address", "127.0.0.1:0", "--addresses-file", f"{folder}/addresses.json"]
        environment = {"PATH": os.environ["PATH"], "PORTICO_DATA_DIR": f"{folder}/data"}
        with open(f"{folder}/log", "w") as log:
            server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            connection = connect(folder)
            time.sleep(SETTLE_SECONDS)
            for number in range(requests):
                send(connection, verb, number)
        finally:
            server.terminate()
            server.wait()
        with open(counts) as file:
            return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M).group(1))


def main():
    """Counts twice."""
    binary, verb = sys.argv[1:3]
    requests = int(sys.argv[3]) if len(sys.argv) > 3 else 1500
    before = instructions(binary, verb, WARM_UP)
    after = instructions(binary, verb, WARM_UP + requests)
    print(f"{verb}: {(after - before) // requests:,} instructions each")


main()
