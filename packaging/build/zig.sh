# zig as a C compiler for every target, installed from PyPI into the folder $tools. Scripts source this file.

zig_version=0.17.1

# zig_is_there: succeeds if zig starts.
zig_is_there() { "$tools/zig/bin/python" -m ziglang version >/dev/null 2>&1; }

zig_install() {
  python3 -m venv "$tools/zig" && "$tools/zig/bin/pip" install --quiet "ziglang==$zig_version"
}

# zig_compiler LANGUAGE TARGET: prints the path of a compiler (cc, c++) for a target of rustc. The script at this path removes the options that
# cc-rs and CMake pass in clang's form (target, architecture, macOS version): zig has other names for targets.
zig_compiler() {
  local path=$tools/bin/zig-$1-$2 target
  case $2 in
  *-unknown-linux-musl) target=${2%-unknown-linux-musl}-linux-musl ;;
  *-pc-windows-gnu) target=${2%-pc-windows-gnu}-windows-gnu ;;
  *-apple-darwin) target=${2%-apple-darwin}-macos ;;
  *) echo "zig: unknown target $2" >&2 && return 1 ;;
  esac
  mkdir -p "$tools/bin"
  cat >"$path" <<SCRIPT
#!/bin/bash
arguments=()
while [ \$# -gt 0 ]; do
  case \$1 in --target=* | -mmacosx-version-min=*) ;; -arch) shift ;; *) arguments+=("\$1") ;; esac
  shift
done
exec "$tools/zig/bin/python" -m ziglang $1 -target $target -fno-sanitize=all "\${arguments[@]}"
SCRIPT
  chmod +x "$path"
  echo "$path"
}

# zig_archiver: prints the path of an `ar`.
zig_archiver() {
  mkdir -p "$tools/bin"
  printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$tools/zig/bin/python" >"$tools/bin/zig-ar"
  chmod +x "$tools/bin/zig-ar"
  echo "$tools/bin/zig-ar"
}
