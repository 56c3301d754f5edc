"""Runs the pods of the chart in podman, in place of controllers and a kubelet: pods.py CHART IMAGE SCRATCH PODMAN...

CHART is helm's archive, IMAGE the image ID in podman, PODMAN the command with its options. Pods use the chart's ports in the network namespace of the
caller, where the names of the chart's Services must resolve to this host. This script sends the probes: podman would need programs in the image.
"""
import socket
import ssl
import subprocess
import sys
import time
import urllib.request

import yaml

NAMESPACE = "portico"
# Timeout of one command in seconds.
PATIENCE = 120
HOST = "127.0.0.1"


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    return done.stdout.decode()


class Chart:
    """The objects of the chart for given values."""

    def __init__(self, archive, image, *values):
        sets = [part for value in values for part in ("--set", value)]
        text = output("helm", "template", "portico", archive, "--namespace", NAMESPACE, *sets)
        self.objects = [one for one in yaml.safe_load_all(text) if one]
        self.image = image

    def pod(self, kind):
        """Returns the first pod of the workload of a kind, with its volume claims."""
        [workload] = [one for one in self.objects if one["kind"] == kind]
        name = f"{workload['metadata']['name']}-0"
        template = workload["spec"]["template"]
        spec = template["spec"]
        [container] = spec["containers"]
        container["image"] = self.image
        # podman 4.3 does not decode Secrets in volumes: a ConfigMap of the same name replaces the Secret.
        for volume in spec["volumes"]:
            if secret := volume.pop("secret", None):
                volume["configMap"] = {"name": secret["secretName"], "items": secret["items"]}
        # podman identifies an emptyDir by its name only.
        for part in [*spec["volumes"], *container["volumeMounts"]]:
            part["name"] = f"{name}-{part['name']}"
        # The machine may not support resource limits.
        del container["resources"]
        claims = []
        for claim in workload["spec"].get("volumeClaimTemplates", []):
            volume = claim["metadata"]["name"]
            claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim, "metadata": {"name": f"{volume}-{name}"}})
            spec["volumes"].append({"name": f"{name}-{volume}", "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": template["metadata"]["labels"]}, "spec": spec}
        return Pod(pod, claims)


class Pod:
    """A pod, its claims, and its probes."""

    def __init__(self, pod, before):
        self.name, self.pod, self.before = pod["metadata"]["name"], pod, before
        [self.container] = pod["spec"]["containers"]
        self.ports = {port["name"]: port["containerPort"] for port in self.container.pop("ports")}
        self.probes = {kind: self.container.pop(kind) for kind in ("startupProbe", "livenessProbe", "readinessProbe") if kind in self.container}

    def play(self, podman, scratch):
        path = f"{scratch}/{self.name}.yaml"
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump_all([*self.before, self.pod], file)
        output(*podman, "kube", "play", "--network=host", path)
        self.passes("startupProbe")
        # Without a startup probe, the pod needs time to become ready.
        self.passes("readinessProbe", tries=60)
        self.passes("livenessProbe")

    def passes(self, kind, tries=1):
        probe = self.probes.get(kind)
        if not probe:
            return
        for _ in range(probe.get("failureThreshold", tries) or tries):
            error = self.try_once(probe)
            if not error:
                print(f"   so: {self.name}: {kind} passes")
                return
            time.sleep(min(probe.get("periodSeconds", 10), 1))
        raise SystemExit(f"{self.name}: {kind}: {error}")

    def try_once(self, probe):
        seconds = probe.get("timeoutSeconds", 1)
        try:
            if "tcpSocket" in probe:
                socket.create_connection((HOST, self.ports[probe["tcpSocket"]["port"]]), seconds).close()
                return None
            get = probe["httpGet"]
            url = f"{get['scheme'].lower()}://{HOST}:{self.ports[get['port']]}{get['path']}"
            # Like a kubelet, does not verify the certificate.
            with urllib.request.urlopen(url, timeout=seconds, context=ssl._create_unverified_context()):
                return None
        except OSError as error:
            return error


class Machine:
    """podman, and kubectl with the server of a pod."""

    def __init__(self, podman, scratch):
        self.podman, self.scratch, self.claimed = podman, scratch, set()

    def play(self, pod):
        # A claim remains when its pod is removed.
        pod.before = [one for one in pod.before if one["metadata"]["name"] not in self.claimed]
        self.claimed.update(one["metadata"]["name"] for one in pod.before)
        pod.play(self.podman, self.scratch)
        return f"{pod.name}-{pod.container['name']}"

    def file(self, container, path):
        """Returns a file of a container that has no shell."""
        archive = subprocess.run([*self.podman, "cp", f"{container}:{path}", "-"], stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
        return subprocess.run(["tar", "-xOf", "-"], input=archive.stdout, stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout

    def remove(self, pod):
        output(*self.podman, "pod", "rm", "--force", "--time=30", pod.name)

    def end(self):
        """Prints the logs of remaining pods and removes them."""
        for pod in output(*self.podman, "pod", "ps", "--quiet").split():
            subprocess.run([*self.podman, "pod", "logs", pod], timeout=PATIENCE, check=False)
            output(*self.podman, "pod", "rm", "--force", "--time=5", pod)

    def kubectl(self, kubeconfig, host, *arguments):
        path = f"{self.scratch}/kubeconfig"
        with open(path, "wb") as file:
            file.write(kubeconfig)
        # The certificate is for the name of the Service.
        return output("kubectl", "--kubeconfig", path, "--server", f"https://{HOST}:6443", "--tls-server-name", host, f"--request-timeout={PATIENCE}s", *arguments)


def one_process(machine, archive, image):
    """Default values: one pod. The next pod has its data."""
    host = f"portico.{NAMESPACE}.svc"
    pod = Chart(archive, image).pod("StatefulSet")
    container = machine.play(pod)
    kubeconfig = machine.file(container, "/data/admin.kubeconfig")
    machine.kubectl(kubeconfig, host, "create", "configmap", "kept")
    machine.remove(pod)
    pod = Chart(archive, image).pod("StatefulSet")
    machine.play(pod)
    machine.kubectl(kubeconfig, host, "get", "configmap", "kept")
    machine.remove(pod)
    print("   so: one pod serves, and the next one has its data")


def apart(machine, archive, image):
    """Control service and facade in separate pods, with the Secret that docs/operate/install.md creates."""
    chart = Chart(archive, image, "facade.enabled=true", "facade.controlKubeconfigSecret=control")
    server = chart.pod("StatefulSet")
    container = machine.play(server)
    kubeconfig = machine.file(container, "/data/facade.kubeconfig").decode()
    facade = chart.pod("Deployment")
    facade.before.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "control"}, "data": {"kubeconfig": kubeconfig}})
    machine.play(facade)
    admin = machine.file(container, "/data/admin.kubeconfig")
    machine.kubectl(admin, f"portico.{NAMESPACE}.svc", "get", "configmap", "kept")
    machine.remove(facade)
    machine.remove(server)
    print("   so: a facade in one pod serves the objects of a control service in another")


def main(archive, image, scratch, *podman):
    machine = Machine(list(podman), scratch)
    try:
        one_process(machine, archive, image)
        apart(machine, archive, image)
    finally:
        machine.end()


main(*sys.argv[1:])
