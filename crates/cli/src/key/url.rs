//! The normal form of URLs: one text for equivalent spellings.

use memchr::memchr;
use url::{Host, ParseError, Url};

/// Normalizes a URL by the URL standard, without its fragment and the dot that ends its host, and with upper-case percent-escapes.
/// Nothing else is changed, because the URL could lead elsewhere: a query is neither sorted nor decoded.
pub fn normal_url(text: &str) -> Result<Vec<u8>, ParseError> {
    let mut url = Url::parse(text)?;
    url.set_fragment(None);
    if let Some(host) = host_without_dot(&url) {
        url.set_host(Some(&host))?;
    }
    if url.scheme() == "file" {
        // The parser drops a host before a drive letter and the host localhost, but not if these result from its own changes.
        url = Url::parse(url.as_str())?;
    }
    let mut bytes = String::from(url).into_bytes();
    uppercase_escapes(&mut bytes);
    Ok(bytes)
}

/// Returns the host without the dot, if it is a name that ends with exactly one. More dots are invalid and are kept.
fn host_without_dot(url: &Url) -> Option<String> {
    let Some(Host::Domain(name)) = url.host() else { return None };
    let name = name.strip_suffix('.')?;
    (!name.is_empty() && !name.ends_with('.')).then(|| name.to_owned())
}

/// Converts the digits of each percent-escape to upper case.
fn uppercase_escapes(bytes: &mut [u8]) {
    let mut start = 0;
    while let Some(percent) = memchr(b'%', &bytes[start..]) {
        start += percent + 1;
        if let Some(digits) = bytes.get_mut(start..start + 2)
            && digits.iter().all(u8::is_ascii_hexdigit)
        {
            digits.make_ascii_uppercase();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(text: &str) -> Result<String, ParseError> {
        normal_url(text).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn equal_urls_have_one_normal_form() {
        for (text, expected) in [
            // Changes that the URL standard specifies.
            ("http://example.org/", "http://example.org/"),
            ("http://example.org", "http://example.org/"),
            ("HTTP://Example.ORG/Path?Query", "http://example.org/Path?Query"),
            ("http://example.org:80/", "http://example.org/"),
            ("https://example.org:443/", "https://example.org/"),
            ("https://example.org:80/", "https://example.org:80/"),
            ("http://example.org:/", "http://example.org/"),
            (" \thttp://example.org/ \r", "http://example.org/"),
            ("http://example.org/a/./b/../c", "http://example.org/a/c"),
            ("http://example.org/a b", "http://example.org/a%20b"),
            ("http://b\u{fc}cher.example/", "http://xn--bcher-kva.example/"),
            ("http://192.0.2.1./", "http://192.0.2.1/"),
            ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"),
            // Fragments are removed.
            ("http://example.org/#", "http://example.org/"),
            ("http://example.org/a?b#c?d#e", "http://example.org/a?b"),
            ("http://example.org/%23a", "http://example.org/%23a"),
            ("mailto:a@example.org#b", "mailto:a@example.org"),
            // Escapes are converted to upper case and kept.
            ("http://example.org/%c3%bc%7e?q=%2f%2F", "http://example.org/%C3%BC%7E?q=%2F%2F"),
            ("http://example.org/%%2f%2", "http://example.org/%%2F%2"),
            ("http://example.org/%2%2f%g0%0g%aab%", "http://example.org/%2%2F%g0%0g%AAb%"),
            ("http://u%3a:p%3a@example.org/", "http://u%3A:p%3A@example.org/"),
            ("other://a%c3b/", "other://a%C3b/"),
            // The final dot of the host is removed.
            ("http://example.org./", "http://example.org/"),
            ("http://example.org.:8080/a.", "http://example.org:8080/a."),
            ("http://u:p@example.org.:80?q.", "http://u:p@example.org/?q."),
            ("http://example.org%2E/", "http://example.org/"),
            ("http://example.org\u{3002}/", "http://example.org/"),
            ("other://example.org./", "other://example.org/"),
            ("file://localhost./a", "file:///a"),
            ("file://example.org.//C:/a", "file:///C:/a"),
            // The dot is kept if no name would remain, or if there are several dots.
            ("http://./", "http://./"),
            ("http://../", "http://../"),
            ("http://example.org../", "http://example.org../"),
        ] {
            assert_eq!(normal(text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn other_parts_of_a_url_are_kept() {
        for text in [
            "http://example.org/?b=2&a=1&a=1",
            "http://example.org/?",
            "http://example.org//a//",
            "http://example.org/index.html",
            "http://www.example.org/%41",
            "http://example.org/?utm_source=a",
            "http://user@example.org/",
        ] {
            assert_eq!(normal(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn relative_urls_are_refused() {
        for text in ["", " ", "example.org", "/a", "//example.org/", "?a", "#a", "1http://example.org/", "http:///"] {
            let expected = if text == "http:///" { ParseError::EmptyHost } else { ParseError::RelativeUrlWithoutBase };
            assert_eq!(normal(text), Err(expected), "{text:?}");
        }
    }

    /// Parts of URLs, including difficult ones for parsers.
    const PIECES: &str = "http: HTTPS: file: ftp: ws: mailto: data: javascript: Other: / // /// \\ @ : :80 :443 :8080 :0 \
        ? # . .. %2e %2E %2f %aB % %%4 %00 %25 | C: C| example Example.ORG localhost 127.1 0x7f 1 [::1] [::FFFF:1.2.3.4] \
        [ ] xn-- xn--bcher-kva b\u{fc}cher \u{3002} \u{df} \u{ad} \u{130} \u{fffd} &b=2&a=1 ' \" < ^ ` {";

    fn text() -> impl Strategy<Value = String> {
        let starts = vec!["", "http://", "https://example.org", "other://", "other:", "file://", "data:"];
        let pieces: Vec<&str> = PIECES.split(' ').chain([" ", "  ", "\t"]).collect();
        let piece = prop_oneof![20 => prop::sample::select(pieces).prop_map(str::to_owned), 1 => any::<String>()];
        (prop::sample::select(starts), prop::collection::vec(piece, 0..9))
            .prop_map(|(start, pieces)| start.to_owned() + &pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

        #[test]
        fn normalizing_twice_changes_nothing(text in text()) {
            if let Ok(normalized) = normal(&text) {
                prop_assert_eq!(normal(&normalized), Ok(normalized));
            }
        }
    }
}
