"""Packages of the test helpers (testing/): helpers.py VERSION FOLDER.

A wheel, an npm package, a crate, and archives of the Go module and of the Maven project.
"""
import base64
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile

from archives import epoch, read, tar, zipped

# Folders of build results and of dependencies.
SKIPPED = {"target", "build", "dist", "node_modules", "__pycache__", ".pytest_cache", "test", "tests"}


def files(folder, skipped=frozenset(SKIPPED)):
    """Returns the paths of the sources below a folder, relative to it."""
    found = []
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in skipped and not name.endswith(".egg-info"))
        found += [os.path.relpath(os.path.join(path, name), folder) for name in names if not name.endswith("_test.go")]
    return sorted(found)


def write(path, data):
    with open(path, "wb") as out:
        out.write(data)


def sources(folder, top):
    """Returns archive entries for the sources of a folder and the license."""
    entries = [(f"{top}/{path}", read(f"{folder}/{path}"), 0o644) for path in files(folder)]
    return entries + [(f"{top}/LICENSE", read("LICENSE"), 0o644)]


def npm(version, to):
    about = json.loads(read("testing/javascript/package.json"))
    assert about["version"] == version, f"package.json has version {about['version']}"
    names = ["package.json", "README.md", *about["files"]]
    entries = [(f"package/{name}", read(f"testing/javascript/{name}"), 0o644) for name in names]
    write(f"{to}/portico-testing-{version}.tgz", zipped(tar([*entries, ("package/LICENSE", read("LICENSE"), 0o644)])))


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def wheel(version, to):
    project = tomllib.loads(read("testing/python/pyproject.toml").decode())["project"]
    assert project["version"] == version, f"pyproject.toml has version {project['version']}"
    info = f"portico_testing-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\nSummary: {project['description']}\n"
    about += f"License: {project['license']}\nRequires-Python: {project['requires-python']}\n"
    about += "".join(f"Requires-Dist: {name}\n" for name in project["dependencies"])
    about += f"Description-Content-Type: text/markdown\n\n{read('testing/python/README.md').decode()}"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in entries.items())
        for group, entries in project["entry-points"].items()
    )
    entries = {path: read(f"testing/python/src/{path}") for path in files("testing/python/src")}
    entries[f"{info}/METADATA"] = about.encode()
    entries[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: portico\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    entries[f"{info}/entry_points.txt"] = points.encode()
    entries[f"{info}/licenses/LICENSE"] = read("LICENSE")
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in entries.items())
    entries[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    when = time.gmtime(epoch())[:6]
    with zipfile.ZipFile(f"{to}/portico_testing-{version}-py3-none-any.whl", "w") as out:
        for path, data in entries.items():
            entry = zipfile.ZipInfo(path, when)
            entry.external_attr, entry.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            out.writestr(entry, data)


def crate(version, to):
    """Writes the crate as cargo packages it, without .cargo_vcs_info.json, which depends on the checkout."""
    name = f"portico-testing-{version}"
    with tempfile.TemporaryDirectory() as folder:
        command = ["cargo", "package", "--quiet", "--locked", "--allow-dirty", "--no-verify", "-p", "portico-testing"]
        subprocess.run([*command, "--target-dir", folder], check=True)
        with tarfile.open(f"{folder}/package/{name}.crate") as archive:
            members = [one for one in archive if one.isfile() and not one.name.endswith(".cargo_vcs_info.json")]
            entries = [(one.name, archive.extractfile(one).read(), 0o644) for one in members]
    write(f"{to}/{name}.crate", zipped(tar(sorted([*entries, (f"{name}/LICENSE", read("LICENSE"), 0o644)]))))


def main(version, to):
    npm(version, to)
    wheel(version, to)
    crate(version, to)
    for language in ("go", "java"):
        name = f"portico-testing-{language}-{version}"
        write(f"{to}/{name}.tar.gz", zipped(tar(sources(f"testing/{language}", name))))


main(*sys.argv[1:])
