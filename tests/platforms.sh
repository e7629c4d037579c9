#!/usr/bin/env bash
# Runs the library's tests on other platforms, under emulators: tests/platforms.sh FOLDER [PLATFORM...]
#
# The platforms are aarch64, s390x (big-endian), i686 (32 bits), wasm32, windows and macos. docs/PLATFORMS.md says what each of them
# runs, and has the results.
#
# It needs Debian, root, cargo and debootstrap. FOLDER becomes a Debian (sid) of 6 GB, with Rust for each platform and the emulators.
# If it is one already, it is used. Unmount FOLDER/proc before you remove it.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:?usage: tests/platforms.sh FOLDER [PLATFORM...]}")
shift
[[ $# -gt 0 ]] || set -- aarch64 s390x i686 wasm32 windows macos

within() {
    chroot "$folder" env -i HOME=/root PATH=/usr/sbin:/usr/bin LANG=C.UTF-8 CARGO_TARGET_DIR=/target \
        BLOOMLINE_REQUIRE_PYTHON=1 bash -euc "cd /src && $1"
}

# From the mirror of this machine, with its certificates and settings.
make_folder() {
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' | head -n 1)
    [[ -e $folder/usr/bin/apt-get ]] || debootstrap --variant=minbase --include=ca-certificates sid "$folder" "$mirror"
    cp -r /etc/ssl/certs "$folder/etc/ssl"
    cp /etc/resolv.conf "$folder/etc"
    mkdir -p "$folder/src"
    mountpoint -q "$folder/proc" || mount -t proc proc "$folder/proc"
    within '
        export DEBIAN_FRONTEND=noninteractive
        for other in arm64 s390x i386; do dpkg --add-architecture $other; done
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends >/dev/null \
            rustc cargo rust-src lld llvm gcc libc6-dev qemu-user nodejs python3-xxhash \
            gcc-aarch64-linux-gnu libc6-dev-arm64-cross libstd-rust-dev:arm64 \
            gcc-s390x-linux-gnu libc6-dev-s390x-cross libstd-rust-dev:s390x \
            gcc-i686-linux-gnu libc6-dev-i386-cross libstd-rust-dev:i386 \
            libstd-rust-dev-wasm32 gcc-mingw-w64-x86-64 wine64'
}

# The project as git has it, and the dependencies that cargo has here.
copy_project() {
    rm -rf "$folder/src"
    mkdir -p "$folder/src" "$folder/root/.cargo"
    git ls-files -z | tar --null --files-from=- --create | tar --extract --directory "$folder/src"
    cargo fetch --quiet --locked
    cp -an "${CARGO_HOME:-$HOME/.cargo}/registry" "$folder/root/.cargo"
}

# All tests of the library. `$1` is the target, `$2` the linker and `$3` what runs its programs. What follows goes to the tests.
all_tests() {
    local name
    name=$(tr a-z- A-Z_ <<<"$1")
    within "export CARGO_TARGET_${name}_LINKER=$2 CARGO_TARGET_${name}_RUNNER='$3'
        cargo test -p bloomline --target $1 --all-features --lib --examples --test suite -- ${*:4}"
}

# These tests start their own program once more, which the system cannot run without the emulator, or look at its memory.
without_emulator=(--skip crash:: --skip bulk::memory)
aarch64() {
    all_tests aarch64-unknown-linux-gnu aarch64-linux-gnu-gcc "qemu-aarch64 -L /usr/aarch64-linux-gnu" "${without_emulator[@]}"
}
s390x() {
    all_tests s390x-unknown-linux-gnu s390x-linux-gnu-gcc "qemu-s390x -L /usr/s390x-linux-gnu" "${without_emulator[@]}"
}
i686() {
    all_tests i686-unknown-linux-gnu i686-linux-gnu-gcc ""
}
