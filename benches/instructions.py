#!/usr/bin/env python3
"""Instructions per request in user space, counted by callgrind, and therefore independent of the load of the machine.

    benches/instructions.py BINARY GET|POST|PUT|LIST|WATCH [REQUESTS] [--policies N] [--webhooks N] [--of configmaps|secrets]
                                    [--flag=--enable-priority-and-fairness=false ...]

--policies and --webhooks configure that many, for the counted creations (ConfigMaps) or for other objects (Secrets);
each --flag is a flag of the server. LIST reads 100 ConfigMaps of 1 KiB; WATCH is a PUT that 20 watches receive.
Starts the binary under valgrind (Debian: valgrind), sends requests for ConfigMaps of 1 KiB over one connection, first 50 and then 50 and
REQUESTS (1,500) more, and prints the difference of both counts per request. Under valgrind, encryption does not use special instructions
of the processor, in all builds. Compare two builds; a single figure says little.
"""

import argparse
import http.client
import json
import os
import re
import ssl
import subprocess
import tempfile
import threading
import time

WARM_UP = 50
LISTED = 100
WATCHES = 20
PATH = "/api/v1/namespaces/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
# Time for the work of a start under valgrind.
SETTLE_SECONDS = 20
START_ATTEMPTS = 300


def connect(folder):
    """Opens a connection to the server, once it is ready."""
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


def admission(kind, name, spec):
    """Returns an object of the group that configures admission."""
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **spec}


def configure(connection, options):
    """Creates the requested policies and webhooks; no webhook is called if they match Secrets."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": [options.of], "operations": ["CREATE"]}]
    expressions = ["object.metadata.name != 'refused-{}'", "object.data.all(key, size(key) < 64)",
                   "!has(object.metadata.labels) || !('forbidden' in object.metadata.labels)"]
    objects = []
    for number in range(options.policies):
        spec = {"matchConstraints": {"resourceRules": rules},
                "validations": [{"expression": text.format(number)} for text in expressions]}
        objects.append(("validatingadmissionpolicies", admission("ValidatingAdmissionPolicy", f"p{number}", {"spec": spec})))
        spec = {"policyName": f"p{number}", "validationActions": ["Deny"]}
        objects.append(("validatingadmissionpolicybindings",
                        admission("ValidatingAdmissionPolicyBinding", f"p{number}", {"spec": spec})))
    webhooks = [{"name": f"w{number}.bench.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": rules,
                 "sideEffects": "None", "admissionReviewVersions": ["v1"]} for number in range(options.webhooks)]
    if webhooks:
        objects.append(("validatingwebhookconfigurations",
                        admission("ValidatingWebhookConfiguration", "bench", {"webhooks": webhooks})))
    for resource, body in objects:
        exchange(connection, "POST", f"{ADMISSION}/{resource}", body)


def exchange(connection, verb, path, body):
    """Sends one request and reads its response, which must be a success."""
    headers = {"Content-Type": "application/json"}
    connection.request(verb, path, None if verb == "GET" else json.dumps(body), {} if verb == "GET" else headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status not in (200, 201):
        raise SystemExit(f"{verb} {path}: {answer.status} {text[:200]}")


def config_map(name, number):
    """Returns an object of 1 KiB."""
    value = "x" * 1023 + str(number % 10)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}}


def prepare(connect_again, connection, verb):
    """Creates the objects that requests read or replace; returns values that must stay open."""
    for number in range({"POST": 0, "LIST": LISTED}.get(verb, 1)):
        exchange(connection, "POST", PATH, config_map(f"o{number}", number))
    watches = [connect_again() for _ in range(WATCHES if verb == "WATCH" else 0)]
    for watch in watches:
        watch.request("GET", f"{PATH}?watch=true")
        threading.Thread(target=drain, args=[watch.getresponse()], daemon=True).start()
    return watches


def drain(answer):
    """Reads a stream until it ends."""
    try:
        while answer.read1():
            pass
    except (OSError, http.client.HTTPException):
        pass


def send(connection, verb, number):
    """Sends one request; all except POST use objects that `prepare` created."""
    if verb == "LIST":
        exchange(connection, "GET", PATH, None)
    elif verb == "POST":
        exchange(connection, verb, PATH, config_map(f"n{number}", number))
    else:
        exchange(connection, "GET" if verb == "GET" else "PUT", f"{PATH}/o0", config_map("o0", number))


def instructions(options, requests):
    """Counts all instructions of a server with this number of requests."""
    with tempfile.TemporaryDirectory() as folder:
        counts = f"{folder}/counts"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", options.binary]
        command += ["--secure-port", "0", "--control-address", "127.0.0.1:0", "--addresses-file", f"{folder}/addresses.json"]
        command += options.flag
        environment = {"PATH": os.environ["PATH"], "PORTICO_DATA_DIR": f"{folder}/data"}
        with open(f"{folder}/log", "w") as log:
            server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            connection = connect(folder)
            time.sleep(SETTLE_SECONDS)
            if options.policies or options.webhooks:
                configure(connection, options)
                # Controllers check the types of policies.
                time.sleep(2 * SETTLE_SECONDS)
            watches = prepare(lambda: connect(folder), connection, options.verb)
            for number in range(requests):
                send(connection, options.verb, number)
            for watch in watches:
                watch.close()
        finally:
            server.terminate()
            server.wait()
        with open(counts) as file:
            return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M).group(1))


def main():
    """Counts both runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("verb", choices=["GET", "POST", "PUT", "LIST", "WATCH"])
    parser.add_argument("requests", type=int, nargs="?", default=1500)
    parser.add_argument("--policies", type=int, default=0)
    parser.add_argument("--webhooks", type=int, default=0)
    parser.add_argument("--of", choices=["configmaps", "secrets"], default="configmaps")
    parser.add_argument("--flag", action="append", default=[])
    options = parser.parse_args()
    before = instructions(options, WARM_UP)
    after = instructions(options, WARM_UP + options.requests)
    print(f"{options.verb}: {(after - before) // options.requests:,} instructions each")


main()
