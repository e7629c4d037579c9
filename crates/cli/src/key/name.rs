//! Names of keys, which filter files store.

use crate::key::fields::{Csv, FieldSelector, FieldSplit};
use crate::key::{KeyPart, KeyRule, Named, PartNumbers};
use bloomline::KeyHasher;
use bloomline_keys::{escaped, name_of_columns, shortened};

impl KeyRule {
    /// Returns a name that identifies the rule. It has no control characters, and a long name is shortened and ends with its hash.
    pub fn name(&self) -> String {
        let mut name = match &self.part {
            KeyPart::Line => "line".to_owned(),
            KeyPart::Record(csv) => format!("record of CSV lines{}", escape_name(*csv)),
            KeyPart::Row(columns) => match &columns[..] {
                [column] => format!("row of {}", name_of_columns(&[column])),
                columns => name_of_columns(&columns.iter().map(|column| &**column).collect::<Vec<_>>()),
            },
            KeyPart::Fields { selectors, split } => match names(selectors) {
                Some(names) => name_of_columns(&names),
                None => fields_name(selectors, split),
            },
            KeyPart::NamedFields { fields, .. } => name_of_columns(&names_of(fields)),
            KeyPart::Json(values) => match &values[..] {
                [value] if value.at.tokens().is_empty() => "value of JSON lines".to_owned(),
                values => name_of_columns(&names_of(values)),
            },
        };
        // A column has the same values whatever ends its lines, and a number is one in whatever text.
        let is_named = self.is_named();
        if self.crlf && !is_named {
            name += ", without CR";
        }
        let steps = [(&self.trim, "trimmed"), (&self.url, "normal form of a URL"), (&self.ignore_case, "case ignored")];
        let kinds = [(&self.number, "as a number"), (&self.time, "as a time")];
        for (parts, step) in steps.into_iter().chain(kinds.into_iter().filter(|_| !is_named)) {
            let numbers = |parts: &[usize]| parts.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            name += &match parts {
                PartNumbers::None => String::new(),
                PartNumbers::All => format!(", {step}"),
                PartNumbers::Some(parts) => format!(", {step} in part {}", numbers(parts)),
            };
        }
        shortened(name, |name| KeyHasher::new(0).bytes(name))
    }

    /// True if the key has columns that other formats have, too.
    fn is_named(&self) -> bool {
        match &self.part {
            KeyPart::Row(_) | KeyPart::NamedFields { .. } | KeyPart::Json(_) => true,
            KeyPart::Fields { selectors, .. } => names(selectors).is_some(),
            KeyPart::Line | KeyPart::Record(_) => false,
        }
    }
}

/// Returns the names of fields that are all given by name.
pub fn names(selectors: &[FieldSelector]) -> Option<Vec<&str>> {
    fn name(selector: &FieldSelector) -> Option<&str> {
        if let FieldSelector::Name(name) = selector { Some(name) } else { None }
    }
    selectors.iter().map(name).collect()
}

fn names_of<T>(named: &[Named<T>]) -> Vec<&str> {
    named.iter().map(|named| &*named.name).collect()
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
