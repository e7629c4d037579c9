//! Names of keys, which filter files store.

use crate::key::fields::{Csv, FieldSelector, FieldSplit};
use crate::key::{KeyPart, KeyRule, PartNumbers};
use bloomline::KeyHasher;

/// The maximum bytes of a name in a filter file.
pub const NAME_BYTES: usize = 1024;

impl KeyRule {
    /// Returns a name that identifies the rule. It has no control characters, and a long name is shortened and ends with its hash.
    pub fn name(&self) -> String {
        let mut name = match &self.part {
            KeyPart::Line => "line".to_owned(),
            KeyPart::Record(csv) => format!("record of CSV lines{}", escape_name(*csv)),
            KeyPart::Row => "row".to_owned(),
            KeyPart::Fields { selectors, split } => fields_name(selectors, split),
            KeyPart::Json(pointers) => match &pointers[..] {
                [pointer] if pointer.to_string().is_empty() => "value of JSON lines".to_owned(),
                [pointer] => format!("{} of JSON lines", escaped(&pointer.to_string())),
                // A single pointer starts with a slash. Quotes distinguish several pointers from one.
                several => {
                    let quoted = several.iter().map(|pointer| format!("'{}'", escaped(&pointer.to_string())));
                    format!("{} of JSON lines", quoted.collect::<Vec<_>>().join(" and "))
                }
            },
        };
        if self.crlf {
            name += ", without CR";
        }
        let steps = [(&self.trim, "trimmed"), (&self.url, "normal form of a URL"), (&self.ignore_case, "case ignored")];
        for (parts, step) in steps {
            let numbers = |parts: &[usize]| parts.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            name += &match parts {
                PartNumbers::None => String::new(),
                PartNumbers::All => format!(", {step}"),
                PartNumbers::Some(parts) => format!(", {step} in part {}", numbers(parts)),
            };
        }
        if name.len() > NAME_BYTES {
            let hash = KeyHasher::new(0).bytes(name.as_bytes());
            // 20 bytes are reserved: 3 for the ellipsis, a space and the hash.
            let cut = (0..NAME_BYTES - 20).rfind(|&cut| name.is_char_boundary(cut)).unwrap_or(0);
            name = format!("{}… {hash:016x}", &name[..cut]);
        }
        name
    }
}

/// Returns a name for fields. It is the same for 1,2,3 and 1-3.
fn fields_name(selectors: &[FieldSelector], split: &FieldSplit) -> String {
    let mut runs: Vec<FieldSelector> = Vec::new();
    for selector in selectors {
        match (runs.last_mut(), selector) {
            (Some(FieldSelector::Numbers(_, Some(last))), &FieldSelector::Numbers(first, Some(end)))
                if *last + 1 == first =>
            {
                *last = end
            }
            _ => runs.push(selector.clone()),
        }
    }
    let runs = runs.iter().map(|run| match run {
        FieldSelector::Numbers(first, Some(last)) if first == last => first.to_string(),
        FieldSelector::Numbers(first, Some(last)) => format!("{first}-{last}"),
        FieldSelector::Numbers(first, None) => format!("{first}-"),
        FieldSelector::Name(name) => format!("'{}'", escaped(name)),
    });
    let fields = match selectors {
        [FieldSelector::Name(_)] => "field",
        [selector] if selector.number().is_some() => "field",
        _ => "fields",
    };
    let lines = match split {
        FieldSplit::At(delimiter) => format!("lines split at {}", delimiter_name(delimiter)),
        FieldSplit::Csv(csv @ Csv { delimiter: b',', .. }) => format!("CSV lines{}", escape_name(*csv)),
        FieldSplit::Csv(csv) => format!("CSV lines split at {}{}", delimiter_name(&[csv.delimiter]), escape_name(*csv)),
    };
    format!("{fields} {} of {lines}", runs.collect::<Vec<_>>().join(","))
}

/// Returns nothing for CSV by RFC 4180.
fn escape_name(csv: Csv) -> String {
    csv.escape.map_or_else(String::new, |escape| format!(" with the escape {}", delimiter_name(&[escape])))
}

fn delimiter_name(delimiter: &[u8]) -> String {
    match delimiter {
        b"\t" => "tab".to_owned(),
        b"\0" => "NUL".to_owned(),
        other => format!("'{}'", escaped(&String::from_utf8_lossy(other))),
    }
}

/// Escapes each control character, quote and backslash, so that the text is on one line.
fn escaped(text: &str) -> String {
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
