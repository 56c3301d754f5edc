"""A kopf operator with a custom resource, killed at several positions with SIGKILL and restarted: everything converges.

Usage: operated.py KUBECONFIG. Fails with an assertion; prints one line on success.
"""

import os
import pathlib
import subprocess
import sys

from kubernetes import client, config, dynamic

from binder import GROUP, PLURAL, VERSION

NAMESPACE, FINALIZER, PATIENCE = "kopf", "kopf.zalando.org/KopfFinalizerMarker", 60
INTEGER, STRING = {"type": "integer"}, {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["title", "pages"],
            "properties": {"title": STRING, "pages": INTEGER, "paper": {"type": "string", "default": "plain"}},
        },
        "status": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"observedGeneration": INTEGER, "pages": INTEGER},
        },
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "kind": "Tome"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}


class Operator:
    """A running operator; `hold` is the position at which it waits."""

    def __init__(self, hold=""):
        module = pathlib.Path(__file__).with_name("binder.py")
        command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", NAMESPACE, str(module)]
        environment = dict(os.environ, KUBECONFIG=sys.argv[1], HOLD=hold)
        self.hold = hold
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)

    def __enter__(self):
        return self

    def arrived(self):
        line = self.process.stdout.readline()
        assert line == f"at {self.hold}\n", f"the operator did not come to {self.hold}: {line!r}"

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def seen(resource, name, holds, namespace=NAMESPACE):
    """Watches an object until the condition holds; the object is None if it does not exist."""
    only = {"namespace": namespace, "field_selector": f"metadata.name={name}"}
    listed = resource.get(**only)
    current = next(iter(listed.items), None)
    if holds(current):
        return current
    since = listed.metadata.resourceVersion
    for event in resource.watch(**only, resource_version=since, timeout=PATIENCE):
        current = None if event["type"] == "DELETED" else event["object"]
        if holds(current):
            return current
    raise AssertionError(f"{name} did not become what it shall be: {current}")


def established(definition):
    conditions = definition.status.conditions if definition and definition.status else None
    return any(c.type == "Established" and c.status == "True" for c in conditions or [])


def pages_of(pages, name):
    """Returns name and uid of each page."""
    listed = pages.get(namespace=NAMESPACE, label_selector=f"tome={name}").items
    return {page.metadata.name: page.metadata.uid for page in listed}


def killed(tomes, pages, name, keeping, parting):
    with Operator(keeping) as operator:
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Tome", "metadata": {"name": name}}
        tome = tomes.create(body=dict(body, spec={"title": "Of doors", "pages": 3}), namespace=NAMESPACE)
        operator.arrived()
    before = pages_of(pages, name)
    change = {"spec": {"pages": 2}}
    tomes.patch(name=name, namespace=NAMESPACE, body=change, content_type="application/merge-patch+json")
    with Operator(parting) as operator:
        expected = {"observedGeneration": 2, "pages": 2}
        kept = seen(tomes, name, lambda t: t.status and {key: t.status[key] for key in expected} == expected)
        assert kept.metadata.generation == 2 and kept.metadata.finalizers == [FINALIZER], kept.metadata
        now = pages_of(pages, name)
        assert sorted(now) == [f"{name}-1", f"{name}-2"], now
        assert all(before.get(page, uid) == uid for page, uid in now.items()), f"made anew: {before} {now}"
        tomes.delete(name=name, namespace=NAMESPACE)
        operator.arrived()
    assert tomes.get(name=name, namespace=NAMESPACE).metadata.deletionTimestamp, "the finalizer holds it"
    assert pages_of(pages, name) == now, "their owner is there still"
    with Operator():
        seen(tomes, name, lambda t: t is None or t.metadata.uid != tome.metadata.uid)
    for page in now:
        seen(pages, page, lambda p: p is None)
    assert pages.get(name=f"{name}-farewell", namespace=NAMESPACE).data.title == "Of doors"


def main():
    config.load_kube_config(sys.argv[1])
    resources = dynamic.DynamicClient(client.ApiClient()).resources
    client.CoreV1Api().create_namespace({"metadata": {"name": NAMESPACE}})
    definitions = resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    definitions.create(body=DEFINITION)
    seen(definitions, DEFINITION["metadata"]["name"], established, namespace=None)
    resources.invalidate_cache()
    tomes = resources.get(api_version=f"{GROUP}/{VERSION}", kind="Tome")
    pages = resources.get(api_version="v1", kind="ConfigMap")
    killed(tomes, pages, "first", "before pages", "before farewell")
    killed(tomes, pages, "second", "among pages", "after farewell")
    killed(tomes, pages, "third", "before status", "before farewell")
    print("a kopf operator is at home")


main()
