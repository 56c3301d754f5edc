"""A kopf operator: it maintains a ConfigMap per page of each Tome, reports in the status, and writes a farewell.

Run by operated.py. At the position in the variable HOLD it prints a line and waits to be killed.
"""

import os
import threading

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

GROUP, VERSION, PLURAL = "tomes.example.com", "v1", "tomes"
TOMES = (GROUP, VERSION, PLURAL)


def stand(place):
    if os.environ.get("HOLD") == place:
        print(f"at {place}", flush=True)
        threading.Event().wait()


def make(core, namespace, body):
    """An existing object was created before the operator was killed."""
    try:
        core.create_namespaced_config_map(namespace, body)
    except ApiException as refused:
        if refused.status != 409:
            raise


@kopf.on.startup()
def connect(settings, **_):
    config.load_kube_config(os.environ["KUBECONFIG"])
    settings.posting.enabled = False


@kopf.on.resume(*TOMES)
@kopf.on.create(*TOMES)
@kopf.on.update(*TOMES)
def keep(name, namespace, spec, meta, patch, **_):
    core = client.CoreV1Api()
    stand("before pages")
    wanted = [f"{name}-{number}" for number in range(1, spec["pages"] + 1)]
    for page in wanted:
        body = {"metadata": {"name": page, "labels": {"tome": name}}, "data": {"paper": spec["paper"]}}
        kopf.adopt(body)
        make(core, namespace, body)
        stand("among pages")
    for page in core.list_namespaced_config_map(namespace, label_selector=f"tome={name}").items:
        if page.metadata.name not in wanted:
            core.delete_namespaced_config_map(page.metadata.name, namespace)
    stand("before status")
    patch.status.update(observedGeneration=meta["generation"], pages=len(wanted))


@kopf.on.delete(*TOMES)
def part(name, namespace, spec, **_):
    stand("before farewell")
    make(client.CoreV1Api(), namespace, {"metadata": {"name": f"{name}-farewell"}, "data": {"title": spec["title"]}})
    stand("after farewell")
