//! `bloomline completions` and `bloomline manual`: made from the command line's own description.

use crate::error::{Error, SUCCESS};
use crate::files::name;
use crate::options::{Cli, CompletionsOptions, ManualOptions};
use crate::output::Output;
use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::Path;
use std::{fs, io};

/// Prints the completions.
pub fn completions(options: &CompletionsOptions) -> Result<u8, Error> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "bloomline", &mut script);
    let output = Output::create(None, [])?;
    output.write_text(&script)?;
    Ok(SUCCESS)
}

/// Writes the manual pages.
pub fn manual(options: &ManualOptions) -> Result<u8, Error> {
    let folder = &options.folder;
    let pages = || {
        fs::create_dir_all(folder)?;
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        command.get_subcommands().try_for_each(|command| write_page(command, folder))?;
        write_page(&command, folder)
    };
    pages().map_err(|source| Error::Create { output: name(folder), source })?;
    Ok(SUCCESS)
}

/// Writes the page of a command. What its help ends with has lines that must stay as they are, to be copied.
fn write_page(command: &Command, folder: &Path) -> io::Result<()> {
    let end = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let page = Man::new(command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset));
    let mut text = Vec::new();
    page.render(&mut text)?;
    text.extend(closing(&end.unwrap_or_default()).into_bytes());
    fs::write(folder.join(page.get_filename()), text)
}

/// The paragraphs that help ends with, in roff. Lines that are indented below a heading stay lines.
fn closing(text: &str) -> String {
    let mut roff = String::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        match (first.strip_suffix(':'), first.split_once(": ")) {
            (Some(heading @ ("Examples" | "Exit codes")), _) => {
                roff += &format!(".SH \"{}\"\n", heading.to_uppercase());
            }
            // One example on its line.
            (_, Some(("Example", example))) => {
                roff += &format!(".SH \"EXAMPLE\"\n.nf\n{}\n.fi\n", escaped(example));
                continue;
            }
            _ => {
                let start = if roff.is_empty() { ".SH \"NOTES\"" } else { ".PP" };
                roff += &format!("{start}\n{}\n", escaped(first));
            }
        }
        if !rest.is_empty() {
            let lines: Vec<String> =
                rest.lines().map(|line| escaped(line.strip_prefix("  ").unwrap_or(line))).collect();
            roff += &format!(".nf\n{}\n.fi\n", lines.join("\n"));
        }
    }
    roff
}

/// A line as it is to be read and copied.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}
