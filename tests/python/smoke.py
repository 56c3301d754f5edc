"""The Python client, unmodified, as its users use it: CRUD, patches, watches, tables, eviction, errors.

Usage: smoke.py KUBECONFIG. Fails with an assertion; prints one line on success.
"""

import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "python"


def config_maps(core):
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    made = core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}})
    assert made.metadata.uid and made.data == {"k": "v"}
    made.data["k"] = "w"
    assert core.replace_namespaced_config_map("a", NAMESPACE, made).data == {"k": "w"}
    try:
        core.replace_namespaced_config_map("a", NAMESPACE, made)
        raise AssertionError("a stale write was accepted")
    except ApiException as refused:
        assert refused.status == 409, refused
    patched = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"more": "1"}})
    assert patched.data == {"k": "w", "more": "1"}
    listed = core.list_namespaced_config_map(NAMESPACE, label_selector="x=1")
    assert [item.metadata.name for item in listed.items] == ["a"]
    try:
        core.read_namespaced_config_map("missing", NAMESPACE)
        raise AssertionError("what is missing was found")
    except ApiException as missing:
        assert missing.status == 404, missing


def workloads(apps):
    labels = {"app": "web"}
    body = client.V1Deployment(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1DeploymentSpec(
            replicas=2,
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels),
                spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="nginx")]),
            ),
        ),
    )
    made = apps.create_namespaced_deployment(NAMESPACE, body)
    assert made.spec.strategy.type == "RollingUpdate" and made.metadata.generation == 1
    apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 5}})
    assert apps.read_namespaced_deployment_scale("web", NAMESPACE).spec.replicas == 5
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")


def watching(core):
    revision = core.list_namespaced_secret(NAMESPACE).metadata.resource_version

    def write():
        core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": "s"}, "stringData": {"p": "q"}})
        core.delete_namespaced_secret("s", NAMESPACE)

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_secret, NAMESPACE, resource_version=revision, timeout_seconds=20):
        seen.append(event["type"])
        if event["type"] == "DELETED":
            watcher.stop()
    writer.join()
    assert seen == ["ADDED", "DELETED"], seen


def applied(api):
    resources = dynamic.DynamicClient(api).resources
    services = resources.get(api_version="v1", kind="Service")
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    made = services.server_side_apply(body=body, name="web", namespace=NAMESPACE, field_manager="smoke")
    assert made.spec.clusterIP and made.metadata.managedFields[0].manager == "smoke"
    leases = resources.get(api_version="coordination.k8s.io/v1", kind="Lease")
    leases.create(body={"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}, namespace=NAMESPACE)
    assert leases.get(name="l", namespace=NAMESPACE).spec.holderIdentity == "me"


def main():
    config.load_kube_config(sys.argv[1])
    core = client.CoreV1Api()
    config_maps(core)
    workloads(client.AppsV1Api())
    watching(core)
    applied(client.ApiClient())
    core.delete_namespace(NAMESPACE)
    print("the Python client is at home")


main()
