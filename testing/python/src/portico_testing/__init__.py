"""A Kubernetes API for tests, without a cluster, that fails on request."""

from .faults import Fault, Faults, Refused
from .server import NotReady, Server

__all__ = ["Fault", "Faults", "NotReady", "Refused", "Server"]
