//! The names of keys, which filters store: a filter of one name is not used for keys of another.

/// The maximum bytes of a name in a filter.
pub const MAX_NAME_BYTES: usize = 1024;

/// Returns the name of keys that are values of named columns: `url`, or `day,url` for several, whose order makes no difference. A
/// column whose name has a comma, a quote, a backslash or a control character is in quotes.
///
/// ```
/// use bloomline_keys::name_of_columns;
///
/// assert_eq!(name_of_columns(&["url"]), "url");
/// assert_eq!(name_of_columns(&["url", "day"]), "day,url");
/// assert_eq!(name_of_columns(&["a,b"]), "'a,b'");
/// ```
pub fn name_of_columns(columns: &[&str]) -> String {
    let mut columns = columns.to_vec();
    columns.sort_unstable();
    columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(",")
}

fn quoted(column: &str) -> String {
    let is_plain = |c: char| !c.is_control() && !matches!(c, ',' | '\'' | '\\');
    if !column.is_empty() && column.chars().all(is_plain) {
        column.to_owned()
    } else {
        format!("'{}'", escaped(column))
    }
}

/// Escapes each control character, quote and backslash, so that the text is on one line.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_control() || matches!(character, '\'' | '\\') {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Shortens a name that is too long for a filter. It then ends with its hash, which `hash` computes.
pub fn shortened(name: String, hash: impl FnOnce(&[u8]) -> u64) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let hash = hash(name.as_bytes());
    // 20 bytes are reserved: 3 for the ellipsis, a space and the hash.
    let cut = (0..MAX_NAME_BYTES - 20).rfind(|&cut| name.is_char_boundary(cut)).unwrap_or(0);
    format!("{}… {hash:016x}", &name[..cut])
}

/// Returns the present name of keys of one named column, for a name in earlier files: `/url of JSON lines` or `field
/// 'url' of CSV lines`. Other names are returned unchanged.
pub fn current_name(name: &str) -> String {
    const PARAGRAPHS: &str = "paragraphs of ";
    if let Some(rest) = name.strip_prefix(PARAGRAPHS) {
        return format!("{PARAGRAPHS}{}", current_name(rest));
    }
    let (base, forms) = name.split_once(", ").map_or((name, ""), |(base, _)| (base, &name[base.len()..]));
    let pointer = base.strip_suffix(" of JSON lines").and_then(|pointer| pointer.strip_prefix('/'));
    let field = base.strip_prefix("field '").and_then(|field| field.split_once("' of ")).map(|(field, _)| field);
    let column = pointer.filter(|pointer| !pointer.contains(['~', '\\'])).map(|pointer| pointer.replace('/', "."));
    match column.or(field.filter(|field| !field.contains(['\\', '\''])).map(str::to_owned)) {
        Some(column) => quoted(&column) + forms,
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_one_line_and_unambiguous() {
        for (columns, name) in [
            (&["url"][..], "url"),
            (&["b", "a"], "a,b"),
            (&["a,b"], "'a,b'"),
            (&["it's"], r"'it\'s'"),
            (&["a\nb", ""], r"'','a\nb'"),
            (&["page url"], "page url"),
        ] {
            assert_eq!(name_of_columns(columns), name);
        }
    }

    #[test]
    fn earlier_names_of_one_column_are_understood() {
        for (earlier, name) in [
            ("/url of JSON lines", "url"),
            ("/page/url of JSON lines, case ignored", "page.url, case ignored"),
            ("field 'url' of CSV lines", "url"),
            ("field 'url' of CSV lines split at ';', trimmed", "url, trimmed"),
            ("field 'a,b' of lines split at tab", "'a,b'"),
            ("'/a' and '/b' of JSON lines", "'/a' and '/b' of JSON lines"),
            ("field 2 of CSV lines", "field 2 of CSV lines"),
            ("value of JSON lines", "value of JSON lines"),
            ("paragraphs of /text of JSON lines, normalized by case", "paragraphs of text, normalized by case"),
            ("line, without CR", "line, without CR"),
            ("url", "url"),
        ] {
            assert_eq!(current_name(earlier), name);
        }
    }

    #[test]
    fn long_names_are_shortened_and_end_with_their_hash() {
        let name = shortened("ü".repeat(600), |_| 7);
        assert!(name.len() <= MAX_NAME_BYTES && name.ends_with("… 0000000000000007"));
        assert_eq!(shortened("url".to_owned(), |_| unreachable!()), "url");
    }
}
