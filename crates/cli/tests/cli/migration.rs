//! The commands of other programs and their replacements, from the table in docs/COMMAND.md.

use crate::common::{Bench, report_skipped};
use std::process::{Command, Stdio};

/// Returns the pairs of commands in the table.
fn pairs() -> Vec<(String, String)> {
    let page = include_str!("../../../../docs/COMMAND.md");
    let section = page.split("## Migrating from").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let command = |cell: &str| cell.trim().trim_matches('`').replace('\u{0}', "|");
    rows.map(|row| {
        let row = row.replace("\\|", "\u{0}");
        let cells: Vec<&str> = row.split('|').collect();
        (command(cells[1]), command(cells[2]))
    })
    .collect()
}

fn is_installed(program: &str) -> bool {
    let status = Command::new("bash").arg("-c").arg(format!("command -v {program}")).stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Returns the sorted lines that a command prints or writes to its output file. Only the order may differ.
fn run_printed(command: &str) -> Vec<Vec<u8>> {
    let lines = |count: u32, step: u32| -> Vec<u8> {
        (0..count).flat_map(|i| format!("{},Name {},x\n", i * step % 97, i % 13).into_bytes()).collect()
    };
    let bench = Bench::new(&[("f", &lines(400, 7)), ("old", &lines(60, 5)), ("new", &lines(90, 3))]);
    bench.write("f", &[&bench.read("f")[..], &lines(100, 7), b"1,NAME 3,x\n1,name 3,X\n500,Once,x\n"].concat());
    let output = bench.bash(command).env("LC_ALL", "C").output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""), "{command}");
    let bytes = match command {
        _ if command.contains("-o f") => bench.read("f"),
        _ if command.contains(" out") => bench.read("out"),
        _ => output.stdout,
    };
    let mut lines: Vec<Vec<u8>> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    lines.sort();
    lines
}

#[test]
fn migration_table_commands_agree() {
    let pairs = pairs();
    assert!(pairs.len() > 12, "{pairs:?}");
    for (theirs, ours) in pairs {
        assert!(ours.starts_with("bloomline "), "{ours}");
        let lines = run_printed(&ours);
        assert!(lines.len() > 1, "{ours}");
        let program = theirs.split(' ').next().unwrap();
        if is_installed(program) {
            assert!(lines == run_printed(&theirs), "{ours} and {theirs}");
        } else {
            report_skipped(&format!("no {program} here"));
        }
    }
}
