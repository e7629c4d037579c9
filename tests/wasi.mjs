// Runs a program for WASI under Node: node tests/wasi.mjs PROGRAM [ARGUMENT...]. The program sees all files.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [program] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: process.argv.slice(2), env: process.env, preopens: { "/": "/" } });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
