//! The parts of each command's help that are not options, and the options of its short form.

use clap::Command;

/// Examples come first, because most people look for one.
const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The help of a command.
struct Help {
    command: &'static str,
    /// The options of `-h`, by their names in the code. `--help` has all.
    short: &'static str,
    /// `-h` shows the first ones. They fit into 80 columns, so that they can be copied.
    examples: &'static [&'static str],
}

/// The number of examples that `-h` shows.
const SHORT_EXAMPLES: usize = 3;

/// The options of `-h` for `bloomline in`.
const IN_SETS: &str =
    "total any quiet field delimiter csv column normalize trim ignore_case expected_keys fpr exact output stats";

const HELPS: &[Help] = &[
    Help {
        command: "dedup",
        short: "field delimiter csv column ignore_case expected_keys fpr exact output output_dir count state \
            header stats quiet",
        examples: &[
            "bloomline dedup urls.txt > distinct.txt",
            "bloomline dedup --normalize url --stats crawl-*.gz -o distinct.zst",
            "bloomline dedup -s seen.bloom today.txt -o new.txt  # after a crash: --resume",
            "bloomline dedup --csv --header -f url pages-*.csv > distinct.csv",
            "bloomline dedup --column text --dupes repeats.jsonl texts.jsonl -o once.jsonl",
            "bloomline dedup --column url,day --output-dir clean data/*.parquet",
            "bloomline dedup --output-dir clean --glob '*.gz' --compress zstd crawl/",
            "bloomline dedup -d : -f 1,2- --ignore-case=1 accounts.txt  # mail:password",
            "bloomline dedup -c --field 1 access.log | sort -rn | head",
            "bloomline dedup --column url --keep max:/score pages.jsonl -o best.jsonl",
            "bloomline dedup all.txt new.txt -o all.txt",
            "bloomline dedup --in-place lists/",
        ],
    },
    Help {
        command: "corpus",
        short: "column by ngram normalize near substrings against expected_keys fpr output output_dir annotate state \
            stats quiet",
        examples: &[
            "bloomline corpus --stats crawl.jsonl.gz -o clean.jsonl.gz",
            "bloomline corpus --by document --output-dir clean crawl/",
            "bloomline corpus --near 0.8 crawl.jsonl.zst -o clean.jsonl.zst",
            "bloomline corpus --by document --ngram 0 --keep max:/score crawl -o one.jsonl",
            "bloomline corpus --ngram 0 --normalize trim,lower pages.jsonl > cut.jsonl",
            "bloomline corpus --substrings 50 crawl.jsonl.gz -o clean.jsonl.gz",
            "bloomline corpus --against tests/ --report found.jsonl train/ -o clean.jsonl",
        ],
    },
    Help {
        command: "build",
        short: "field delimiter csv column normalize trim ignore_case expected_keys fpr output append \
            no_shrink threads stats quiet",
        examples: &[
            "bloomline build -p 0.001 -o seen.bloom monday.txt",
            "bloomline build -n 50000000 --no-shrink -o week.bloom monday.txt",
            "bloomline build --append -o week.bloom tuesday.txt",
            "zcat logs.gz | bloomline build --stats -o logs.bloom",
        ],
    },
    Help {
        command: "check",
        short: "state invert total any quiet field delimiter csv column normalize trim ignore_case glob \
            threads redis",
        examples: &[
            "bloomline check -s seen.bloom urls.txt > seen.txt",
            "bloomline check -v -s seen.bloom urls.txt > new.txt",
            "if bloomline check --any -s seen.bloom urls.txt; then echo 'some seen'; fi",
            "bloomline check --verify 1000000 -s seen.bloom  # the rate, measured",
        ],
    },
    Help {
        command: "in",
        short: IN_SETS,
        examples: &[
            "bloomline in old.txt -- new.txt > both.txt",
            "bloomline in --exact --json-pointer /id -o known.jsonl seen/ -- today.jsonl",
            "if bloomline in --any blocked.txt -- hosts.txt; then echo 'some blocked'; fi",
        ],
    },
    Help {
        command: "not-in",
        short: "distinct total any field delimiter csv column normalize trim ignore_case expected_keys fpr exact \
            output stats",
        examples: &[
            "bloomline not-in old.txt -- new.txt > added.txt",
            "bloomline not-in --distinct old.txt -- new.txt > added.txt  # no line twice",
            "bloomline not-in --normalize url -o new.txt.zst crawl/ -- today/",
            "cat *.txt | bloomline not-in old.txt > added.txt",
            "bloomline not-in --exact --stats old-*.gz -- new-*.gz > added.txt",
        ],
    },
    Help {
        command: "info",
        short: "json",
        examples: &["bloomline info seen.bloom", "bloomline info --json seen.bloom | jq .fpr"],
    },
    Help {
        command: "merge",
        short: "output fpr wait",
        examples: &[
            "bloomline merge monday.bloom tuesday.bloom -o both.bloom",
            "bloomline merge -p 3e-6 monday.state tuesday.state -o both.state  # 1e-6 each",
        ],
    },
    Help {
        command: "plan",
        short: "expected_keys fpr memory table json",
        examples: &[
            "bloomline plan -n 1000000000 -p 0.001",
            "bloomline plan -n 1000000000 --memory 4G",
            "bloomline plan --table",
            "bloomline plan -p 0.001 --memory 4G --json",
        ],
    },
    Help {
        command: "redis",
        short: "",
        examples: &[
            "bloomline redis list --redis redis://10.0.0.1",
            "bloomline redis watch --redis redis://10.0.0.1 --name urls",
            "bloomline redis download --redis redis://10.0.0.1 --name urls -o urls.bloom",
            "bloomline redis upload --redis redis://10.0.0.1 --name urls urls.bloom",
            "bloomline redis import --redis redis://10.0.0.1 --name urls --set visited",
            "bloomline redis info --redis @redis.url --name urls --json  # URL in a file",
            "bloomline redis delete --redis redis://10.0.0.1 --name urls",
        ],
    },
];

pub const CODES: &str = "\
Exit codes:
  0      done
  2      an error
  128+n  ended by the signal n, such as 130 by Ctrl-C";

pub const READING_CODES: &str = "\
Exit codes:
  0      done
  1      done, but an input or a part of one was left out by --on-error skip or keep
  2      an error
  128+n  ended by the signal n, such as 130 by Ctrl-C";

pub const CHECK_CODES: &str = "\
Exit codes:
  0      lines were selected
  1      no line was selected
  2      an error, or an input could not be read
  128+n  ended by the signal n, such as 130 by Ctrl-C";

/// Adds the help to the command line.
pub fn with_help(cli: Command) -> Command {
    cli.mut_subcommands(|command| {
        let Some(help) = HELPS.iter().find(|help| help.command == command.get_name()) else { return command };
        let more = format!("bloomline {} --help has all options and exit codes.", help.command);
        let short = help.examples.iter().take(SHORT_EXAMPLES);
        let command = command.help_template(TEMPLATE).before_help(examples(short)).after_help(more);
        let command = command.before_long_help(examples(help.examples));
        let ids: Vec<&str> = help.short.split_whitespace().collect();
        command.mut_args(|arg| {
            let shown = arg.is_positional() || ids.iter().any(|id| arg.get_id() == id);
            arg.hide_short_help(!shown)
        })
    })
}

fn examples<'a>(lines: impl IntoIterator<Item = &'a &'static str>) -> String {
    lines.into_iter().fold("Examples:".to_owned(), |text, line| text + "\n  " + line)
}
