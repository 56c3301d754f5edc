# Tests of the container image, with podman or, without it, with bubblewrap. .ci/packages-test sources this file.

# podman with a separate store, and with process limits that an unprivileged caller may set. crun refuses systems with both versions of control
# groups: podman then sees version 1 only.
podman_settings=$scratch/containers.conf
cat >"$podman_settings" <<SETTINGS
[containers]
base_hosts_file = "$scratch/hosts"
cgroups = "disabled"
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
SETTINGS
# Names of the chart's Services.
echo "127.0.0.1 localhost portico.portico.svc portico-control.portico.svc" >"$scratch/hosts"
podman_itself=(env "CONTAINERS_CONF=$podman_settings" podman --root "$scratch/podman" --runroot "$scratch/podman-run" --tmpdir "$scratch/podman-tmp" --storage-driver vfs)
one_cgroup_version=()
! mountpoint -q /sys/fs/cgroup/unified || one_cgroup_version=(unshare --mount sh -c 'umount /sys/fs/cgroup/unified && exec "$@"' sh)
podman_here=("${one_cgroup_version[@]}" "${podman_itself[@]}")

image() {
  if command -v podman >/dev/null && command -v crun >/dev/null; then
    image_in_podman
  else
    skipped+=("image in podman (no podman with crun)")
    image_in_bubblewrap image "$deb_arch"
  fi
}

# Runs the image read-only, without capabilities, as the user of the image.
image_in_podman() {
  local data id
  data=$(in_folder image-data)
  id=$("${podman_here[@]}" pull --quiet oci-archive:"$(echo "$from"/portico-*-oci.tar)")
  inside=/data serves image "$data" "${podman_here[@]}" run --rm --read-only --cap-drop all --security-opt no-new-privileges --network host \
    --volume "$data:/data:U" "$id" run
}

# image_in_bubblewrap NAME ARCH [EMULATOR]: runs the image with a read-only root, without privileges, as another user; /data and /tmp are writable.
image_in_bubblewrap() {
  needs "$1" bwrap pgrep || return 0
  local layout root data layer emulator=()
  layout=$(in_folder "layout-$2") root=$(in_folder "root-$2") data=$(in_folder "image-data-$2")
  tar -xf "$from"/portico-*-oci.tar -C "$layout"
  layer=$(image_layer "$layout" "$2")
  tar -xzf "$layer" -C "$root"
  # The root is read-only, so the emulator is mounted in /tmp.
  [ $# -lt 3 ] || emulator=(--ro-bind "$(command -v "$3")" /tmp/emulator)
  inside=/data ends=child serves "$1" "$data" bwrap --ro-bind "$root" / --bind "$data" /data --tmpfs /tmp "${emulator[@]}" --dev /dev --proc /proc \
    --unshare-pid --as-pid-1 --unshare-user --unshare-ipc --uid 65532 --gid 65532 --cap-drop ALL --die-with-parent --chdir /data --clearenv \
    ${3:+/tmp/emulator} /usr/bin/portico run --data-dir /data
}

# image_layer LAYOUT ARCH: checks the digests of index, manifest, configuration and layer, and prints the path of the layer.
image_layer() {
  python3 - "$@" <<'PYTHON'
import hashlib, json, sys
layout, architecture = sys.argv[1:]
def blob(descriptor):
    path = f"{layout}/blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}"
    data = open(path, "rb").read()
    assert len(data) == descriptor["size"] and "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"], path
    return path, data
index = json.loads(blob(json.load(open(f"{layout}/index.json"))["manifests"][0])[1])
[one] = [m for m in index["manifests"] if m["platform"]["architecture"] == architecture]
manifest = json.loads(blob(one)[1])
assert json.loads(blob(manifest["config"])[1])["config"]["User"] == "65532:65532"
print(blob(manifest["layers"][0])[0])
PYTHON
}

# Runs pods of the chart in a network namespace, because their ports are fixed.
pods() {
  needs pods podman crun helm unshare ip || return 0
  python3 -c 'import yaml' 2>/dev/null || { skipped+=("pods (no PyYAML)") && return 0; }
  [ "$(id -u)" = 0 ] || { skipped+=("pods (a network namespace needs root)") && return 0; }
  say "pods of the chart"
  local id status=0
  id=$("${podman_here[@]}" pull --quiet oci-archive:"$(echo "$from"/portico-*-oci.tar)")
  # podman needs a control group for a pod; it has no limits.
  sed -i 's/^cgroups = .*/pids_limit = 0/' "$podman_settings"
  "${one_cgroup_version[@]}" unshare --net sh -c 'ip link set lo up && exec "$@"' sh \
    python3 packaging/test/pods.py "$(echo "$from"/portico-[0-9]*[0-9].tgz)" "$id" "$(in_folder pods)" "${podman_itself[@]}" || status=$?
  # podman leaves the control groups of its pods behind. Groups in use stay.
  find /sys/fs/cgroup -depth -path '*/libpod_parent*' -type d -exec rmdir --ignore-fail-on-non-empty {} + 2>/dev/null || true
  [ "$status" = 0 ] || exit "$status"
  passed=$((passed + 1))
}
