//! `Sentinels`: the servers that report the primary, and the parser of their URL.
//!
//! <https://redis.io/docs/latest/develop/reference/sentinel-clients/> is the protocol.

use crate::topology::Node;
use redis::{Cmd, ConnectionInfo, IntoConnectionInfo, Value, cmd};

/// The port of a Sentinel whose URL names none.
const DEFAULT_PORT: u16 = 26379;

pub(crate) struct Sentinels {
    pub(crate) addresses: Vec<ConnectionInfo>,
    /// The Sentinels' name of the primary.
    name: String,
}

impl Sentinels {
    /// Reads
    /// `redis+sentinel://[LOGIN@]HOST[:PORT],.../NAME[/DATABASE][?sentinel_user=USER&sentinel_password=PASSWORD]`, or
    /// the same with `rediss`. Returns the Sentinels, and the connection parameters of the primary, whose host and port
    /// are to be replaced. `None` for other URLs.
    pub(crate) fn parse(url: &str) -> Option<Result<(Self, ConnectionInfo), String>> {
        let (scheme, rest) =
            url.split_once("+sentinel://").filter(|(scheme, _)| matches!(*scheme, "redis" | "rediss"))?;
        Some(Self::parse_rest(scheme, rest))
    }

    fn parse_rest(scheme: &str, rest: &str) -> Result<(Self, ConnectionInfo), String> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (servers, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) =
            servers.rsplit_once('@').map_or(("", servers), |(_, hosts)| servers.split_at(servers.len() - hosts.len()));
        let (name, database) = path.split_once('/').unwrap_or((path, ""));
        if name.is_empty() {
            return Err(format!("it does not say which primary: {scheme}+sentinel://HOST:PORT,HOST:PORT/NAME"));
        }
        let (mut user, mut password) = ("", "");
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sentinel_user", value)) => user = value,
                Some(("sentinel_password", value)) => password = value,
                // Not repeated, because it may hold a password.
                _ => {
                    return Err(
                        "after the ? there may be sentinel_user=USER and sentinel_password=PASSWORD alone".to_owned()
                    );
                }
            }
        }
        let own_login = if password.is_empty() { String::new() } else { format!("{user}:{password}@") };
        let address = |login: &str, host: &str, database: &str| {
            let port = if has_port(host) { String::new() } else { format!(":{DEFAULT_PORT}") };
            let url = format!("{scheme}://{login}{host}{port}/{database}");
            url.into_connection_info().map_err(|error| error.to_string())
        };
        let addresses =
            hosts.split(',').map(|host| address(&own_login, host.trim(), "")).collect::<Result<Vec<_>, _>>()?;
        let primary = address(login, hosts.split(',').next().unwrap_or_default().trim(), database)?;
        Ok((Self { addresses, name: name.to_owned() }, primary))
    }

    /// Returns the question for the primary's address.
    pub(crate) fn question(&self) -> Cmd {
        cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name).take()
    }

    /// Returns the primary that an answer names.
    ///
    /// # Errors
    /// The reason that the answer does not name a primary.
    pub(crate) fn primary(&self, answer: Value) -> Result<Node, String> {
        let text = |value: &Value| match value {
            Value::BulkString(text) => String::from_utf8(text.clone()).ok(),
            Value::SimpleString(text) => Some(text.clone()),
            _ => None,
        };
        let address = |answer: &Value| {
            let Value::Array(parts) = answer else { return None };
            let [host, port] = &parts[..] else { return None };
            Some(Node::new(&text(host)?, text(port)?.parse().ok()?))
        };
        match &answer {
            Value::Nil => Err(format!("it knows no primary with the name {:?}", self.name)),
            Value::ServerError(error) if error.details().is_some_and(|details| details.contains("unknown command")) => {
                Err(format!("{error}; it is not a Sentinel: give the URL of one, or the server's as redis://HOST:PORT"))
            }
            Value::ServerError(error) => Err(error.to_string()),
            answer => address(answer).ok_or_else(|| "its answer makes no sense".to_owned()),
        }
    }
}

/// True if an address has a port. IPv6 addresses are in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<(Sentinels, ConnectionInfo), String> {
        Sentinels::parse(url).expect("it is for Sentinels")
    }

    #[test]
    fn urls_are_parsed() {
        let (sentinels, primary) =
            parse("redis+sentinel://me:hush@one,two:7,[::1]/main/3?sentinel_user=guard&sentinel_password=psst")
                .unwrap();
        let addresses: Vec<String> = sentinels.addresses.iter().map(|info| info.addr().to_string()).collect();
        assert_eq!(addresses, ["one:26379", "two:7", "::1:26379"]);
        assert_eq!(sentinels.name, "main");
        for info in &sentinels.addresses {
            let settings = info.redis_settings();
            assert_eq!((settings.username(), settings.password(), settings.db()), (Some("guard"), Some("psst"), 0));
        }
        let settings = primary.redis_settings();
        assert_eq!((settings.username(), settings.password(), settings.db()), (Some("me"), Some("hush"), 3));
        // Without a login for them, Sentinels get none.
        let (sentinels, _) = parse("rediss+sentinel://:hush@one/main").unwrap();
        assert_eq!(sentinels.addresses[0].redis_settings().password(), None);
        assert!(matches!(sentinels.addresses[0].addr(), redis::ConnectionAddr::TcpTls { .. }));
        assert!(Sentinels::parse("redis://one/0").is_none());
        assert!(Sentinels::parse("valkey+sentinel://one/main").is_none());
    }

    #[test]
    fn wrong_urls_are_refused() {
        for url in ["one,two", "one/", "one//0", "/main", "one,/main", "one/main/x", "one/main?timeout=hush"] {
            let Err(error) = parse(&format!("redis+sentinel://{url}")) else { panic!("{url}") };
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn answers_name_a_primary() {
        let (sentinels, _) = parse("redis+sentinel://one/main").unwrap();
        let bulk = |text: &str| Value::BulkString(text.into());
        let primary = sentinels.primary(Value::Array(vec![bulk("10.0.0.7"), bulk("6380")]));
        assert_eq!(primary, Ok(Node::new("10.0.0.7", 6380)));
        for nonsense in [Value::Nil, Value::Int(1), Value::Array(vec![bulk("a"), bulk("b")]), Value::Array(Vec::new())]
        {
            assert!(sentinels.primary(nonsense).is_err());
        }
    }
}
