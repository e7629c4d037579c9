//! The first commands of a connection: the password, the database, and a test that the server accepts it.

use redis::{Cmd, ConnectionInfo, ErrorKind, RedisError, RedisResult, Value, cmd};
use std::io;

/// Returns the commands, each with its name.
pub(crate) fn commands(info: &ConnectionInfo, readonly: bool) -> Vec<(&'static str, Cmd)> {
    let settings = info.redis_settings();
    let mut commands = Vec::new();
    if let Some(password) = settings.password() {
        let mut auth = cmd("AUTH");
        settings.username().into_iter().for_each(|user| _ = auth.arg(user));
        commands.push(("AUTH", auth.arg(password).take()));
    }
    if settings.db() != 0 {
        commands.push(("SELECT", cmd("SELECT").arg(settings.db()).take()));
    }
    if readonly {
        // Primaries accept it too.
        commands.push(("READONLY", cmd("READONLY")));
    }
    // A server with too many clients reports that instead of the first answer, and closes the connection.
    commands.push(("PING", cmd("PING")));
    commands
}

/// Fails if the answer to a command means that the connection cannot be used.
pub(crate) fn check(name: &str, answer: Value) -> RedisResult<()> {
    let Value::ServerError(error) = answer else { return Ok(()) };
    if error.details().is_some_and(|details| details.contains("max number of clients")) {
        return Err(io::Error::other("it has as many clients as it takes (maxclients)").into());
    }
    match name {
        "AUTH" => Err((ErrorKind::AuthenticationFailed, "Password authentication failed").into()),
        // Such a server would close the connection in the middle of the claims, and leave them in doubt.
        "PING" if error.code() == "NOAUTH" => Err(RedisError::from(error)),
        // The server answers. If it refuses `PING`, it refuses other commands where the error matters.
        "PING" => Ok(()),
        _ => Err(RedisError::from(error)),
    }
}
