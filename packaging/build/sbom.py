"""Writes a CycloneDX list of the linked crates, from `cargo metadata` and the lock file: sbom.py VERSION TARGET OUT."""
import json
import subprocess
import sys
import tomllib


def linked(metadata):
    """Returns the package IDs of normal dependencies, without build and development dependencies."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found, todo = set(), [metadata["resolve"]["root"]]
    while todo:
        found.add(one := todo.pop())
        for dependency in nodes[one]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]) and dependency["pkg"] not in found:
                todo.append(dependency["pkg"])
    return found


def component(package, checksums):
    name, version = package["name"], package["version"]
    one = {"type": "library", "name": name, "version": version, "bom-ref": f"{name}@{version}"}
    if package["source"]:
        one["purl"] = f"pkg:cargo/{name}@{version}"
    if package["license"]:
        one["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := checksums.get((name, version)):
        one["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return one


def main(version, target, out):
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    with open("Cargo.lock", "rb") as lock:
        packages = tomllib.load(lock)["package"]
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in packages}
    wanted = linked(metadata) - {metadata["resolve"]["root"]}
    parts = [component(p, checksums) for p in metadata["packages"] if p["id"] in wanted]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "portico", "version": version, "bom-ref": "portico"}},
        "components": sorted(parts, key=lambda part: part["bom-ref"]),
    }
    with open(out, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)


main(*sys.argv[1:])
