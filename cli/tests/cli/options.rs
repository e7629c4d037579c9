//! Options: what is refused, and what the help tells.

use crate::common::{Bench, tells, text};

#[test]
fn values_out_of_range_are_refused() {
    let bench = Bench::new(&[("a", b"a\n")]);
    for (option, values, why) in [
        ("--fpr", &["0", "1", "2", "-0.1", "NaN", "inf"][..], "between 0 and 1"),
        ("--fpr", &["x", ""], "not a number"),
        ("--expected-keys", &["0"], "not in 1.."),
        ("--expected-keys", &["-1", "1.5"], "invalid digit"),
        ("--expected-keys", &["99999999999999999999"], "too large"),
        ("--threads", &["0", "1025"], "not in 1..=1024"),
        ("--threads", &["x"], "invalid digit"),
        ("--stats", &["xml"], "text, json"),
        ("--seed", &["-1"], "invalid digit"),
    ] {
        for value in values {
            let message = bench.refused(&format!("dedup {option}={value} a"));
            tells(&message, &[option, &format!("'{value}'"), why]);
        }
    }
    tells(&bench.refused("dedup -n 18446744073709551615 a"), &["rate 1e-6", "64-bit hashes"]);
    tells(&bench.refused("dedup -n 1000000000000000 -p 0.1 a"), &["bytes of memory", "rate", "fewer keys"]);
    tells(&bench.refused("dedup --unknown"), &["unexpected", "--unknown"]);
}

#[test]
fn help_shows_an_example() {
    let help = Bench::new(&[]).clean("dedup --help");
    assert!(help.contains("bloomline dedup") && help.contains("--expected-keys"), "{help}");
    assert!(!help.contains("--chunk-size"), "{help}");
}

#[test]
fn help_shows_examples() {
    let bench = Bench::new(&[]);
    for command in ["build", "check", "info", "merge", "plan"] {
        let help = bench.clean(&format!("{command} --help"));
        assert!(help.contains("Example") && help.contains(&format!("  bloomline {command} ")), "{help}");
    }
}

#[test]
fn completions_and_manual_pages_know_the_options() {
    let bench = Bench::new(&[]);
    bench.clean("manual deep/pages");
    let page = text(&bench.read("deep/pages/bloomline-dedup.1"));
    tells(&page, &[".TH", "Examples:", "bloomline dedup"]);
    let help = bench.clean("dedup --help");
    let options: Vec<&str> = help.split([' ', '\n', ',', '[', '=']).filter(|word| word.starts_with("--")).collect();
    assert!(options.contains(&"--json-pointer") && options.contains(&"--redis"), "{options:?}");
    for (shell, prefix) in [("bash", "--"), ("zsh", "--"), ("fish", "-l ")] {
        let script = bench.clean(&format!("completions {shell}"));
        for option in &options {
            tells(&script, &[&option.replacen("--", prefix, 1)]);
            tells(&page, &[&option.replace('-', "\\-")]);
        }
    }
    tells(&bench.refused("completions csh"), &["'csh'", "bash", "fish", "zsh"]);
    bench.write("file", b"");
    tells(&bench.refused("manual file"), &["\"file\"", "File exists"]);
}
