"""Writes an OCI image layout as one tar file: image.py VERSION OUT CA_BUNDLE ARCH=BINARY..."""
import hashlib
import json
import sys
import time

from archives import epoch, read, tar, zipped

USER = 65532


class Layout:
    """Blobs by their digests."""

    def __init__(self):
        self.blobs = {}

    def add(self, data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def add_json(self, value, media_type):
        return self.add(json.dumps(value, sort_keys=True).encode(), media_type)


def layer(binary, authorities):
    users = f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/data:/sbin/nologin\n"
    groups = f"root:x:0:\nnonroot:x:{USER}:\n"
    return tar([
        ("data", None, 0o700, USER),
        # Mount points of container runtimes.
        ("dev", None, 0o755),
        ("etc", None, 0o755),
        ("etc/group", groups.encode(), 0o644),
        ("etc/passwd", users.encode(), 0o644),
        ("etc/ssl", None, 0o755),
        ("etc/ssl/certs", None, 0o755),
        ("etc/ssl/certs/ca-certificates.crt", read(authorities), 0o644),
        ("proc", None, 0o555),
        ("sys", None, 0o555),
        ("tmp", None, 0o1777),
        ("usr", None, 0o755),
        ("usr/bin", None, 0o755),
        ("usr/bin/portico", read(binary), 0o755),
    ])


def image(layout, version, architecture, binary, authorities):
    files = layer(binary, authorities)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch()))
    labels = {
        "org.opencontainers.image.title": "portico",
        "org.opencontainers.image.description": "The Kubernetes API without a Kubernetes cluster",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    config = layout.add_json({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/bin/portico"],
            "Env": ["PATH=/usr/bin", "PORTICO_DATA_DIR=/data"],
            "WorkingDir": "/data",
            "Volumes": {"/data": {}},
            "ExposedPorts": {"6443/tcp": {}, "6444/tcp": {}},
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]},
        "history": [{"created": created, "created_by": "packaging/build/image.py"}],
    }, "application/vnd.oci.image.config.v1+json")
    manifest = layout.add_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layout.add(zipped(files), "application/vnd.oci.image.layer.v1.tar+gzip")],
        "annotations": labels,
    }, "application/vnd.oci.image.manifest.v1+json")
    return {**manifest, "platform": {"os": "linux", "architecture": architecture}}


def main(version, out, authorities, *pairs):
    layout = Layout()
    images = [image(layout, version, *pair.split("=", 1), authorities) for pair in pairs]
    index_type = "application/vnd.oci.image.index.v1+json"
    both = layout.add_json({"schemaVersion": 2, "mediaType": index_type, "manifests": images}, index_type)
    both["annotations"] = {"org.opencontainers.image.ref.name": version}
    index = {"schemaVersion": 2, "mediaType": index_type, "manifests": [both]}
    entries = [
        ("blobs", None, 0o755),
        ("blobs/sha256", None, 0o755),
        *((f"blobs/sha256/{digest}", data, 0o644) for digest, data in sorted(layout.blobs.items())),
        ("index.json", json.dumps(index, sort_keys=True).encode(), 0o644),
        ("oci-layout", b'{"imageLayoutVersion":"1.0.0"}', 0o644),
    ]
    with open(out, "wb") as file:
        file.write(tar(entries))


main(*sys.argv[1:])
