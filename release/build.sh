#!/usr/bin/env bash
# Makes all that is published: packages of Rust, the source and the wheels of Python, an archive of the command, and one for Debian.
# `release/build.sh FOLDER [STEP...]`
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "$1")
shift
tools=$PWD/target/release-tools
stage=$PWD/target/stage
version=$(cargo pkgid -p bloomline | sed 's/.*[#@]//')
target=$(rustc --print host-tuple)
# From this version on, any glibc runs what is built. It is the least that the Rust compiler supports.
glibc=2.17
binary=target/$target/dist/bloomline
# Of all times in archives.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
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

# Zig links for an old glibc, without a container that has it.
tools() {
    [[ -x $tools/bin/maturin ]] || { python3 -m venv "$tools" && pip --quiet install 'maturin>=1.9,<2' ziglang cargo-zigbuild; }
    command -v cargo-about >/dev/null || cargo install --quiet --locked --features cli --root "$tools" 'cargo-about@^0.9'
    command -v cargo-deb >/dev/null || cargo install --quiet --locked --root "$tools" 'cargo-deb@^3'
}

# Cargo verifies each against those before it, which it unpacks once for a version. So the copies of an earlier run would be taken.
# With the workspace's profile they share the dependencies that are built.
crates() {
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/bloomline-*
    sed -n '/^\[profile\.dev/,$p' Cargo.toml >target/dev.toml
    CARGO_TARGET_DIR=$PWD/target cargo --config target/dev.toml --config profile.dev.opt-level=0 \
        package --locked --workspace --exclude bloomline-python --exclude bloomline-benches
    cargo publish --locked --workspace --dry-run --no-verify
    cp target/package/*-"$version".crate "$out"
}

# The command and the module have the same dependencies. Both are given the same text.
licenses() {
    cargo fetch --locked
    cargo about generate --locked --offline --fail --manifest-path python/Cargo.toml --config release/about.toml \
        --output-file python/LICENSE-DEPENDENCIES release/licenses.hbs
}

# Pythons without a GIL cannot use the stable ABI, so each gets a wheel of its own. PyO3 takes them from 3.14 on.
wheels() {
    local python build=(maturin build --locked --manifest-path python/Cargo.toml --out "$out"
        --zig --target "$target" --compatibility "manylinux_${glibc/./_}")
    maturin sdist --manifest-path python/Cargo.toml --out "$out"
    "${build[@]}" --interpreter python3
    for python in $(compgen -c python3. | grep -xE 'python3\.(1[4-9]|[2-9][0-9])t' | sort -u); do
        "${build[@]}" --interpreter "$python"
    done
}

# Completions and manual pages come from the command itself.
command_line() {
    local shell
    cargo zigbuild --locked --profile dist --target "$target.$glibc" -p bloomline-cli --features parquet
    rm -rf "$stage" && mkdir -p "$stage/completions"
    cp "$binary" LICENSE-* python/LICENSE-DEPENDENCIES README.md CHANGELOG.md docs/COMMAND.md docs/CORPUS.md "$stage"
    "$binary" manual "$stage/man"
    for shell in bash elvish fish powershell zsh; do
        "$binary" completions "$shell" >"$stage/completions/bloomline.$shell"
    done
}

archive() {
    local name=bloomline-$version-$target
    tar --create --gzip --file "$out/$name.tar.gz" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        --directory "$stage" --transform "s|^\.|$name|" .
}

# Debian's own changelog tells that of the project.
debian() {
    local maintainer
    maintainer=$(sed -n 's/^maintainer = "\(.*\)"/\1/p' crates/cli/Cargo.toml)
    printf 'bloomline (%s-1) unstable; urgency=medium\n\n  * changelog.gz has what changed.\n\n -- %s  %s\n' \
        "$version" "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" >target/changelog.Debian
    cargo deb --quiet --no-build --no-strip --target "$target" --profile dist -p bloomline-cli --output "$out/"
}

sums() {
    (cd "$out" && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS)
}

mkdir -p "$out"
[[ $# != 0 ]] || set -- clean tools crates licenses wheels command_line archive debian sums
for step; do
    printf '\n== %s (%d s)\n' "$step" "$SECONDS"
    "$step"
done
printf '\nAll is in %s after %d s.\n' "$out" "$SECONDS"
ls -l "$out"
