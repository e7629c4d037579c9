//! Options: refusals and help.

use crate::common::{Bench, assert_contains_all, bloomline, expect_failure, expect_success, report_skipped, text};
use std::process::Command;

#[test]
fn values_out_of_range_are_refused() {
    let bench = Bench::new(&[("a", b"a\n")]);
    for (option, values, why) in [
        ("--fpr", &["0", "1", "2", "-0.1", "NaN", "inf"][..], "between 0 and 1"),
        ("--fpr", &["x", ""], "not a number"),
        (
            "--expected-keys",
            &["0", "-1", "+1", "1.5", "10.000", "1,000", "x", "", "M", "1Y", "1MB", "1e-3", "1e20"],
            "a whole number from 1 to 18446744073709551615: give digits, or a number with k, M, G or T",
        ),
        (
            "--expected-keys",
            &["99999999999999999999", "18446744073709551616", "18446745T"],
            "from 1 to 18446744073709551615",
        ),
        ("--threads", &["0", "1025"], "not in 1..=1024"),
        ("--threads", &["x"], "invalid digit"),
        ("--stats", &["xml"], "text, json"),
        ("--seed", &["-1", "1.5"], "not a whole number from 0 to"),
    ] {
        for value in values {
            let message = bench.run_err(&format!("dedup {option}={value} a"));
            assert_contains_all(&message, &[option, &format!("'{value}'"), why]);
        }
    }
    assert_contains_all(&bench.run_err("dedup -n 18446744073709551615 a"), &["rate 1e-6", "64-bit hashes"]);
    assert_contains_all(
        &bench.run_err("dedup -n 1000000000000000 -p 0.1 a"),
        &["bytes of memory", "rate", "a smaller -n"],
    );
    assert_contains_all(&bench.run_err("dedup --unknown"), &["unexpected", "--unknown"]);
    for value in ["0", "0s", "5", "5M", "1y", "1month", "1w", "5sec", "5us", "s", "-5s", "1s2", "x", ""] {
        let message = bench.run_err(&format!("dedup --state s --checkpoint={value} a"));
        assert_contains_all(&message, &["--checkpoint", &format!("'{value}'"), "ms, s, m (minutes), h or d", "5m"]);
    }
}

#[test]
fn numbers_of_keys_have_units() {
    let bench = Bench::new(&[]);
    let keys = |number: &str| bench.json(&format!("plan --json -p 0.5 -n={number}"))[0]["keys"].as_u64().unwrap();
    for (number, expected) in [
        ("1", 1),
        ("1e9", 1_000_000_000),
        ("1.5e6", 1_500_000),
        ("2E3", 2000),
        ("10M", 10_000_000),
        ("1.5M", 1_500_000),
        ("7k", 7000),
        ("7K", 7000),
        ("2g", 2_000_000_000),
        ("1T", 1_000_000_000_000),
        // No float equals this integer.
        ("1234567890123457", 1_234_567_890_123_457),
        ("1.234567890123457e15", 1_234_567_890_123_457),
    ] {
        assert_eq!(keys(number), expected, "{number}");
    }
    // Statistics print numbers in this format.
    let output = bench.command("plan --json -p 0.5 -n").arg("1.2 k").output().unwrap();
    assert!(text(&expect_success(output)).contains("\"keys\":1200,"));
}

#[test]
fn durations_have_units() {
    let bench = Bench::new(&[("a", b"a\n")]);
    for value in ["50ms", "10s", "5m", "5min", "2h", "1d", "1h30m"] {
        assert_eq!(bench.run_ok(&format!("dedup --checkpoint {value} --state s{value} a")), "a\n", "{value}");
    }
}

#[test]
fn help_is_printed_without_a_command() {
    let bench = Bench::new(&[]);
    let output = bloomline().output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
    let help = bench.run_ok("--help");
    assert_eq!(text(&output.stderr), help);
    assert_contains_all(&help, &["Usage: bloomline <COMMAND>", "dedup", "manual", "exit codes"]);
}

#[test]
fn help_and_manual_list_the_exit_codes() {
    let bench = Bench::new(&[]);
    bench.run_ok("manual pages");
    let all = ["  0      ", "  2      an error", "  128+n  "];
    let skipped = ["  1      done, but an input or a part of one was left out by --on-error skip or keep"];
    for (command, codes) in [
        ("dedup", &skipped[..]),
        ("build", &skipped),
        ("check", &["  1      no line was selected", "an input could not be read"]),
        ("in", &["  1      no line was selected"]),
        ("not-in", &["  1      no line was selected"]),
        ("info", &[]),
        ("merge", &[]),
        ("plan", &[]),
        ("redis list", &[]),
        ("redis watch", &[]),
        ("completions", &[]),
        ("manual", &[]),
    ] {
        let help = bench.run_ok(&format!("{command} --help"));
        let page = text(&bench.read(&format!("pages/bloomline-{}.1", command.replace(' ', "-")))).replace('\\', "");
        for code in all.iter().chain(codes) {
            assert_contains_all(&help, &["Exit codes:", code]);
            assert_contains_all(&page, &["EXIT CODES", code.trim()]);
        }
    }
}

#[test]
fn help_says_that_a_build_has_no_client_of_servers() {
    let bench = Bench::new(&[]);
    for line in ["--help", "dedup --help", "check -h", "redis --help", "redis list --help"] {
        let help = bench.run_ok(line);
        assert_eq!(help.contains("not in this build"), cfg!(not(feature = "redis")), "{help}");
    }
}

/// The short help fits on a screen, with examples and one line for each common option.
#[test]
fn short_and_long_help_differ() {
    let bench = Bench::new(&[]);
    for command in ["dedup", "corpus", "build", "check", "in", "not-in", "info", "merge", "plan"] {
        let short = bench.run_ok(&format!("{command} -h"));
        let long = bench.run_ok(&format!("{command} --help"));
        let options = |help: &str| help.lines().filter(|line| line.trim_start().starts_with('-')).count();
        for help in [&short, &long] {
            let lines: Vec<&str> = help.lines().collect();
            let at = |start: &str| lines.iter().position(|line| line.starts_with(start));
            let example = at(&format!("  bloomline {command} ")).unwrap_or_else(|| panic!("{help}"));
            assert!(at("Examples:") == Some(example - 1) && example < at("Usage:").unwrap(), "{help}");
            assert!(!help.contains("--chunk-size"), "{help}");
        }
        // The number of options includes -h itself.
        assert!(options(&short) <= 16 && short.lines().count() <= 45, "{short}");
        assert!(short.lines().filter(|line| line.starts_with("  bloomline ")).count() <= 3, "{short}");
        assert_contains_all(&short, &[&format!("bloomline {command} --help has all options")]);
        assert_contains_all(&long, &["Exit codes:"]);
        assert!(options(&long) >= options(&short), "{long}");
    }
    assert!(bench.run_ok("dedup --help").contains("--when-full") && !bench.run_ok("dedup -h").contains("--when-full"));
    // A new option must replace another one.
    let help = help(&bench, "dedup --help", "300");
    assert!(described(&help).iter().filter(|(option, _)| *option != "--help").count() <= 60, "{help}");
    assert!(bench.run_ok("--help").lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn misplaced_options_have_a_hint() {
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.run_ok("build -o f a");
    for (line, advice) in [
        ("check -f f a", "--state"),
        ("dedup --near 0.8 a", "'--near' is an option of bloomline corpus"),
        (
            "-o o dedup a",
            "'-o' is an option of bloomline dedup, corpus, build, in, not-in, merge, and comes after the command",
        ),
        ("check -s f -o o a", "'-o' is an option of bloomline dedup, "),
        ("build -o f --keep last a", "'--keep' is an option of bloomline dedup, corpus"),
        ("a", "bloomline dedup FILE"),
        ("missing.txt", "bloomline dedup FILE"),
        ("uniq", "bloomline dedup FILE"),
        ("dedpu a", "'dedup'"),
    ] {
        assert_contains_all(&bench.run_err(line), &[advice]);
    }
    for line in ["dedup --sort a", "dedup -x a", "info -x f", "check -s f -o o a"] {
        let message = bench.run_err(line);
        assert!(!message.contains("as a value") && !message.contains("--wait'"), "{message}");
    }
}

#[test]
fn unknown_options_are_refused_with_a_replacement() {
    let bench = Bench::new(&[("a", b"a\n")]);
    for (line, remedy) in [
        ("corpus --like dclm a", "docs/CORPUS.md"),
        ("corpus --at-least a", "--threshold"),
        ("corpus --trim a", "--normalize trim"),
        ("corpus -i a", "--normalize lower"),
        ("corpus --ignore-case a", "--normalize lower"),
        ("corpus --max-fpr 0.1 a", "-p"),
        ("dedup --max-fpr=0.1 a", "-p"),
        ("not-in --max-fpr 0.1 a", "-p"),
        ("dedup --column-filter a", "Bloom filters"),
        ("in --column-filter a", "Bloom filters"),
        ("dedup --read-ahead 1G a", "the run chooses"),
        ("check --read-ahead 1G -s f a", "the run chooses"),
        ("dedup --crlf a", "--eol keep"),
        ("dedup -u a", "--unique"),
        ("dedup -t , a", "give -d"),
        ("build --crlf -o f a", "--eol keep"),
        ("check --crlf -s f a", "--eol keep"),
        ("in --crlf a", "--eol keep"),
        ("dedup --files0-from a", "--files-from"),
        ("not-in --files0-from=a", "--files-from"),
        ("dedup --stats --verify 9 a", "bloomline check --verify"),
        ("dedup --recursive a", "all files below a directory are read"),
        ("corpus -r a", "all files below a directory are read"),
        ("build -o f -R a", "all files below a directory are read"),
    ] {
        let message = bench.run_err(line);
        assert_contains_all(&message, &["unexpected argument '-", "\n  tip: ", remedy]);
        assert_eq!(message.lines().count(), 2, "{line}: {message}");
        assert_eq!(std::fs::read_dir(bench.0.path()).unwrap().count(), 1, "{line}");
    }
    // In other commands, options with these names are accepted.
    bench.run_ok("dedup --trim -i a");
}

/// Users may follow a tip without checking it.
#[test]
fn no_tip_suggests_a_destructive_option() {
    let bench = Bench::new(&[("a", b"a\n")]);
    let mut tips = 0;
    let risky =
        ["in-place", "force", "shrink", "output", "output-dir", "dupes", "pairs", "clusters", "report", "manifest"];
    let redis = ["redis", "redis-ca", "redis-cert", "redis-key", "redis-wait"];
    let others = [
        "min-length",
        "repeat",
        "reduce",
        "unique-by",
        "stat",
        "header-line",
        "delimeter",
        "dupe",
        "forced",
        "outputs",
    ];
    let cut = |name: &str| [name[..name.len() - 1].to_owned(), name[1..].to_owned(), format!("{name}s")];
    let typed = risky.iter().chain(&redis).flat_map(|name| cut(name)).chain(others.map(str::to_owned));
    for option in typed {
        for line in [format!("dedup --{option} a"), format!("corpus --{option} a"), format!("--{option} dedup a")] {
            let message = bench.run_err(&line);
            let Some((_, tip)) = message.split_once("  tip: ") else { continue };
            let names = |name: &&&str| tip.contains(&format!("--{name}'"));
            assert_eq!(risky.iter().chain(&redis).find(names), None, "{line}: {message}");
            tips += 1;
        }
    }
    assert!(tips > 0);
}

#[test]
fn completions_and_manual_pages_list_the_options() {
    let bench = Bench::new(&[]);
    bench.run_ok("manual deep/pages");
    let page = text(&bench.read("deep/pages/bloomline-dedup.1"));
    assert_contains_all(
        &page,
        &[".TH", ".SH \"EXAMPLES\"\n.nf\nbloomline dedup urls.txt > distinct.txt\n", "bloomline dedup"],
    );
    let help = bench.run_ok("dedup --help");
    let options: Vec<&str> = help.split([' ', '\n', ',', '[', '=']).filter(|word| word.starts_with("--")).collect();
    assert!(options.contains(&"--json-pointer") && options.contains(&"--redis"), "{options:?}");
    for (shell, prefix) in [("bash", "--"), ("zsh", "--"), ("fish", "-l ")] {
        let script = bench.run_ok(&format!("completions {shell}"));
        for option in &options {
            assert_contains_all(&script, &[&option.replacen("--", prefix, 1)]);
            assert_contains_all(&page, &[&option.replace('-', "\\-")]);
        }
    }
    assert_contains_all(&bench.run_err("completions csh"), &["'csh'", "bash", "fish", "zsh"]);
    bench.write("file", b"");
    assert_contains_all(&bench.run_err("manual file"), &["\"file\"", "exists"]);
}

/// Returns the help of a command in a terminal with this number of columns.
fn help(bench: &Bench, line: &str, columns: &str) -> String {
    text(&expect_success(bench.command(line).env("COLUMNS", columns).output().unwrap()))
}

#[test]
fn examples_fit_in_a_terminal_of_80_columns() {
    let bench = Bench::new(&[]);
    for command in ["dedup", "corpus", "build", "check", "in", "not-in", "info", "merge", "plan", "redis"] {
        for option in ["-h", "--help"] {
            let examples = |columns: &str| {
                let help = help(&bench, &format!("{command} {option}"), columns);
                help.split_once("Examples:\n").unwrap().1.split_once("\n\n").unwrap().0.to_owned()
            };
            assert_eq!(examples("80"), examples("300"), "{command} {option}");
        }
    }
}

/// Returns the options of a help text, each with the first line of its description, which follows on the same or the next line.
fn described(help: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = help.lines().collect();
    let described = lines.windows(2).filter_map(|pair| {
        let option = pair[0].trim_start();
        let is_option = (2..=6).contains(&(pair[0].len() - option.len())) && option.starts_with('-');
        let name = option.split([' ', ',', '=', '[']).find(|word| word.starts_with("--"))?;
        is_option.then(|| (name, option.split_once("  ").map_or(pair[1], |(_, described)| described).trim()))
    });
    described.collect()
}

#[test]
fn manual_pages_and_help_have_equal_descriptions() {
    let bench = Bench::new(&[]);
    bench.run_ok("manual pages");
    for page in std::fs::read_dir(bench.path("pages")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = page.file_stem().unwrap().to_str().unwrap();
        let command = match name.strip_prefix("bloomline").unwrap().trim_start_matches('-') {
            command if command.starts_with("redis-") => command.replacen('-', " ", 1),
            command => command.to_owned(),
        };
        let help = help(&bench, format!("{command} --help").trim_start(), "300");
        let page =
            std::fs::read_to_string(&page).unwrap().replace("\\-", "-").replace("\\*(Aq", "'").replace("\\\\", "\\");
        let lines: Vec<&str> = page.lines().collect();
        let options = described(&help);
        assert!(options.iter().any(|&(option, _)| option == "--help"), "{help}");
        for (option, description) in options {
            let spelled = format!("\\fB{option}\\fR");
            let found =
                lines.windows(3).find(|lines| lines[0] == ".TP" && lines[1].contains(&spelled)).map(|lines| lines[2]);
            assert_eq!(found, Some(description), "{name} {option}");
        }
    }
}

/// A terminal shows the lines of a page unchanged, apart from the margin.
#[test]
fn examples_and_exit_codes_of_manual_pages_can_be_copied() {
    let bench = Bench::new(&[]);
    bench.run_ok("manual pages");
    for page in ["dedup", "corpus", "build", "check", "in", "not-in", "info", "merge", "plan"] {
        let help = bench.command(&format!("{page} --help")).env("COLUMNS", "300").output().unwrap();
        let help = text(&expect_success(help));
        let wanted: Vec<&str> =
            help.lines().filter(|line| line.starts_with("  bloomline ") || line.starts_with("  128+n")).collect();
        assert!(wanted.len() > 1, "{page}");
        let path = bench.path(&format!("pages/bloomline-{page}.1"));
        let Ok(shown) = Command::new("man").args(["-E", "ascii", "-l"]).arg(path).env("MANWIDTH", "300").output()
        else {
            report_skipped("no man here");
            return;
        };
        let shown = text(&shown.stdout);
        for line in wanted {
            assert!(shown.lines().any(|shown| shown.trim() == line.trim()), "{page}: {line} is not in {shown}");
        }
    }
}

#[test]
fn messages_name_the_error() {
    let bench = Bench::new(&[("a", b"a\n"), ("j", b"{\"text\":\"a\"}\n\n"), ("s", b"{\"text\":\"\\ud800\"}\n")]);
    for line in ["dedup --json-pointer /text j", "corpus j"] {
        assert_contains_all(&expect_failure(&bench.run(line)), &["line 2: cannot read JSON: the line is blank;"]);
    }
    for line in ["dedup --json-pointer /text s", "corpus s"] {
        assert_contains_all(&expect_failure(&bench.run(line)), &["half of a surrogate pair is missing at column "]);
    }
    for line in ["dedup -n -5 a", "build -n -5 -o f a", "plan -n -5 -p 0.1", "corpus -n -5 j"] {
        let message = bench.run_err(line);
        assert_contains_all(&message, &["'-5'", "not a whole number from 1 to"]);
        assert!(!message.contains("tip:"), "{message}");
    }
    assert_contains_all(&bench.run_err("dedup -p -0.1 a"), &["'-0.1'", "not between 0 and 1"]);
    for seed in ["18446744073709551616", "-1", "x"] {
        assert_contains_all(
            &bench.run_err(&format!("dedup --seed {seed} a")),
            &["--seed", "from 0 to 18446744073709551615"],
        );
    }
    for line in ["dedup --stats json a", "build -o f a --stats text", "corpus j --stats json"] {
        assert_contains_all(&bench.run_err(line), &["there is no input", "give --stats="]);
    }
    bench.write("json", b"b\n");
    assert_eq!(text(&bench.run("dedup -q --stats json").stdout), "b\n");
    assert_contains_all(&bench.run_err("corpus --when-full stop j"), &["'stop'", "possible values: warn, grow"]);
    assert!(!bench.run_ok("corpus --help").contains("stop: "));
    assert_contains_all(
        &bench.run_err("corpus --min-ngram 9 --ngram 5 j"),
        &["--min-ngram 9 is above --ngram 5", "at most 5"],
    );
    // Tips are on separate lines.
    for (line, tips) in [
        ("dedup --stat-x a", &["a similar argument exists: '--stats'"][..]),
        ("dedup --near 0.8 a", &["'--near' is an option of bloomline corpus"]),
        ("dedpu a", &["a similar subcommand exists: 'dedup'"]),
        ("dedup --on-error x a", &[]),
    ] {
        let message = bench.run_err(line);
        let found: Vec<&str> = message.lines().filter_map(|line| line.strip_prefix("  tip: ")).collect();
        assert_eq!(found, tips, "{message}");
        assert_eq!(message.lines().count(), 1 + tips.len(), "{message}");
    }
}

/// Another option does not replace a required one, and no file is written.
#[test]
fn no_option_is_accepted_and_ignored() {
    let bench = Bench::new(&[("j", b"{\"text\":\"a b\"}\n")]);
    let needs = |option: &str, line: &str, parts: &[&str]| {
        assert_contains_all(&bench.run_err(line), &[&[option, " cannot be used with"], parts].concat());
        assert_eq!(std::fs::read_dir(bench.0.path()).unwrap().count(), 1, "{line}");
    };
    for third in ["--near 0.8", "-s s", "-p 0.1", "-n 9", "-m 1M"] {
        let line = format!("corpus --report r {third} j");
        needs("--report", &line, &["--against", third.split(' ').next().unwrap().trim_start_matches('-')]);
    }
    for third in ["-o o", "--in-place", "--dupes d", "--total"] {
        needs("--manifest", &format!("dedup --manifest m {third} j"), &["--output-dir"]);
    }
    needs("--in-order", "dedup --in-order -o o j", &["'--output <FILE>'", "--output-dir"]);
    for option in ["--frozen", "--shrink", "--wait", "--checkpoint 5m"] {
        let name = option.split(' ').next().unwrap();
        needs(name, &format!("corpus {option} --in-place j"), &["--in-place", "--state"]);
        if name != "--frozen" {
            needs(name, &format!("corpus {option} --against j j"), &["--against", "--state"]);
        }
    }
    for option in ["--shrink", "--wait", "--checkpoint 5m", "--resume"] {
        needs(option.split(' ').next().unwrap(), &format!("dedup {option} --exact -o o j"), &["--exact", "--state"]);
    }
    for option in ["--name f", "--no-mirror", "--redis-wait 2", "--forget-after 5m -n 9", "--redis-ca f"] {
        let line = format!("dedup {option} --output-dir o j");
        needs(option.split(' ').next().unwrap(), &line, &["--output-dir", "--redis"]);
    }
    needs("--stats-every", "dedup --stats-every 1m --stats --exact j", &["--exact", "--redis"]);
    needs("--id", "dedup --id /a --in-place j", &["--in-place", "--pairs", "--clusters"]);
    // Options without effect.
    for (line, parts) in [
        ("dedup --pairs p --checkpoint 5m -s s j", ["--checkpoint", "--pairs"]),
        ("corpus --against j --exact j", ["'--against <PATH>' cannot be used with '--exact'", "the tests alone"]),
        ("dedup --csv --field 1 --keep max:/s j", ["'--keep max' cannot be used with '--csv'", "give --header"]),
        ("corpus --near 0.8 --exact --checkpoint 5m -s s j", ["--checkpoint", "--exact"]),
        ("dedup --nulls skip j", ["--nulls", "\"j\" has lines"]),
        ("dedup --glob *.gz j", ["--glob is for the files in directories", "name a directory"]),
        ("corpus --hidden j", ["--hidden is for the files in directories", "name a directory"]),
        ("build -o f --follow j", ["--follow is for the files in directories", "name a directory"]),
        ("check -s f -L j", ["--follow is for the files in directories", "name a directory"]),
        ("in --glob *.gz j -- j", ["--glob is for the files in directories", "name a directory"]),
        ("corpus --against . --glob *.gz j", ["--glob is for the files in directories", "name a directory"]),
        ("dedup --glob= .", ["'--glob <GLOB>'", "it matches no name"]),
        ("dedup --glob ! .", ["'--glob <GLOB>'", "it matches no name"]),
        ("dedup --glob #a .", ["'--glob <GLOB>'", "write [#]"]),
        ("dedup -c --total j", ["'--count' cannot be used with '--total'", "no lines are printed"]),
        ("dedup --keep last --total j", ["'--keep' cannot be used with '--total'", "--exact"]),
        ("dedup --keep last --unique j", ["'--keep' cannot be used with '--unique'", "occurs once"]),
        ("dedup --normalize number --trim j", ["--trim has no effect", "--normalize"]),
        ("dedup --normalize time -f 1 -i j", ["--ignore-case has no effect", "--normalize"]),
        ("dedup -f 1,2 --normalize number:2 --trim=2 j", ["--trim has no effect", "--normalize"]),
        ("dedup --force j", ["'--force' cannot be used without", "--output"]),
        ("dedup -s s --total --force j", ["'--force' cannot be used without", "--output"]),
        (
            "corpus --by document --drop-document j",
            ["'--drop-document' cannot be used with '--by document'", "--by paragraph"],
        ),
        (
            "corpus --against j --drop-document j",
            ["'--drop-document' cannot be used with '--against'", "--by paragraph"],
        ),
        ("build --append --no-shrink -o f j", ["'--append' cannot be used with '--no-shrink'", "keeps its size"]),
        ("not-in --distinct --any j -- j", ["'--any' cannot be used with '--distinct'", "ends at the first line"]),
        ("check --verify 9 -s f j", ["'--verify <SAMPLE>' cannot be used with '[FILE]...'", "reads no lines"]),
        ("check --verify 9 -s f --total", ["'--verify <SAMPLE>' cannot be used with '--total'", "reads no lines"]),
        ("dedup --eol lf --total j", ["'--eol lf'", "'--total'"]),
        ("in --eol crlf --any j -- j", ["'--eol crlf'", "'--any'"]),
        ("build --eol lf -o f j", ["'--eol <END>'", "possible values: keep"]),
        ("build -o f --nulls skip j", ["--nulls", "\"j\" has lines"]),
        ("dedup --nulls skip --field 1 j", ["--nulls", "\"j\" has lines"]),
        ("in --any -o o j -- j", ["--any", "--output"]),
        ("not-in --any --compress gzip j -- j", ["--any", "--compress"]),
    ] {
        assert_contains_all(&bench.run_err(line), &parts);
        assert_eq!(std::fs::read_dir(bench.0.path()).unwrap().count(), 1, "{line}");
    }
    // `--keep first` implies the order of the inputs.
    assert_contains_all(&bench.run_err("dedup --when-full stop -n 100 --output-dir o j"), &["--in-order"]);
    bench.run_ok("dedup --when-full stop -n 100 --output-dir o --keep first j");
    // In these combinations, each option has an effect.
    bench.run_ok("dedup --keep last --total --dupes d j");
    bench.run_ok("dedup --keep last --unique --pairs p j");
    bench.run_ok("corpus -q --against . --hidden j");
    bench.run_ok("dedup --eol keep --total j");
    bench.write("empty", b"\n\n");
    bench.write("numbers", b"1\n\n1.0\n\n");
    assert_eq!(bench.run_ok("dedup -f 1 --normalize number --nulls skip numbers"), "1\n");
    assert_eq!(bench.run_ok("dedup --normalize time --nulls keep empty"), "\n\n");
    // An alias is the same option.
    assert_contains_all(
        &bench.run_err("corpus --counts --annotate j"),
        &["'--annotate' cannot be used with '--count'"],
    );
    assert_contains_all(&bench.run_err("dedup -k 1 --json-pointer /a j"), &["'--field <LIST>'", "'--json-pointer"]);
}

/// A new file would replace the link.
#[cfg(unix)]
#[test]
fn dangling_links_are_refused_and_kept() {
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.run_ok("build -o f a");
    std::os::unix::fs::symlink("nowhere", bench.path("link")).unwrap();
    for line in ["dedup --state link a", "build -o link a", "merge f -o link", "dedup --output-dir o --manifest link a"]
    {
        assert_contains_all(&bench.run_err(line), &["\"link\"", "a symbolic link to a file that does not exist"]);
        assert!(bench.path("link").is_symlink() && !bench.path("nowhere").exists(), "{line}");
    }
}
