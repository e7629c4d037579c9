//! The format of commands on the wire: an array of strings for each.
//!
//! The client crate keeps each command as an object of its own, and copies it twice. crates/redis/DESIGN.md has the
//! cost.

use redis::{Arg, Cmd};

/// A destination for commands, written argument by argument.
pub(crate) trait CommandSink: Default {
    /// Begins a command with this number of arguments, its name included.
    fn begin(&mut self, arguments: usize);

    fn argument(&mut self, bytes: &[u8]);

    fn number(&mut self, number: usize) {
        self.argument(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Writes a complete command.
    fn command(&mut self, command: &Cmd) {
        let arguments = command.args_iter();
        self.begin(arguments.len());
        for argument in arguments {
            let Arg::Simple(bytes) = argument else { unreachable!("no command here has a cursor") };
            self.argument(bytes);
        }
    }
}

/// The bytes of commands, one after another.
#[derive(Default)]
pub(crate) struct PackedCommands(pub(crate) Vec<u8>);

impl PackedCommands {
    /// Writes a length, as `*2` or `$3`.
    fn length(&mut self, kind: u8, length: usize) {
        self.0.push(kind);
        match length {
            0..10 => self.0.push(b'0' + length as u8),
            _ => self.0.extend_from_slice(itoa::Buffer::new().format(length).as_bytes()),
        }
        self.0.extend_from_slice(b"\r\n");
    }
}

impl CommandSink for PackedCommands {
    fn begin(&mut self, arguments: usize) {
        self.length(b'*', arguments);
    }

    fn argument(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
    }
}

/// One command.
impl CommandSink for Cmd {
    fn begin(&mut self, _: usize) {}

    fn argument(&mut self, bytes: &[u8]) {
        self.arg(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redis::Pipeline;

    proptest! {
        /// The client crate writes the same bytes.
        #[test]
        fn bytes_match_those_of_the_client_crate(
            commands in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..40), 0..10),
            number: usize,
        ) {
            let (mut packed, mut pipeline) = (PackedCommands::default(), Pipeline::new());
            for arguments in &commands {
                let mut command = Cmd::new();
                command.arg(arguments).arg(number);
                packed.command(&command);
                pipeline.add_command(command);
            }
            prop_assert_eq!(packed.0, pipeline.get_packed_pipeline());
        }
    }
}
