//! Options: what is refused, and what the help tells.

use crate::common::{Bench, text};

#[test]
fn values_out_of_range_are_refused() {
    let bench = Bench::new(&[("a", b"a\n")]);
    for (option, values) in [
        ("--fpr", &["0", "1", "2", "-0.1", "NaN", "inf", "x", ""][..]),
        ("--expected-keys", &["0", "-1", "1.5", "99999999999999999999"]),
        ("--threads", &["0", "1025", "x"]),
        ("--stats", &["xml"]),
        ("--seed", &["-1"]),
    ] {
        for value in values {
            let message = bench.refused(&format!("dedup {option}={value} a"));
            assert!(message.contains(option), "{message}");
        }
    }
    assert!(bench.refused("dedup -n 18446744073709551615 a").contains("1e-6"));
    assert!(bench.refused("dedup -n 1000000000000000 -p 0.1 a").contains("memory"));
    assert!(bench.refused("dedup --unknown").contains("--unknown"));
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
    for shell in ["bash", "zsh"] {
        assert!(bench.clean(&format!("completions {shell}")).contains("--json-pointer"), "{shell}");
    }
    // There the dashes are not part of the name.
    assert!(bench.clean("completions fish").contains("-l json-pointer"));
    assert!(bench.refused("completions csh").contains("csh"));

    bench.clean("manual deep/pages");
    let page = text(&bench.read("deep/pages/bloomline-dedup.1"));
    assert!(page.contains(".TH") && page.contains("json\\-pointer") && page.contains("Examples:"), "{page}");
    bench.write("file", b"");
    assert!(bench.refused("manual file").contains("\"file\""));
}
