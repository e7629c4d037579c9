#!/usr/bin/env bash
# Ends a run of the command under Wine by Ctrl-C, resumes it, and compares its output with that of a whole run: tests/ctrl-c.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
source=$(realpath "$(dirname "$0")/ctrl-c.c")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
x86_64-w64-mingw32-gcc -o ctrl-c.exe "$source"
cp "$program" bloomline.exe
seq 1 3000000 >lines
line="dedup --quiet -n 3000000 --state state --checkpoint 100ms -o out"
code=0
timeout 300 script -qec "wine ctrl-c.exe out 'bloomline.exe $line lines'" /dev/null </dev/null >said || code=$?
[[ $code -eq 130 && ! -e state.lock ]] || { cat said && echo "Ctrl-C ended the run with $code" && ls && exit 1; } >&2
[[ $(stat -c %s out) -lt $(stat -c %s lines) ]] || { echo "the run ended before Ctrl-C" >&2 && exit 1; }
wine bloomline.exe $line --resume lines
cmp lines out
echo "A run that Ctrl-C ended with 130 was resumed."
