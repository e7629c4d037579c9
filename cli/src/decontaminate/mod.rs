//! Decontamination: the grams of tests and other texts that a corpus must not contain, and the documents that contain them.

use crate::documents::rule::DocumentRule;
use crate::error::Error;
use crate::external_sort::ExternalSort;
use crate::groups::ids::Ids;
use crate::input::lines::Lines;
use bloomline::KeyHasher;
use bloomline_text::{Rules, Texts, Unit, words};
use serde_json::Value;
use std::collections::HashMap;
use std::env;
use std::fmt::Write;
use std::io;
use std::mem;

/// The number of low bits of a document's place that hold the line number. The bits above hold the number of the input.
const LINE: u32 = 40;

/// The items of tests, and the matches.
pub struct Decontaminator {
    rule: DocumentRule,
    hasher: KeyHasher,
    items: ItemIds,
    /// Each gram of the items with the number of an item that has it, sorted; and whether a document has the gram.
    grams: Vec<(u64, u32)>,
    found: Vec<bool>,
    /// The inputs that are searched, once all items are indexed.
    inputs: Vec<String>,
    /// The item, the place of the document, its number and the gram that both have.
    hits: ExternalSort<4>,
    /// The ids of the documents.
    ids: Option<Ids>,
    documents: u64,
}

/// The items, by number.
struct ItemIds {
    names: Vec<String>,
    /// The input and the line of each item, and true if it has fewer words than a gram.
    places: Vec<(usize, u64, bool)>,
    texts: Ids,
    ids: Option<Ids>,
}

impl Decontaminator {
    /// Creates an index without items, for inputs with these members of an object as names. With `reported`, items and documents
    /// have ids.
    pub fn new(rule: DocumentRule, hasher: KeyHasher, names: Vec<String>, reported: bool) -> Result<Self, Error> {
        let ids = || reported.then(Ids::new).transpose();
        let items = || Ok(ItemIds { names, places: Vec::new(), texts: Ids::new()?, ids: ids()? });
        let (grams, found, hits) = (Vec::new(), Vec::new(), ExternalSort::new(&env::temp_dir()));
        let (items, ids) = items().and_then(|items| Ok((items, ids()?))).map_err(Error::groups)?;
        Ok(Self { rule, hasher, items, grams, found, inputs: Vec::new(), hits, ids, documents: 0 })
    }

    /// Indexes the documents of an input as items. `before` lines of the input precede them.
    pub fn index(&mut self, input: usize, before: u64, lines: &Lines) -> Result<(), Error> {
        lines
            .each_document(|line, document, text, id| {
                let item = u32::try_from(self.items.places.len()).map_err(io::Error::other)?;
                self.grams.extend(document.hashes().flatten().map(|hash| (*hash, item)));
                let short = is_short(&self.rule.text, document.verdicts().map(|unit| &text[unit.range]));
                self.items.places.push((input, number(before, line), short));
                // JSON puts the text on one line.
                self.items.texts.push(&Value::from(text).to_string())?;
                self.items.ids.as_mut().map_or(Ok(()), |ids| ids.push(id))
            })
            .map_err(Error::groups)
    }

    /// Ends the items, and starts the search in inputs with these members as names.
    pub fn begin_search(&mut self, names: Vec<String>) {
        self.grams.sort_unstable();
        self.grams.dedup();
        self.found = vec![false; self.grams.len()];
        self.inputs = names;
    }

    /// Records the matches in the documents of an input. `before` lines of the input precede them.
    pub fn search(&mut self, input: usize, before: u64, lines: &Lines) -> Result<(), Error> {
        lines
            .each_document(|line, document, _, id| {
                if document.found() == 0 {
                    return Ok(());
                }
                let place = (input as u64) << LINE | number(before, line);
                let units = document.verdicts().zip(document.hashes()).filter(|(unit, _)| unit.found > 0);
                let mut hashes: Vec<u64> = units.flat_map(|(_, hashes)| hashes).copied().collect();
                // A repeated gram is reported once.
                hashes.sort_unstable();
                hashes.dedup();
                for hash in hashes {
                    let first = self.grams.partition_point(|(gram, _)| *gram < hash);
                    let items = self.grams.iter().enumerate().skip(first).take_while(|(_, gram)| gram.0 == hash);
                    for (i, (_, item)) in items {
                        self.found[i] = true;
                        let hit = [u64::from(*item), place, self.documents, hash];
                        self.hits.push(hit).map_err(io::Error::other)?;
                    }
                }
                self.documents += 1;
                self.ids.as_mut().map_or(Ok(()), |ids| ids.push(id))
            })
            .map_err(Error::groups)
    }

    /// Returns a warning if nothing can be found because no item has a gram.
    pub fn warning(&self) -> Option<String> {
        let Rules { ngram, min_ngram, .. } = self.rule.text;
        let least =
            if ngram > 0 { format!(" of {min_ngram} words or more, as --min-ngram asks") } else { String::new() };
        let read = self.items.places.len();
        let warning =
            || format!("the files of --against have no text{least}, so nothing is removed; texts read: {read}");
        self.grams.is_empty().then(warning)
    }

    /// Clears `found` unless an item has the gram. Returns the number of grams found.
    pub fn confirm(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        let known = |hash: &u64| self.grams.binary_search_by_key(hash, |(gram, _)| *gram).is_ok();
        hashes.iter().zip(&mut *found).for_each(|(hash, found)| *found = *found && known(hash));
        found.iter().filter(|found| **found).count()
    }

    /// Reports each item in order, as a line of JSON, with the documents that share grams with it.
    pub fn report(&mut self, write: &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<(), Error> {
        let Self { rule, hasher, items, grams, found, inputs, hits, ids, .. } = self;
        let mut counts = vec![(0u64, 0u64); items.places.len()];
        for ((_, item), found) in grams.iter().zip(&*found) {
            let (all, had) = &mut counts[*item as usize];
            (*all, *had) = (*all + 1, *had + u64::from(*found));
        }
        let mut item_ids = items.ids.as_mut().map(Ids::read::<1>).transpose().map_err(Error::groups)?;
        let mut document_ids = ids.as_mut().map(Ids::read::<1>).transpose().map_err(Error::groups)?;
        let [mut texts] = items.texts.read().map_err(Error::groups)?;
        let mut hits = mem::replace(hits, ExternalSort::new(&env::temp_dir())).sorted()?.peekable();
        for (item, (&(input, line, short), (all, had))) in (0..).zip(items.places.iter().zip(counts)) {
            let id = item_ids.as_mut().map(|[ids]| ids.get(item)).transpose().map_err(Error::groups)?;
            let mut reported = format!("{{{},\"grams\":{all},\"found\":{had}", place(&items.names[input], line, id));
            reported += if short { ",\"short\":true,\"documents\":[" } else { ",\"documents\":[" };
            write(&reported)?;
            let of_grams = match had {
                0 => HashMap::new(),
                _ => {
                    let text = texts.get(item).map_err(Error::groups)?;
                    let text = serde_json::from_str::<String>(text).map_err(|error| Error::groups(error.into()))?;
                    gram_texts(&rule.text, hasher, &text)
                }
            };
            let is_of_item = |hit: &Result<[u64; 4], Error>| hit.as_ref().map_or(true, |hit| hit[0] == item);
            let mut comma = "";
            while let Some(hit) = hits.next_if(is_of_item) {
                let [_, at, document, first] = hit?;
                let mut shared = vec![first];
                while let Some(hit) = hits.next_if(|hit| hit.as_ref().is_ok_and(|hit| hit[..3] == [item, at, document]))
                {
                    shared.push(hit?[3]);
                }
                shared.dedup();
                let id = document_ids.as_mut().map(|[ids]| ids.get(document)).transpose().map_err(Error::groups)?;
                let input = &inputs[(at >> LINE) as usize];
                let found = shared.len();
                // In the order of the item.
                let mut shared: Vec<_> = shared.iter().filter_map(|gram| of_grams.get(gram)).collect();
                shared.sort_unstable();
                let grams = Value::from_iter(shared.into_iter().map(|(_, text)| &**text));
                let line = at & ((1 << LINE) - 1);
                write(&format!("{comma}{{{},\"found\":{found},\"grams\":{grams}}}", place(input, line, id)))?;
                comma = ",";
            }
            write("]}\n")?;
        }
        Ok(())
    }
}

/// Returns the number of a line of a chunk, from 1.
fn number(before: u64, line: usize) -> u64 {
    before + line as u64 + 1
}

/// Returns the members that locate a line.
fn place(file: &str, line: u64, id: Option<&str>) -> String {
    let mut reported = format!("{file},\"line\":{line}");
    if let Some(id) = id {
        write!(reported, ",\"id\":{id}").expect("memory takes all");
    }
    reported
}

/// True if no unit has as many words as a gram, but at least one unit has some.
fn is_short<'a>(rules: &Rules, units: impl Iterator<Item = &'a str>) -> bool {
    let form = word_form(rules);
    let count = |unit: &str| words(&form.apply(unit)).take(rules.ngram).count();
    rules.ngram > 0 && units.map(count).all(|count| count < rules.ngram)
}

/// Returns the form of words.
fn word_form(rules: &Rules) -> bloomline_text::Form {
    let mut form = rules.form;
    (form.space, form.crlf) = (false, false);
    form
}

/// Returns the text, normalized, and the position of each gram of an item.
fn gram_texts(rules: &Rules, hasher: &KeyHasher, text: &str) -> HashMap<u64, (usize, String)> {
    let mut texts = Texts::default();
    texts.push(rules, hasher, text.as_bytes());
    let document = texts.document(0);
    let mut grams = HashMap::new();
    for (unit, hashes) in document.verdicts().zip(document.hashes()) {
        let unit = &text[unit.range];
        let unit = if rules.ngram == 0 {
            // The newline before a paragraph is not part of it.
            let paragraph = Some(unit).filter(|_| rules.unit == Unit::Paragraph);
            paragraph.and_then(|unit| unit.strip_prefix('\n')).unwrap_or(unit).to_owned()
        } else {
            let formed = word_form(rules).apply(unit);
            // Symbols are replaced by spaces.
            if rules.form.symbols { formed.split_whitespace().collect::<Vec<_>>().join(" ") } else { formed }
        };
        let ends: Vec<(usize, usize)> = words(&unit)
            .map(|word| {
                let start = word.as_ptr().addr() - unit.as_ptr().addr();
                (start, start + word.len())
            })
            .collect();
        for (i, hash) in hashes.iter().enumerate() {
            let gram = match rules.ngram {
                0 => &unit[..],
                ngram => &unit[ends[i].0..ends[ends.len().min(i + ngram) - 1].1],
            };
            let number = grams.len();
            grams.entry(*hash).or_insert_with(|| (number, gram.to_owned()));
        }
    }
    grams
}
