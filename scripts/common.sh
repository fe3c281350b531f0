# Sourced by the other scripts: where things are, messages, and the packages that a fresh machine lacks.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
started=$SECONDS

say() { printf '\n== %s  (%d s)\n' "$*" $((SECONDS - started)); }
fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# What every build needs. The host compiler is also what compiles kernels at run time.
build_packages=(g++ cmake ninja-build ccache libfmt-dev nlohmann-json3-dev zlib1g-dev libcli11-dev)

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "Not root, and no sudo. Run this as root, then try again:
    apt-get update && apt-get install ${wanted[*]}"
    fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null
}

# need PACKAGE...: installs those that are missing, and the run-time library of oneDNN where the system has one.
need() {
    wanted=("$@")
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "No apt here: make sure that these are installed: $*"
        return
    fi
    local missing=() package
    for package in "$@"; do
        installed "$package" || missing+=("$package")
    done
    local onednn=no
    if compgen -G "/usr/lib/*/libdnnl.so.*" >/dev/null; then onednn=yes; fi
    if [ ${#missing[@]} = 0 ] && [ $onednn = yes ]; then
        echo "All there."
        return
    fi
    # A machine that cannot install can still do without oneDNN: matrix products are then generated.
    if [ ${#missing[@]} = 0 ] && [ "$(id -u)" != 0 ]; then
        echo "All there but oneDNN, which is optional (package libdnnl)."
        return
    fi
    [ ${#missing[@]} = 0 ] || echo "Installing ${missing[*]}"
    local log
    log=$(mktemp)
    if ! as_root apt-get update -q >"$log" 2>&1; then
        cat "$log" >&2
        fail "apt-get update failed."
    fi
    if [ ${#missing[@]} != 0 ] && ! apt_install "${missing[@]}" >"$log" 2>&1; then
        cat "$log" >&2
        fail "apt-get install ${missing[*]} failed."
    fi
    if [ $onednn = no ]; then
        # libdnnl2 on Debian 12, libdnnl3 or libdnnl3.x on later systems.
        package=$(apt-cache search --names-only '^libdnnl[0-9.]+$' | cut -d' ' -f1 | sort -V | tail -n 1)
        if [ -n "$package" ] && apt_install "$package" >"$log" 2>&1; then
            echo "Installed $package"
        else
            echo "oneDNN is not available here: matrix products are generated instead."
        fi
    fi
    rm -f "$log"
}

# configure PRESET OPTION...: quiet unless it fails.
configure() {
    local log="build/$1.configure.log"
    mkdir -p build
    if ! cmake --preset "$@" >"$log" 2>&1; then
        cat "$log" >&2
        fail "cmake --preset $* failed."
    fi
}

# build PRESET TARGET...
build() {
    local preset=$1
    shift
    cmake --build --preset "$preset" ${1:+--target "$@"} </dev/null
}
