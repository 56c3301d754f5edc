"""The fixtures, with the Kubernetes client of Python."""

import os
import time

import pytest
from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

from portico_testing import NotReady, Refused, Server

NAMESPACE = "default"


@pytest.fixture
def core(portico):
    api = client.CoreV1Api(config.new_client_from_config(str(portico.kubeconfig)))
    yield api
    for item in api.list_namespaced_config_map(NAMESPACE, label_selector="test").items:
        api.delete_namespaced_config_map(item.metadata.name, NAMESPACE)


def created(core, name):
    return core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": name, "labels": {"test": "1"}}})


@pytest.mark.parametrize("code", [409, 410, 500, 503])
def test_requests_are_refused_as_often_as_is_asked_for(core, portico_faults, code):
    made = created(core, "a")
    fault = portico_faults.status(code, resource="configmaps", verbs=["update"], times=1)
    made.data = {"k": "v"}
    with pytest.raises(ApiException) as refused:
        core.replace_namespaced_config_map("a", NAMESPACE, made)
    assert refused.value.status == code
    assert core.replace_namespaced_config_map("a", NAMESPACE, made).data == {"k": "v"}
    assert fault.hits() == 1


def test_requests_are_late_and_those_of_others_are_not(core, portico_faults):
    fault = portico_faults.latency(300, resource="configmaps", api_group="")
    began = time.monotonic()
    core.list_namespaced_secret(NAMESPACE)
    assert fault.hits() == 0
    core.list_namespaced_config_map(NAMESPACE)
    assert time.monotonic() - began >= 0.3
    assert fault.remove() == 1


def test_an_answer_is_lost_and_the_write_is_not(core, portico_faults):
    portico_faults.drop_answer(resource="configmaps", verbs=["create"])
    with pytest.raises(Exception):
        created(core, "lost")
    portico_faults.clear()
    assert core.read_namespaced_config_map("lost", NAMESPACE).metadata.name == "lost"


def test_reads_are_stale(core, portico_faults):
    created(core, "a")
    portico_faults.stale_reads(resource="configmaps")
    created(core, "b")
    names = [item.metadata.name for item in core.list_namespaced_config_map(NAMESPACE, label_selector="test").items]
    assert names == ["a"]
    with pytest.raises(ApiException) as refused:
        core.read_namespaced_config_map("b", NAMESPACE)
    assert refused.value.status == 404


def test_a_watch_goes_on_after_it_was_cut(core, portico_faults):
    fault = portico_faults.cut_watch(after_events=1, clean=True, resource="configmaps", times=2)
    created(core, "a")
    watched, seen = watch.Watch(), []
    listing = core.list_namespaced_config_map
    for event in watched.stream(listing, NAMESPACE, label_selector="test"):
        name = event["object"].metadata.name
        if name not in seen:
            seen.append(name)
            if len(seen) == 3:
                break
            created(core, {1: "b", 2: "c"}[len(seen)])
    assert seen == ["a", "b", "c"]
    assert fault.hits() == 2


def test_a_fault_that_makes_no_sense_is_refused_in_words(portico_faults):
    with pytest.raises(Refused, match="applies only to watch"):
        portico_faults.expire_watch(verbs=["get"])
    with pytest.raises(Refused, match="unknown field `colour`"):
        portico_faults.drop_request(colour="red")


def test_a_server_leaves_nothing_and_one_that_does_not_start_says_so():
    with Server() as server:
        kubeconfig = server.kubeconfig
        assert kubeconfig.exists()
    assert not os.path.exists(kubeconfig.parent)
    with pytest.raises(NotReady, match="PORTICO_BIN"):
        Server("no-such-program")
    with pytest.raises(NotReady, match="exited with 2"):
        Server(arguments=["--no-such-flag"])
