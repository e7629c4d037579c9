"use strict";
// The crate, compiled for WebAssembly: all figures are its.
const bytes = Uint8Array.from(atob("MODEL"), character => character.charCodeAt(0));
const model = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;

/** The figures of all layouts for two of three numbers; NaN for the third. */
function figures({ keys, rate, memory }) {
    const address = model.figures(keys ?? NaN, rate ?? NaN, memory ?? NaN);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(model.memory.buffer, address, model.length())));
}

const $ = id => document.getElementById(id);
const FIELDS = ["keys", "rate", "memory"];
// Whole numbers up to this one are exact.
const MOST = 2 ** 53;
const POWERS = ["", "k", "m", "g", "t", "p"];

// Reading what is typed.

/** A number without its unit, as digits and the power of ten, or null. Commas, spaces and underscores may stand between thousands. */
function decimal(text) {
    const plain = /^[1-9]\d{0,2}([,\s_]\d{3})+(\.\d+)?$/.test(text) ? text.replace(/[,\s_]/g, "") : text.replace(/(\d)_(?=\d)/g, "$1");
    const parts = /^(\d+\.?\d*|\.\d+)(?:e([+-]?\d{1,3}))?$/i.exec(plain);
    return parts && { digits: parts[1], power: Number(parts[2] ?? 0) };
}

/** The number and the unit after it, which is in lower case. */
function split(text) {
    const parts = /^(.*?[\d.])\s*([a-z%]*)$/i.exec(text.trim());
    const number = parts && decimal(parts[1]);
    return number && { ...number, unit: parts[2].toLowerCase() };
}

const shifted = ({ digits, power }, by) => Number(`${digits}e${power + by}`);

/** Some languages have points between thousands, so that 10.000 may be ten thousand. */
const unclear = text => /^[1-9]\d{0,2}(\.\d{3})+$/.test(text.trim());

const WORDS = { "": 0, k: 3, m: 6, g: 9, t: 12, thousand: 3, million: 6, billion: 9, trillion: 12 };

/** A number such as 10 million. */
function counted(text) {
    const number = split(text);
    return number && number.unit in WORDS && !unclear(text) ? shifted(number, WORDS[number.unit]) : NaN;
}

const READ = {
    keys(text) {
        const keys = counted(text);
        if (Number.isInteger(keys) && keys >= 1 && keys <= MOST) return keys;
        throw `“${text}” is not a number of keys. Give a whole number from 1 to ${count(MOST)}, such as 1e6, 10M or 10 million.`;
    },
    rate(text) {
        const odds = /^(.+?)\s*(?:\bin\b|\/)\s*(.+)$/i.exec(text.trim());
        const number = split(text);
        const rate = odds ? counted(odds[1]) / counted(odds[2])
            : number && number.unit === "%" ? shifted(number, -2) : number && number.unit === "" ? shifted(number, 0) : NaN;
        if (rate > 0 && rate < 1) return rate;
        throw `“${text}” is not a rate between 0 and 1, both excluded. Give one such as 1%, 0.01, 1e-6 or 1 in 1000.`;
    },
    memory(text) {
        const number = split(text);
        const unit = number && !unclear(text) && /^(?:([kmgtp]?)(?:i?b)?|bytes?)$/.exec(number.unit);
        const bytes = unit ? Math.floor(shifted(number, 0) * 1024 ** POWERS.indexOf(unit[1] ?? "")) : NaN;
        if (bytes >= 64 && bytes <= MOST) return bytes;
        throw `“${text}” is not a size from 64 bytes to ${size(MOST)}. Give bytes, or a number with K, M, G or T, such as 12 MiB or 1.5GB.`;
    },
};

// Writing for people.

function count(number) {
    return number.toLocaleString("en");
}

function size(bytes) {
    const power = Math.min(Math.floor(Math.log2(bytes) / 10), POWERS.length - 1);
    const number = bytes / 1024 ** power;
    return power === 0 ? `${bytes} ${bytes === 1 ? "byte" : "bytes"}` : `${Number.isInteger(number) ? number : number.toFixed(2)} ${POWERS[power].toUpperCase()}iB`;
}

/** A rate with so many digits, in percent unless it is small. */
function share(rate, digits = 3) {
    if (rate >= 0.0005) return `${Number((100 * rate).toPrecision(digits))} %`;
    if (rate === 0) return "0";
    return rate.toExponential(digits - 1).replace(/\.?0*e/, "e");
}

const WRITE = { keys: count, rate: rate => share(rate, 4), memory: size };

/** A figure: a text for people, and its exact value for programs. */
function figure(name, value, text) {
    return `<data data-figure="${name}" value="${value}">${text}</data>`;
}

// The choice: what was typed, the two fields typed in last, and the numbers of these.

let recent = ["keys", "rate"];
let numbers = {};
let addressing = 0;

/** Reads the two fields that were typed in last, and shows what follows. */
function update() {
    const given = recent.slice(0, 2);
    const third = FIELDS.find(name => !given.includes(name));
    const errors = {};
    numbers = {};
    for (const name of given) {
        try {
            numbers[name] = READ[name]($(name).value);
        } catch (error) {
            if (typeof error !== "string") throw error;
            errors[name] = error;
        }
    }
    let found = null;
    if (Object.keys(errors).length === 0) {
        found = figures(numbers);
        // The field typed in last has made it impossible.
        if (found.error) errors[given[0]] = found.error[0].toUpperCase() + found.error.slice(1) + ".";
    }
    for (const name of FIELDS) {
        const field = $(name).parentElement;
        field.classList.toggle("follows", name === third);
        field.classList.toggle("wrong", name in errors);
        field.querySelector("small").textContent = name === third ? "follows" : "";
        $(name).setAttribute("aria-invalid", name in errors);
        const message = errors[name] ?? "";
        if ($(`${name}-error`).textContent !== message) $(`${name}-error`).textContent = message;
    }
    const failed = Object.keys(errors).length > 0;
    // The results stay, with the choice that they are of.
    $("stale").hidden = !failed;
    if (failed) {
        $(third).value = "";
        return;
    }
    $(third).value = WRITE[third](found[third]);
    $("link").href = `#${FIELDS.filter(name => name !== third).map(name => `${name}=${numbers[name]}`).join("&")}`;
    // Browsers refuse an address for every key that is pressed.
    clearTimeout(addressing);
    addressing = setTimeout(() => history.replaceState(null, "", $("link").href), 300);
    $("stale").textContent = `The results below are of ${count(found.keys)} ${found.keys === 1 ? "key" : "keys"}, a rate of ${share(found.rate, 4)} and ${size(found.memory)}.`;
    show(found, third);
}

const FIRST = { rate: "0.01", keys: "1000000" };

/** Takes the choice of the address, and values to begin with where it names fewer than two. */
function follow() {
    const link = new URLSearchParams(location.hash.slice(1));
    const named = FIELDS.filter(name => link.has(name));
    recent = [...new Set([...named, ...Object.keys(FIRST)])].slice(0, 2);
    for (const name of recent) {
        const text = link.get(name) ?? FIRST[name];
        const plain = text.trim() !== "" && Number.isFinite(Number(text)) && Number(text) > 0;
        $(name).value = plain && (name === "rate" || Number.isInteger(Number(text))) && exact(name, Number(text)) || text;
    }
    update();
}

/** A number as people write it, if no digit is lost by that. */
function exact(name, number) {
    const power = POWERS.findLastIndex((_, power) => number % 1024 ** power === 0);
    const text = name === "memory" ? `${count(number / 1024 ** power)} ${power ? `${POWERS[power].toUpperCase()}iB` : "bytes"}` : WRITE[name](number);
    try {
        return READ[name](text) === number ? text : "";
    } catch {
        return "";
    }
}

// What follows from the choice.

function show(found, third) {
    const [own, ...others] = found.layouts;
    const bits = 8 * found.memory / found.keys;
    const classic = others.find(layout => layout.name === "classic");
    const odds = found.rate <= 0.5 ? ` (1 in ${count(Number((1 / found.rate).toPrecision(3)))})` : "";
    $("sentence").innerHTML = `A <code>BloomFilter</code> of ${figure("memory", found.memory, size(found.memory))} keeps a rate of `
        + `${figure("rate", found.rate, share(found.rate))}${odds} `
        + `for ${figure("keys", found.keys, count(found.keys))} ${found.keys === 1 ? "key" : "keys"}.`;
    $("bits").innerHTML = figure("bits", bits, bits < 1000 ? bits.toFixed(2) : count(Math.round(bits)));
    $("probes").innerHTML = figure("probes", own.probes, own.probes);
    $("lines").innerHTML = figure("lines", own.lines, own.lines);
    // A full filter has at most the wanted rate, because its size is rounded up.
    const full = own.rates?.[found.loads.indexOf(1)] ?? found.rate;
    const [low, high] = [1 - found.spread, 1 + found.spread].map(times => share(Math.max(0, full * times), 4).replace(" ", "\u00a0"));
    $("spread").innerHTML = figure("spread", found.spread, low === high ? `${low}, to four digits` : `${low} to ${high}`);
    $("limits").textContent = limits(found);

    const steps = [0.5, 1, 2, 4].map(load => found.loads.indexOf(load));
    $("loads").innerHTML = steps.map(step => {
        const load = found.loads[step];
        const rate = layout => layout?.rates ? figure(`${layout.name} × ${load}`, layout.rates[step], share(layout.rates[step])) : "–";
        return `<tr><th scope="row">${count(Math.floor(found.keys * load))}<small>× ${load === 0.5 ? "½" : load}</small></th>`
            + `<td>${rate(own)}</td><td>${rate(classic)}</td></tr>`;
    }).join("");
    drawn = { loads: found.loads, keys: found.keys, steps, curves: [own, classic].filter(layout => layout?.rates) };
    draw();

    $("promise").textContent = promise(own, classic);
    $("layouts-caption").textContent = `${count(found.keys)} keys at ${share(found.rate)}, or in ${size(found.memory)}`;
    $("layouts").innerHTML = found.layouts.map(layout => row(layout, found)).join("");
    lines(found, third);
}

const PURPOSES = {
    "words4": "the one to begin with",
    "words4x2": "for rates below 1e-4",
    "split block": "the filter of Parquet",
    "classic": "the least memory, slower",
    "register": "inserts in one atomic step",
    "counting": "keys can be removed",
};

function row(layout, found) {
    const head = `<tr><th scope="row"><code>${layout.filter}</code><small>${layout.name}: ${PURPOSES[layout.name]}</small></th>`;
    if (layout.error) {
        const error = layout.error[0].toUpperCase() + layout.error.slice(1);
        return `${head}<td class="refused" colspan="6">${error}.</td></tr>`;
    }
    const bits = 8 * layout.memory / found.keys;
    const cell = (name, value, write) => `<td>${value === null ? "–" : figure(`${layout.name} ${name}`, value, write(value))}</td>`;
    return head + cell("memory", layout.memory, size)
        + `<td>${bits < 1000 ? bits.toFixed(2) : count(Math.round(bits))}</td>`
        + cell("probes", layout.probes, String)
        + cell("lines", layout.lines, lines => layout.name === "classic" && lines > 1 ? `up to ${lines}` : lines)
        + cell("rate_in_memory", layout.rate_in_memory, share)
        + cell("keys_in_memory", layout.keys_in_memory, count) + "</tr>";
}

/** What is to be known of a small filter. */
function limits({ spread, memory, rate }) {
    if (rate >= 1) return "All bits are set: this filter takes every key for seen. Give it more memory or fewer keys.";
    if (memory === 64) return "The filter is one block of 64 bytes. Its rate depends on the keys that happen to be in it.";
    const start = "The rate is the mean over filters. The rate of a single one depends on its keys.";
    return spread < 0.02 ? start : `${start} At the same rate, filters for more keys vary less.`;
}

/** What a calculator of classic filters says of this memory. */
function promise(own, classic) {
    if (!classic.rate_in_memory) return "";
    const times = Number((own.rate_in_memory / classic.rate_in_memory).toPrecision(2));
    if (times === 1) return "";
    return `A calculator of classic filters would promise a rate of ${share(classic.rate_in_memory)} in this memory, and a BloomFilter has ${times} times as much.`;
}

/** The lines that make this filter. */
function lines({ rate, memory }, third) {
    const { keys } = numbers;
    const ratio = rate < 1e-4 ? rate.toExponential() : String(rate);
    const apart = number => String(number).replace(/\B(?=(\d{3})+$)/g, "_");
    const bytes = apart(numbers.memory ?? memory);
    $("rust").textContent = "let mut seen = bloomline::BloomFilter::" + {
        memory: () => `new(${apart(keys)}, ${ratio})?;`,
        rate: () => `builder().expected_keys(${apart(keys)}).memory(${bytes}).build()?;`,
        keys: () => `builder().false_positive_rate(${ratio}).memory(${bytes}).build()?;`,
    }[third]();
    $("python").textContent = "from bloomline import BloomFilter; seen = BloomFilter(" + {
        memory: () => `${apart(keys)}, ${ratio})`,
        rate: () => `${apart(keys)}, memory=${bytes})`,
        keys: () => `false_positive_rate=${ratio}, memory=${bytes})`,
    }[third]();
    $("shell").textContent = rate >= 1 ? "# The command makes no filter that takes every key for seen." : third === "memory"
        ? `bloomline build -n ${keys} -p ${ratio} --no-shrink -o seen.bloom keys.txt`
        : `bloomline dedup --memory ${numbers.memory} -p ${ratio} --when-full warn -s seen.bloom keys.txt > new.txt`;
    $("shell-note").textContent = third === "memory"
        ? "The command makes the filter of the lines of keys.txt."
        : "The command keeps the filter in seen.bloom, and new.txt gets the lines that it has not seen.";
}

// The plot.

let drawn = null;
let width = 0;

/** Measures the page, which takes a browser longer than all else here. */
function resize() {
    width = Math.max($("plot").clientWidth, 280);
    draw();
}

/** Rates over loads, both on logarithmic axes, in the pixels that there are. */
function draw() {
    if (!drawn) return;
    const { loads, keys, steps, curves } = drawn;
    const height = 300;
    const left = 58, right = 16, top = 14, bottom = 46;
    const rates = curves.flatMap(layout => layout.rates).filter(rate => rate > 0);
    const decades = Math.max(1, Math.ceil(-Math.log10(Math.min(...rates)) - 1e-9)), every = Math.ceil(decades / 6);
    const lowest = -every * Math.ceil(decades / every);
    const x = load => left + (width - left - right) * (Math.log2(load) + 1) / 3;
    const y = rate => top + (height - top - bottom) * Math.max(Math.log10(rate), lowest) / lowest;
    const parts = [];
    for (let power = 0; power >= lowest; power -= every) {
        const name = power > -4 ? `${Number((100 * 10 ** power).toPrecision(1))} %` : `1e${power}`;
        parts.push(`<path d="M${left} ${y(10 ** power)}H${width - right}" stroke="var(--line)"/>`
            + `<text x="${left - 8}" y="${y(10 ** power)}" dy=".35em" text-anchor="end" fill="var(--soft)">${name}</text>`);
    }
    for (const step of steps) {
        const load = loads[step], anchor = load === 4 ? "end" : load === 0.5 ? "start" : "middle";
        parts.push(`<path d="M${x(load)} ${top}V${height - bottom}" stroke="var(--line)"/>`
            + `<text x="${x(load)}" y="${height - bottom + 20}" text-anchor="${anchor}" fill="var(--text)">× ${load === 0.5 ? "½" : load}</text>`
            + `<text x="${x(load)}" y="${height - bottom + 38}" text-anchor="${anchor}" fill="var(--soft)">${short(Math.floor(keys * load))}</text>`);
    }
    curves.forEach((layout, i) => {
        const points = loads.map((load, step) => `${x(load).toFixed(1)},${y(layout.rates[step]).toFixed(1)}`).join(" ");
        const style = i === 0 ? `stroke="var(--accent)" stroke-width="3"` : `stroke="var(--second)" stroke-width="2" stroke-dasharray="7 5"`;
        parts.push(`<polyline points="${points}" fill="none" ${style}/>`);
    });
    for (const step of steps) {
        parts.push(`<circle cx="${x(loads[step])}" cy="${y(curves[0].rates[step])}" r="5" fill="var(--accent)" stroke="var(--ground)" stroke-width="2"/>`);
    }
    $("plot").innerHTML = `<svg role="img" aria-labelledby="plot-title" viewBox="0 0 ${width} ${height}">`
        + `<title id="plot-title">The rate by the number of keys in the filter. The table below has the same rates.</title>${parts.join("")}</svg>`;
}

/** A number of keys for an axis. */
function short(number) {
    const power = Math.min(Math.floor(Math.log10(Math.max(number, 1)) / 3), 5);
    return `${Number((number / 1000 ** power).toPrecision(3))}${["", " k", " M", " G", " T", " P"][power]}`;
}

// What people do.

for (const name of FIELDS) {
    $(name).addEventListener("input", () => {
        recent = [name, ...recent.filter(other => other !== name)];
        update();
    });
}
$("choice").addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", follow);
addEventListener("resize", resize);

/** Copies a text, and says so. */
async function copy(text, what) {
    let copied = true;
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Some pages have no clipboard. A field that is selected does as well.
        const field = document.createElement("textarea");
        field.value = text;
        document.body.append(field);
        const before = document.activeElement;
        field.select();
        copied = document.execCommand("copy");
        field.remove();
        before?.focus();
    }
    $("copied").textContent = "";
    $("copied").textContent = `${what} ${copied ? "is" : "could not be"} copied.`;
    return copied;
}

for (const button of document.querySelectorAll("button")) {
    const of = button.dataset.copies;
    button.addEventListener("click", async () => {
        const copied = await (of ? copy($(of).textContent, `The line of ${$(`${of}-name`).textContent}`) : copy($("link").href, "The link"));
        button.textContent = copied ? "Copied" : "Not copied";
        setTimeout(() => button.textContent = "Copy", 2000);
    });
}

$("absent").remove();
$("calculator").hidden = false;
resize();
follow();
