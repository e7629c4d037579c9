#!/usr/bin/env python3
"""Estimates the cycles that a key takes on ARM's cores, from the machine code, by llvm-mca: benches/mca.py FILE.s

It needs llvm-mca (Debian: llvm) and the assembly of the library:

    cargo rustc -p bloomline --lib --release --target aarch64-unknown-linux-gnu -- \\
        --emit asm -C codegen-units=1 -C symbol-mangling-version=v0
    benches/mca.py target/aarch64-unknown-linux-gnu/release/deps/bloomline-*.s

A single call is the whole function, which loads its constants. A batch is the loop for filters that are larger than the caches: what is
done for a key, the prefetch of a later one, and a share of the loop's own instructions. llvm-mca knows neither caches nor wrong guesses.
"""

import re
import subprocess
import sys

CPUS = ["neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1"]
ROUNDS = 200


def functions(path):
    """The lines of each function, by its mangled name."""
    bodies, name = {}, None
    with open(path) as file:
        for line in file.read().split("\n"):
            if start := re.match(r"(_R\w+):", line):
                name = start[1]
                bodies[name] = []
            elif ".cfi_endproc" in line:
                name = None
            elif name:
                bodies[name].append(line)
    return bodies


def instructions(lines):
    return [line for line in lines if re.match(r"\t[a-z]", line) and not re.match(r"\tret\b", line)]


def loops(lines):
    """The instructions from each label to a jump back to it."""
    labels = {}
    for at, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = at
        elif (jump := re.match(r"\t(?:b|b\.\w+|cbn?z|tbn?z)\t.*?(\.L\w+)", line)) and jump[1] in labels:
            yield instructions(lines[labels[jump[1]]:at + 1])


def count(code, pattern):
    return sum(re.search(pattern, line) is not None for line in code)


def cycles(code, cpu):
    """Of one round, when many follow one another."""
    command = ["llvm-mca", "-mtriple=aarch64", f"-mcpu={cpu}", f"-iterations={ROUNDS}"]
    report = subprocess.run(command, input="\n".join(code), capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Total Cycles: +(\d+)", report)[1]) / ROUNDS


def single(bodies, operation, probes, kernel):
    pattern = rf"\d{kernel}10run_single.*\d{operation}N.*6Words4.*9ExclusiveEKj{probes // 4}_"
    [name] = [name for name in bodies if re.search(pattern, name)]
    return instructions(bodies[name]), 1


def batch(bodies, function, kernel):
    """With 8 probes: the longest loop with three high products a key, of which 16 probes need a fourth."""
    found = [loop for name in bodies if re.search(function, name) for loop in loops(bodies[name])]
    found = [loop for loop in found if count(loop, "\tumulh\t") == 3 * count(loop, "\tprfm\t") > 0]
    found = [loop for loop in found if (count(loop, "\ttbl\t") > 0) == (kernel == "neon")]
    loop = max(found, key=len)
    return loop, count(loop, "\tprfm\t")


def pick(bodies):
    [name] = [name for name in bodies if re.search("4bulk.*5Range6insert$", name)]
    found = [loop for loop in loops(bodies[name]) if count(loop, "\tccmp\t") > 0]
    # The innermost one, for four hashes a round.
    loop = min(found, key=lambda loop: len(loop) / count(loop, "\tccmp\t"))
    return loop, count(loop, "\tccmp\t")


def main():
    bodies = functions(sys.argv[1])
    rows = {}
    for operation in "Query", "Insert":
        for probes in 8, 16:
            for kernel in ("portable", "neon") if operation == "Query" else ("portable",):
                rows[f"{operation.lower()}, {probes} probes, {kernel}"] = single(bodies, operation, probes, kernel)
    for kernel in "portable", "neon":
        rows[f"batch of queries, 8 probes, {kernel}"] = batch(bodies, "6words4.*9Exclusive.*contains_many$", kernel)
    rows["batch of inserts, 8 probes, portable"] = batch(bodies, "9Inserting.*6Words4.*9ExclusiveEb", "portable")
    rows["a hash of a bulk load, passed by or picked"] = pick(bodies)
    print(f"| | instructions | {' | '.join(CPUS)} |\n|---|{'---:|' * (len(CPUS) + 1)}")
    for row, (code, keys) in rows.items():
        estimates = " | ".join(f"{cycles(code, cpu) / keys:.1f}" for cpu in CPUS)
        print(f"| {row} | {len(code) / keys:.1f} | {estimates} |")


if __name__ == "__main__":
    main()
