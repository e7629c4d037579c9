//! Signals and kills while standard input is silent: what was printed is remembered.

use crate::common::{Bench, clean, fed, tells, text};
use crate::corpus::decoded;
use crate::live::{Live, wait_for};

#[test]
fn signals_save_what_was_printed() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        for options in ["", "-n 100 ", "--checkpoint 1h "] {
            let bench = Bench::new(&[]);
            let mut live = Live::new(bench.command(&format!("dedup {options}--state s -")));
            live.say(b"a\nb\na\npart of a line");
            assert_eq!((live.line(), live.line()), ("a".to_owned(), "b".to_owned()));
            live.signal(signal);
            let (ended, lines, said) = live.end();
            assert_eq!((ended, lines, said.as_str()), (Some(code), vec![], ""), "{options}");
            let again = fed(bench.command(&format!("dedup {options}--state s -")), b"c\nb\na\n");
            assert_eq!(clean(again), b"c\n", "{options}");
        }
        // An output that is compressed has its end.
        let bench = Bench::new(&[]);
        let mut live = Live::new(bench.command("dedup -n 10 --checkpoint 10ms --state s -o o.gz --dupes d -"));
        live.say(b"a\nb\na\n");
        // Only its state tells that the lines have come.
        wait_for(|| bench.path("s").exists() && fed(bench.command("check -c -f s"), b"a\nb\n").stdout == b"2\n");
        live.signal(signal);
        assert_eq!(live.end().0, Some(code));
        assert_eq!((text(&decoded(&bench, "o.gz")), text(&bench.read("d"))), ("a\nb\n".to_owned(), "a\n".to_owned()));
    }
}

#[test]
fn checkpoints_outlive_a_kill() {
    let bench = Bench::new(&[]);
    let mut live = Live::new(bench.command("dedup --state s --checkpoint 20ms -"));
    live.say(b"a\nb\n");
    wait_for(|| bench.path("s").exists() && fed(bench.command("check -c -f s"), b"a\nb\n").stdout == b"2\n");
    live.signal("KILL");
    // What the state holds was printed.
    assert_eq!(live.end().1, ["a", "b"]);
    assert_eq!(clean(fed(bench.command("dedup --state s"), b"b\nc\na\n")), b"c\n");
    for (line, parts) in
        [("--checkpoint 1m a", ["required", "--state"]), ("--checkpoint 0s --state s a", ["--checkpoint", "'0s'"])]
    {
        tells(&bench.refused(&format!("dedup {line}")), &parts);
    }
}
