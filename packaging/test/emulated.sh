# Tests of packages for the other architecture: each is unpacked by its own tool, and the program runs in an emulator. .ci/packages-test sources
# this file.

emulated() {
  local emulator=qemu-$other-static patience=$emulated_patience archive other_deb=amd64 other_cpu=x64
  archive=$(echo "$from"/portico-*-"$other"-unknown-linux-musl.tar.gz)
  needs "$other" "$emulator" || return 0
  if [ ! -f "$archive" ]; then
    skipped+=("$other (it was not built)")
    return 0
  fi
  [ "$other" = x86_64 ] || other_deb=arm64 other_cpu=arm64
  emulated_archive "$archive"
  emulated_deb
  emulated_rpm
  emulated_wheel
  emulated_npm
  image_in_bubblewrap "$other image" "$other_deb" "$emulator"
}

# in_emulator NAME PROGRAM: checks that the program is static, is for the other architecture, and serves.
in_emulator() {
  local data
  data=$(in_folder "$other-$1-data")
  python3 - "$2" "$other" <<'PYTHON'
import struct, sys
machines = {"x86_64": 62, "aarch64": 183}
with open(sys.argv[1], "rb") as file:
    head = file.read(64)
    assert head[:4] == b"\x7fELF" and struct.unpack_from("<H", head, 18)[0] == machines[sys.argv[2]], "another architecture"
    offset, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
    file.seek(offset)
    kinds = [struct.unpack_from("<I", file.read(size))[0] for _ in range(count)]
assert 3 not in kinds, "the program is not static"
PYTHON
  serves "$other $1" "$data" "$emulator" "$2" --data-dir "$data"
}

emulated_archive() {
  local root
  root=$(in_folder "$other-archive")
  tar -xzf "$1" -C "$root"
  in_emulator archive "$root/portico"
}

emulated_deb() {
  needs "$other deb" dpkg-deb || return 0
  local root
  root=$(in_folder "$other-deb")
  dpkg-deb -x "$(echo "$from"/portico_*_"$other_deb".deb)" "$root"
  in_emulator deb "$root/usr/bin/portico"
}

emulated_rpm() {
  needs "$other rpm" rpm || return 0
  local root
  root=$(in_folder "$other-rpm")
  rpm_into "$root" "$(echo "$from"/portico-*."$other".rpm)"
  in_emulator rpm "$root/usr/bin/portico"
}

# pip selects the wheel as on a machine of that architecture.
emulated_wheel() {
  local root
  root=$(in_folder "$other-wheel")
  python3 -m venv "$root/venv" || { skipped+=("$other wheel (no venv)") && return 0; }
  "$root/venv/bin/pip" install --quiet --no-index --find-links "$from" --platform "manylinux_2_17_$other" --only-binary :all: --target "$root/wheel" portico
  in_emulator wheel "$root/wheel/bin/portico"
}

# Starts the program without portico.js, which npm_package tests: it would need Node.js for that architecture.
emulated_npm() {
  needs "$other npm" npm node || return 0
  local root
  root=$(in_folder "$other-npm")
  (cd "$root" && npm init -y >/dev/null && npm install --offline --no-audit --no-fund --omit=optional --force --os=linux --cpu="$other_cpu" \
    "$(echo "$from"/portico-linux-"$other_cpu"-*.tgz)" "$(echo "$from"/portico-npm-*.tgz)")
  in_emulator npm "$root/node_modules/portico-linux-$other_cpu/bin/portico"
}
