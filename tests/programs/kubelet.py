"""Replaces a kubelet for metrics-server: serves the resource use of two containers and their node over TLS.

Usage: kubelet.py ADDRESS PORT CERTIFICATE KEY
"""

import http.server
import ssl
import sys
import time

STARTED = time.time()


def metrics():
    now, up = int(time.time() * 1000), time.time() - STARTED
    yield f"node_cpu_usage_seconds_total {up * 0.5:.3f} {now}"
    yield f"node_memory_working_set_bytes 1.048576e+08 {now}"
    for container in ("app", "side"):
        labels = f'{{container="{container}",namespace="default",pod="web"}}'
        yield f"container_start_time_seconds{labels} {STARTED:.3f} {now}"
        yield f"container_cpu_usage_seconds_total{labels} {up * 0.25:.3f} {now}"
        yield f"container_memory_working_set_bytes{labels} 2.097152e+07 {now}"


class Kubelet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.path == "/metrics/resource" and self.headers.get("Authorization", "").startswith("Bearer ")
        body = "\n".join([*metrics(), ""]).encode() if known else b""
        self.send_response(200 if known else 403)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


address, port, certificate, key = sys.argv[1:]
server = http.server.ThreadingHTTPServer((address, int(port)), Kubelet)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
