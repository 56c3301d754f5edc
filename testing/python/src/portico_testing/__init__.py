"""A Kubernetes API server for tests, with faults on request."""

from .faults import Fault, Faults, Refused
from .server import NotReady, Server

__all__ = ["Fault", "Faults", "NotReady", "Refused", "Server"]
