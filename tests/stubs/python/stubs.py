"""Drives a server with the stubs that grpcio-tools generates for Python: APIServices and objects over gRPC.

    stubs.py ADDRESS CERTS     ADDRESS: host:port of the control service; CERTS: the folder `certs` of its data folder
"""

import json
import pathlib
import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from portico.apiregistration.v1 import apiregistration_pb2 as registration
from portico.apiregistration.v1 import apiregistration_pb2_grpc as registration_grpc
from portico.history.v1 import history_pb2 as history
from portico.history.v1 import history_pb2_grpc as history_grpc
from portico.objects.v1 import objects_pb2 as objects
from portico.objects.v1 import objects_pb2_grpc as objects_grpc
from portico.routes.v1 import routes_pb2 as routes
from portico.routes.v1 import routes_pb2_grpc as routes_grpc

# Timeout of one call, and of a watch until its event, in seconds.
BOUND = 30
API_SERVICE = "v1.python-stubs.example.com"


def connect(address: str, certs: pathlib.Path) -> grpc.Channel:
    files = ("internal-ca.crt", "admin.key", "admin.crt")
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(*((certs / file).read_bytes() for file in files)))


def api_services(channel: grpc.Channel) -> None:
    """A watch receives a created object, a trace explains it, and an invalid one is refused with its fields."""
    client = registration_grpc.APIServicesStub(channel)
    events = client.Watch(registration.WatchRequest(field_selector=f"metadata.name={API_SERVICE}"), timeout=BOUND)
    wanted = registration.APIService(
        metadata=registration.ObjectMeta(name=API_SERVICE),
        spec=registration.APIServiceSpec(
            group="python-stubs.example.com", version="v1", group_priority_minimum=1000, version_priority=15,
            insecure_skip_tls_verify=True, service=registration.ServiceReference(namespace="default", name="nowhere"),
        ),
    )
    created = client.Create(registration.CreateRequest(api_service=wanted), timeout=BOUND)
    event = next(events)
    assert event.type == registration.EVENT_TYPE_ADDED and event.object.metadata.uid == created.metadata.uid, event
    events.cancel()
    subject = routes.ExplainRequest(subject="python-stubs.example.com/v1")
    explained = routes_grpc.RoutesStub(channel).Explain(subject, timeout=BOUND)
    assert not explained.ok and explained.api_service == API_SERVICE, explained
    client.Delete(registration.DeleteRequest(name=API_SERVICE), timeout=BOUND)
    wanted.spec.version_priority = 0
    refused = refusal(lambda: client.Create(registration.CreateRequest(api_service=wanted), timeout=BOUND))
    assert refused.code() == grpc.StatusCode.INVALID_ARGUMENT, refused
    fields = set()
    for detail in rpc_status.from_call(refused).details:
        request = error_details_pb2.BadRequest()
        if detail.Unpack(request):
            fields |= {violation.field for violation in request.field_violations}
    assert "spec.versionPriority" in fields, fields


def refusal(call) -> grpc.RpcError:
    try:
        answer = call()
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"not refused: {answer}")


def config_maps(channel: grpc.Channel) -> None:
    """A ConfigMap is created, listed in chunks and deleted, and its history read."""
    client = objects_grpc.ObjectsStub(channel)

    def call(verb: str, name: str = "", body: bytes = b"") -> objects.Call:
        target = objects.Target(version="v1", resource="configmaps", namespace="default", name=name)
        return objects.Call(target=target, verb=verb, body=body)

    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by-python-stubs"}, "data": {"a": "b"}}
    create = objects.DoRequest(call=call("create", body=json.dumps(body).encode()))
    assert client.Do(create, timeout=BOUND).code == 201
    parts = client.List(objects.ListRequest(call=call("list")), timeout=BOUND)
    listed = json.loads(b"".join(part.body for part in parts))
    assert "by-python-stubs" in [item["metadata"]["name"] for item in listed["items"]], listed
    assert refusal(lambda: client.Do(create, timeout=BOUND)).code() == grpc.StatusCode.ALREADY_EXISTS
    client.Do(objects.DoRequest(call=call("delete", name="by-python-stubs")), timeout=BOUND)
    target = history.Target(version="v1", resource="configmaps", namespace="default", name="by-python-stubs")
    states = history_grpc.HistoryStub(channel).States(history.StatesRequest(target=target), timeout=BOUND).states
    assert [state.change for state in states] == [history.CHANGE_DELETED, history.CHANGE_CREATED], states


def main() -> None:
    address, certs = sys.argv[1:]
    with connect(address, pathlib.Path(certs)) as channel:
        api_services(channel)
        config_maps(channel)
    print("python stubs: registered, watched, explained, wrote, listed and refused")


if __name__ == "__main__":
    main()
