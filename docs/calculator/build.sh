#!/usr/bin/env bash
# Makes docs/calculator.html of the files beside this one and the crate, which is compiled for the target wasm32-unknown-unknown. CARGO may name a
# cargo that has it. wasm-opt of binaryen makes the page smaller where there is one.
set -euo pipefail
cd "$(dirname "$0")/../.."

export CARGO_TARGET_DIR=target/calculator
export CARGO_PROFILE_RELEASE_OPT_LEVEL=z CARGO_PROFILE_RELEASE_LTO=true CARGO_PROFILE_RELEASE_PANIC=abort
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
# Messages of panics name source files, and the page tells nothing of the machine.
export RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src= --remap-path-prefix=$PWD="
"${CARGO:-cargo}" rustc --quiet -p bloomline --lib --crate-type cdylib --release --target wasm32-unknown-unknown \
    --no-default-features --features variants -- --cfg calculator

model=$CARGO_TARGET_DIR/model.wasm
cp "$CARGO_TARGET_DIR/wasm32-unknown-unknown/release/bloomline.wasm" "$model"
if command -v wasm-opt >/dev/null; then
    wasm-opt -Oz --enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals \
        "$model" -o "$model"
fi

page=$(<docs/calculator/page.html)
page=${page/STYLE/"$(<docs/calculator/style.css)"}
page=${page/SCRIPT/"$(<docs/calculator/script.js)"}
page=${page/MODEL/"$(base64 -w0 "$model")"}
# A disk that is full leaves the old page.
printf '%s\n' "$page" >"$model.html"
mv "$model.html" docs/calculator.html
wc -c docs/calculator.html
