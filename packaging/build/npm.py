"""Writes npm packages, one with JavaScript and one with the program for each platform: npm.py VERSION FOLDER CPU=BINARY..."""
import json
import sys

from archives import read, tar, zipped

CPUS = ("x64", "arm64")


def package(folder, file, about, entries):
    home = "https://github.com/portico-dev/portico"
    description = "The Kubernetes API without a Kubernetes cluster"
    about = {"license": "Apache-2.0", "homepage": home, "description": description, **about}
    text = json.dumps(about, indent=2).encode()
    entries = [("package/package.json", text, 0o644), ("package/LICENSE", read("LICENSE"), 0o644), *entries]
    with open(f"{folder}/{file}", "wb") as out:
        out.write(zipped(tar(entries)))


def main(version, folder, *pairs):
    for cpu, binary in (pair.split("=", 1) for pair in pairs):
        about = {"name": f"portico-linux-{cpu}", "version": version, "os": ["linux"], "cpu": [cpu]}
        package(folder, f"portico-linux-{cpu}-{version}.tgz", about, [("package/bin/portico", read(binary), 0o755)])
    about = {
        "name": "portico",
        "version": version,
        "bin": {"portico": "portico.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": {f"portico-linux-{cpu}": version for cpu in CPUS},
    }
    package(folder, f"portico-npm-{version}.tgz", about, [("package/portico.js", read("packaging/npm/portico.js"), 0o755)])


main(*sys.argv[1:])
