//! `bloomline completions` and `bloomline manual`: generated from the definition of the command line.

use crate::options::{Cli, CompletionsOptions, ManualOptions};
use crate::system::error::{Error, SUCCESS};
use crate::system::files;
use crate::write::output::Output;
use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;
use std::path::Path;
use std::{fs, io};

/// Prints the completions.
pub fn completions(options: &CompletionsOptions) -> Result<u8, Error> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::described(), "bloomline", &mut script);
    let output = Output::standard([])?;
    output.write_text(&script)?;
    Ok(SUCCESS)
}

/// Writes the manual pages.
pub fn manual(options: &ManualOptions) -> Result<u8, Error> {
    let folder = &options.folder;
    let pages = || {
        fs::create_dir_all(folder)?;
        let mut command = Cli::described().disable_help_subcommand(true);
        command.build();
        write_pages(&command, folder)
    };
    pages().map_err(files::failed(folder))?;
    Ok(SUCCESS)
}

/// Writes the pages of a command and of its subcommands.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    command.get_subcommands().try_for_each(|command| write_pages(command, folder))?;
    write_page(command, folder)
}

/// Writes the page of a command. Lines of examples and exit codes are not reflowed, so that they can be copied.
fn write_page(command: &Command, folder: &Path) -> io::Result<()> {
    let sections =
        [command.get_before_long_help(), command.get_after_long_help()].map(|text| text.map(ToString::to_string));
    let command = command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    // The page would omit the only line of help of an option that `-h` does not show.
    let page = Man::new(command.mut_args(|arg| arg.hide_short_help(false)));
    let mut text = Vec::new();
    page.render(&mut text)?;
    text.extend(sections.iter().flatten().flat_map(|text| section(text).into_bytes()));
    fs::write(folder.join(page.get_filename()), text)
}

/// Formats a heading and the indented lines below it, in roff.
fn section(text: &str) -> String {
    let (heading, lines) = text.split_once(":\n").unwrap_or((text, ""));
    let lines: Vec<String> = lines.lines().map(|line| escaped(line.strip_prefix("  ").unwrap_or(line))).collect();
    format!(".SH \"{}\"\n.nf\n{}\n.fi\n", heading.to_uppercase(), lines.join("\n"))
}

/// Escapes a line so that it is shown and copied as it is.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}
