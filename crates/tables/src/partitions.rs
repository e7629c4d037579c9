//! Columns that are not in the file but in the folders of its path, such as `day=2026-11-01/`.

use std::path::{Component, Path};

/// Returns the columns in the folders of a path, as in Hive.
pub fn partitions(path: &Path) -> Vec<(String, Option<String>)> {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let names = folders.filter_map(|part| match part {
        Component::Normal(name) => Some(name.as_encoded_bytes()),
        _ => None,
    });
    let pairs = names.filter_map(|name| {
        let position = memchr::memchr(b'=', name).filter(|&position| position > 0)?;
        let (name, value) = (&name[..position], &name[position + 1..]);
        let value = (value != b"__HIVE_DEFAULT_PARTITION__").then(|| unescaped(value));
        Some((unescaped(name), value))
    });
    pairs.collect()
}

/// Removes percent-escapes such as `%3D`, which replace characters that folder names may not have.
fn unescaped(name: &[u8]) -> String {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_columns_and_their_values() {
        let some = |value: &str| Some(value.to_owned());
        for (path, expected) in [
            ("a/day=2026-11-01/b=x%2Fy/part.parquet", vec![("day", some("2026-11-01")), ("b", some("x/y"))]),
            ("day=__HIVE_DEFAULT_PARTITION__/p", vec![("day", None)]),
            ("=x/a=/p=q", vec![("a", some(""))]),
            ("%zz=%/p", vec![("%zz", some("%"))]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            assert_eq!(partitions(Path::new(path)), expected, "{path}");
        }
    }
}
