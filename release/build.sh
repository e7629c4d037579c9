#!/usr/bin/env bash
# Makes all that is published: packages of Rust, the source and the wheels of Python, archives of the command, and packages for Debian.
# `release/build.sh FOLDER [STEP...]`
# TARGETS names the platforms of wheels and archives, in Rust's words. Without it they are all four.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "$1")
shift
tools=$PWD/target/release-tools
stage=$PWD/target/stage
version=$(cargo pkgid -p bloomline | sed 's/.*[#@]//')
targets=({x86_64,aarch64}-unknown-linux-{gnu,musl})
[[ -z ${TARGETS-} ]] || read -ra targets <<<"$TARGETS"
# From this version on, any glibc runs what is built. It is the least that the Rust compiler supports.
glibc=2.17
# Of all times in archives.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH PATH=$tools/bin:$PATH

# Only a folder that it made goes.
clean() {
    if [[ ! -e $out/SHA256SUMS && -n $(ls -A "$out" 2>/dev/null) ]]; then
        echo "$out has files, and this script did not finish it; remove it, or name another folder" >&2
        exit 2
    fi
    rm -rf "$out"
    mkdir -p "$out"
}

# Zig links for an old glibc and for musl, without a container that has them.
tools() {
    [[ -x $tools/bin/maturin ]] || { python3 -m venv "$tools" && pip --quiet install 'maturin>=1.9,<2' ziglang cargo-zigbuild; }
}

# Cargo verifies each against those before it, which it unpacks once for a version. So the copies of an earlier run would be taken.
# With the workspace's profile they share the dependencies that are built.
crates() {
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/bloomline-*
    sed -n '/^\[profile\.dev/,$p' Cargo.toml >target/dev.toml
    CARGO_TARGET_DIR=$PWD/target cargo --config target/dev.toml --config profile.dev.opt-level=0 \
        package --locked --workspace --exclude bloomline-python --exclude bloomline-benches --exclude bloomline-tests
    cargo publish --locked --workspace --dry-run --no-verify
    cp target/package/*-"$version".crate "$out"
}

# The command and the module have the same dependencies. Both are given the same text.
licenses() {
    rm -f python/LICENSE-DEPENDENCIES
    (cd python && CARGO_BUILD_TARGET=${targets[0]} python3 -c 'import backend; backend.write_licenses()')
}

# Prints the settings with which Cargo has the standard library of a platform: rustup's, or one that it compiles from Debian's `rust-src`.
# rustup's for musl has the objects that start a program, too. Without it Zig has them.
standard_library() {
    ! compgen -G "$(rustc --print target-libdir --target "$1")/libstd-*" >/dev/null || return 0
    if [[ ! -d $(rustc --print sysroot)/lib/rustlib/src/rust/library ]]; then
        echo "there is no standard library for $1: add it (rustup target add $1), or name other platforms in TARGETS" >&2
        return 1
    fi
    echo "RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_unwind"
    [[ $1 != *-musl ]] || echo "RUSTFLAGS=-Clink-self-contained=no"
}

# Pythons without a GIL cannot use the stable ABI, so each gets a wheel of its own. PyO3 takes them from 3.14 on.
wheels() {
    local target settings libc python
    for target in "${targets[@]}"; do
        settings=$(standard_library "$target")
        case $target in
        *-linux-gnu) libc=(--compatibility "manylinux_${glibc/./_}") ;;
        *-linux-musl) libc=(--compatibility musllinux_1_2) ;;
        *) libc=() ;;
        esac
        for python in python3 $(compgen -c python3. | grep -xE 'python3\.(1[4-9]|[2-9][0-9])t' | sort -u); do
            # The settings have no quotes.
            # shellcheck disable=SC2086
            env $settings maturin build --locked --manifest-path python/Cargo.toml --out "$out" \
                --zig --target "$target" "${libc[@]}" --interpreter "$python"
        done
    done
}

sdist() {
    maturin sdist --manifest-path python/Cargo.toml --out "$out"
}

# Runs the command of a platform, by an emulator if this machine has another CPU.
run() {
    local cpu=${1%%-*} binary=target/$1/dist/bloomline
    shift
    if [[ $cpu == "$(uname -m)" ]]; then
        "$binary" "$@"
    else
        "qemu-$cpu" -L "/usr/$cpu-linux-gnu" "$binary" "$@"
    fi
}

# Completions and manual pages come from the command itself. They are the same on all platforms.
command_line() {
    local target settings shell own=${targets[0]}
    for target in "${targets[@]}"; do
        settings=$(standard_library "$target")
        # The settings have no quotes.
        # shellcheck disable=SC2086
        env $settings cargo zigbuild --locked --profile dist --target "${target/%-gnu/-gnu.$glibc}" -p bloomline-cli --features parquet,redis
        [[ $target != "$(uname -m)"-* ]] || own=$target
    done
    rm -rf "$stage" && mkdir -p "$stage/completions"
    cp LICENSE-* python/LICENSE-DEPENDENCIES README.md CHANGELOG.md docs/COMMAND.md docs/CORPUS.md "$stage"
    run "$own" manual "$stage/man"
    for shell in bash elvish fish powershell zsh; do
        run "$own" completions "$shell" >"$stage/completions/bloomline.$shell"
    done
}

# crates/cli/Cargo.toml tells `cargo binstall` these names.
archives() {
    local target name
    for target in "${targets[@]}"; do
        name=bloomline-$version-$target
        cp "target/$target/dist/bloomline" "$stage"
        tar --create --gzip --file "$out/$name.tar.gz" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
            --directory "$stage" --transform "s|^\.|$name|" .
    done
}

# Debian's own changelog tells that of the project.
debian() {
    local target maintainer
    # No registry has it compiled.
    command -v cargo-deb >/dev/null || cargo install --quiet --locked --root "$tools" cargo-deb@^3
    maintainer=$(sed -n 's/^maintainer = "\(.*\)"/\1/p' crates/cli/Cargo.toml)
    printf 'bloomline (%s-1) unstable; urgency=medium\n\n  * changelog.gz has what changed.\n\n -- %s  %s\n' \
        "$version" "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" >target/changelog.Debian
    for target in "${targets[@]}"; do
        [[ $target == *-gnu ]] || continue
        cargo deb --quiet --no-build --no-strip --target "$target" --profile dist -p bloomline-cli --output "$out/"
    done
}

sums() {
    (cd "$out" && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS)
}

mkdir -p "$out"
[[ $# != 0 ]] || set -- clean tools crates licenses wheels sdist command_line archives debian sums
for step; do
    printf '\n== %s (%d s)\n' "$step" "$SECONDS"
    "$step"
done
printf '\nAll is in %s after %d s.\n' "$out" "$SECONDS"
ls -l "$out"
