"""Writes a Python wheel with the program: wheel.py VERSION ARCH BINARY FOLDER. ARCH is x86_64 or aarch64."""
import base64
import hashlib
import sys
import time
import zipfile

from archives import epoch, read


def main(version, arch, binary, folder):
    # A static program runs with any C library.
    tags = [f"manylinux_2_17_{arch}", f"manylinux2014_{arch}", f"musllinux_1_1_{arch}"]
    name, info = f"portico-{version}", f"portico-{version}.dist-info"
    wheel = "Wheel-Version: 1.0\nGenerator: portico\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
    about = f"Metadata-Version: 2.1\nName: portico\nVersion: {version}\nLicense: Apache-2.0\nRequires-Python: >=3.8\n"
    about += "Summary: The Kubernetes API without a Kubernetes cluster\n"
    about += "Project-URL: Repository, https://github.com/portico-dev/portico\n"
    files = [
        (f"{name}.data/scripts/portico", read(binary), 0o755),
        (f"{info}/METADATA", about.encode(), 0o644),
        (f"{info}/WHEEL", wheel.encode(), 0o644),
        (f"{info}/licenses/LICENSE", read("LICENSE"), 0o644),
    ]
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    when = time.gmtime(epoch())[:6]
    with zipfile.ZipFile(f"{folder}/{name}-py3-none-{'.'.join(tags)}.whl", "w", zipfile.ZIP_DEFLATED) as out:
        for path, data, mode in files:
            entry = zipfile.ZipInfo(path, when)
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            out.writestr(entry, data)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


main(*sys.argv[1:])
