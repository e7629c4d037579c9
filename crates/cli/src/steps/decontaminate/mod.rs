//! Decontamination: the grams of test sets, which a corpus must not contain, and the documents that contain them.

mod context;
mod grams;
pub mod index;
mod sample;
pub mod search;

use crate::key::json::Pointer;
use crate::read::inputs::Input;
use crate::run::lines::Lines;
use crate::steps::decontaminate::context::{context_of, contexts};
use crate::steps::decontaminate::grams::TestGrams;
use crate::steps::documents::column::DocumentColumn;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::groups::ids::Ids;
use crate::system::error::Error;
use crate::system::external_sort::ExternalSort;
use bloomline::KeyHasher;
use bloomline_text::{Phrases, PhrasesBuilder, Rules, Texts, Unit, words};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::env;
use std::fmt::Write;
use std::io;
use std::mem;
use std::sync::Arc;

/// The number of low bits of a document's location that hold the line number. The bits above hold the number of the input.
const LINE_BITS: u32 = 40;

/// An index of the items (documents of the test sets), and the matches with them.
pub struct Decontaminator {
    rule: DocumentRule,
    hasher: KeyHasher,
    items: ItemIds,
    grams: TestGrams,
    /// The short items, which are found within texts: while items are indexed, and then.
    builder: Option<PhrasesBuilder>,
    phrases: Option<Arc<Phrases>>,
    /// The name of an input that cannot be sampled.
    unsampled: Option<String>,
    /// True for each gram that a document has.
    found: Vec<bool>,
    /// The inputs that are searched, once all items are indexed.
    inputs: Vec<String>,
    /// The number of the item, the location and the number of the document, and the gram that both have.
    hits: ExternalSort<4>,
    /// The ids of the documents, and the places of overlaps in them.
    ids: Option<Ids>,
    contexts: Option<Ids>,
    documents: u64,
}

/// The items, by number.
struct ItemIds {
    names: Vec<String>,
    /// The input and the line of each item. True if the item has fewer words than a gram.
    locations: Vec<(usize, u64, bool)>,
    texts: Ids,
    ids: Option<Ids>,
    /// True if an item has an answer.
    answered: bool,
}

impl Decontaminator {
    /// Creates an empty index. `names` are the JSON members that name the inputs of the items. With `with_ids`, the ids of items
    /// and documents are stored, and `with_contexts` what a report has of documents.
    pub fn new(
        rule: DocumentRule,
        hasher: KeyHasher,
        names: Vec<String>,
        with_ids: bool,
        with_contexts: bool,
    ) -> Result<Self, Error> {
        let new_ids = || with_ids.then(Ids::new).transpose().map_err(Error::groups);
        let builder = (rule.text.ngram > 0).then(|| PhrasesBuilder::new(rule.text.clone(), hasher.clone()));
        let contexts = (with_contexts && rule.text.ngram > 0).then(Ids::new).transpose().map_err(Error::groups)?;
        let texts = Ids::new().map_err(Error::groups)?;
        let items = ItemIds { names, locations: Vec::new(), texts, ids: new_ids()?, answered: false };
        Ok(Self {
            rule,
            hasher,
            items,
            grams: TestGrams::default(),
            builder,
            phrases: None,
            unsampled: None,
            found: Vec::new(),
            inputs: Vec::new(),
            hits: ExternalSort::new(&env::temp_dir()),
            ids: new_ids()?,
            contexts,
            documents: 0,
        })
    }

    /// Indexes the documents of an input as items. `lines_before` lines of the input precede them.
    pub fn index(&mut self, input: usize, lines_before: u64, lines: &Lines) -> Result<(), Error> {
        DocumentColumn::each(lines, |line, document, text, id, answer| {
            let item = u32::try_from(self.items.locations.len()).map_err(io::Error::other)?;
            for (unit, hashes) in document.verdicts().zip(document.hashes()) {
                match self.builder.as_mut().and_then(|builder| builder.push(&text[unit.range], answer)) {
                    Some(key) => self.grams.0.push((key, item)),
                    None => self.grams.0.extend(hashes.iter().map(|hash| (*hash, item))),
                }
            }
            let short = is_short(&self.rule.text, document.verdicts().map(|unit| &text[unit.range]));
            self.items.locations.push((input, line_number(lines_before, line), short));
            // JSON puts the text on one line.
            self.items.texts.push(&json!([text, answer]).to_string())?;
            self.items.answered |= answer.is_some();
            push_id(&mut self.items.ids, id)
        })
        .map_err(Error::groups)
    }

    /// Completes the index, samples the inputs to be searched, and starts the search. `names` are the JSON members that name these
    /// inputs, and `end` ends their lines. Returns the hashes of all grams.
    pub fn begin_search(&mut self, inputs: &[Input], names: Vec<String>, end: u8) -> Result<Vec<u64>, Error> {
        self.grams.sort();
        self.found = vec![false; self.grams.0.len()];
        self.inputs = names;
        let phrases = self.builder.take().map(PhrasesBuilder::build);
        if let Some(phrases) = phrases.filter(|phrases| !phrases.is_empty()) {
            let (phrases, unsampled) = sample::learn(phrases, &self.rule, inputs, end)?;
            self.unsampled = unsampled;
            self.phrases = Some(Arc::new(phrases));
        }
        self.rule.phrases = self.phrases.clone();
        Ok(self.grams.0.iter().map(|(gram, _)| *gram).collect())
    }

    /// Returns the short items, if there are any.
    pub fn phrases(&self) -> Option<Arc<Phrases>> {
        self.phrases.clone()
    }

    /// Records the matches in the documents of an input. `lines_before` lines of the input precede them.
    pub fn search(&mut self, input: usize, lines_before: u64, lines: &Lines) -> Result<(), Error> {
        DocumentColumn::each(lines, |line, document, text, id, _| {
            if document.found() == 0 {
                return Ok(());
            }
            let location = (input as u64) << LINE_BITS | line_number(lines_before, line);
            let units = document.verdicts().zip(document.hashes()).filter(|(unit, _)| unit.found > 0);
            let mut hashes: Vec<u64> = units.flat_map(|(_, hashes)| hashes).copied().collect();
            // A repeated gram is reported once.
            hashes.sort_unstable();
            hashes.dedup();
            for hash in hashes {
                for (i, item) in self.grams.tests_of(hash) {
                    self.found[i] = true;
                    let hit = [u64::from(item), location, self.documents, hash];
                    self.hits.push(hit).map_err(io::Error::other)?;
                }
            }
            self.documents += 1;
            if let Some(all) = &mut self.contexts {
                all.push(&contexts(&self.rule, &self.grams, document, text))?;
            }
            push_id(&mut self.ids, id)
        })
        .map_err(Error::groups)
    }

    /// Returns warnings about tests that are not found, or less often. `answer` is the place of their answers, if it was given.
    pub fn warnings(&self, answer: Option<&Pointer>) -> impl Iterator<Item = String> {
        let unanswered = answer.filter(|_| !self.items.answered && !self.items.locations.is_empty()).map(|pointer| {
            let pointer = pointer.to_string();
            format!(
                "no text of --against has a string or number at {pointer:?}, so all are searched without their answers; check the value \
                 that --answer names"
            )
        });
        let unsampled = self.unsampled.iter().map(|input| {
            format!(
                "no sample of {input} can be read first, so a short test is found only if all its words are equal; name files to find \
                 changed copies, too"
            )
        });
        let common = self.phrases.iter().filter_map(|phrases| {
            let common = self.grams.0.iter().filter(|(gram, _)| phrases.is_common(*gram)).count();
            (common > 0).then(|| {
                format!(
                    "short tests that occur in more than 1 of 1000 documents of a sample, and so remove nothing: {common}; --report \
                     marks them as common"
                )
            })
        });
        self.no_grams_warning().into_iter().chain(unanswered).chain(unsampled).chain(common)
    }

    /// Returns a warning if nothing can be found because no item has a gram.
    fn no_grams_warning(&self) -> Option<String> {
        let Rules { ngram, min_ngram, .. } = self.rule.text;
        let at_least =
            if ngram > 0 { format!(" of {min_ngram} words or more, as --min-ngram asks") } else { String::new() };
        let texts = self.items.locations.len();
        let warning =
            || format!("the files of --against have no text{at_least}, so nothing is removed; texts read: {texts}");
        self.grams.0.is_empty().then(warning)
    }

    /// Returns true unless ids are stored, and neither the items nor the documents in the report have any.
    pub fn has_ids(&self) -> bool {
        let [items, documents] = [&self.items.ids, &self.ids].map(|ids| ids.as_ref().is_none_or(Ids::any));
        items || documents && self.documents > 0
    }

    /// Clears `found` unless an item has the gram. Returns the number of grams found.
    pub fn confirm(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        for (hash, found) in hashes.iter().zip(&mut *found) {
            *found = *found && self.grams.contains(*hash);
        }
        found.iter().filter(|found| **found).count()
    }

    /// Reports each item in order, as a line of JSON, with the documents that share grams with it.
    pub fn report(&mut self, write: &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<(), Error> {
        let Self { rule, hasher, items, grams, found, inputs, hits, ids, contexts, phrases, .. } = self;
        let mut counts = vec![(0u64, 0u64); items.locations.len()];
        let mut common = vec![false; items.locations.len()];
        for ((gram, item), is_found) in grams.0.iter().zip(&*found) {
            common[*item as usize] |= phrases.as_ref().is_some_and(|phrases| phrases.is_common(*gram));
            let (total, found) = &mut counts[*item as usize];
            *total += 1;
            *found += u64::from(*is_found);
        }
        let mut item_ids = items.ids.as_mut().map(Ids::read::<1>).transpose().map_err(Error::groups)?;
        let mut document_ids = ids.as_mut().map(Ids::read::<1>).transpose().map_err(Error::groups)?;
        let mut contexts = contexts.as_mut().map(Ids::read::<1>).transpose().map_err(Error::groups)?;
        let [mut texts] = items.texts.read().map_err(Error::groups)?;
        let mut hits = mem::replace(hits, ExternalSort::new(&env::temp_dir())).sorted()?.peekable();
        for (item, (&(input, line, short), (total, found))) in (0..).zip(items.locations.iter().zip(counts)) {
            let id = item_ids.as_mut().map(|[ids]| ids.get(item)).transpose().map_err(Error::groups)?;
            let mut reported =
                format!("{{{},\"grams\":{total},\"found\":{found}", location_members(&items.names[input], line, id));
            reported += if short { ",\"short\":true" } else { "" };
            reported += if common[item as usize] { ",\"common\":true" } else { "" };
            reported += ",\"documents\":[";
            write(&reported)?;
            let item_grams = match found {
                0 => HashMap::new(),
                _ => {
                    let text = texts.get(item).map_err(Error::groups)?;
                    let text: (String, Option<String>) =
                        serde_json::from_str(text).map_err(|error| Error::groups(error.into()))?;
                    gram_texts(&rule.text, hasher, &text.0, text.1.as_deref())
                }
            };
            let is_of_item = |hit: &Result<[u64; 4], Error>| hit.as_ref().map_or(true, |hit| hit[0] == item);
            let mut comma = "";
            while let Some(hit) = hits.next_if(is_of_item) {
                let [_, location, document, gram] = hit?;
                let mut shared = vec![gram];
                while let Some(hit) =
                    hits.next_if(|hit| hit.as_ref().is_ok_and(|hit| hit[..3] == [item, location, document]))
                {
                    shared.push(hit?[3]);
                }
                shared.dedup();
                let id = document_ids.as_mut().map(|[ids]| ids.get(document)).transpose().map_err(Error::groups)?;
                let input = &inputs[(location >> LINE_BITS) as usize];
                let count = shared.len();
                // In the order of their positions in the item.
                let mut shared: Vec<_> = shared.iter().filter_map(|gram| item_grams.get(gram)).collect();
                shared.sort_unstable();
                let grams = Value::from_iter(shared.into_iter().map(|(_, text)| &**text));
                let line = location & ((1 << LINE_BITS) - 1);
                let places =
                    contexts.as_mut().map(|[places]| places.get(document)).transpose().map_err(Error::groups)?;
                let context = places.and_then(|places| context_of(places, item));
                let context = context.map(|context| format!(",\"context\":{context}")).unwrap_or_default();
                write(&format!(
                    "{comma}{{{},\"found\":{count},\"grams\":{grams}{context}}}",
                    location_members(input, line, id)
                ))?;
                comma = ",";
            }
            write("]}\n")?;
        }
        Ok(())
    }
}

/// Adds an id, if ids are stored.
fn push_id(ids: &mut Option<Ids>, id: &str) -> io::Result<()> {
    match ids {
        Some(ids) => ids.push(id),
        None => Ok(()),
    }
}

/// Returns the number of a line of a chunk, from 1.
fn line_number(lines_before: u64, line: usize) -> u64 {
    lines_before + line as u64 + 1
}

/// Returns the JSON members that locate a line.
fn location_members(file: &str, line: u64, id: Option<&str>) -> String {
    let mut reported = format!("{file},\"line\":{line}");
    if let Some(id) = id {
        write!(reported, ",\"id\":{id}").expect("memory takes all");
    }
    reported
}

/// True if each unit has fewer words than a gram.
fn is_short<'a>(rules: &Rules, units: impl Iterator<Item = &'a str>) -> bool {
    let form = word_form(rules);
    let count = |unit: &str| words(&form.apply(unit)).take(rules.ngram).count();
    rules.ngram > 0 && units.map(count).all(|count| count < rules.ngram)
}

/// Returns the form in which words are found. It keeps spaces and line ends, which separate words.
fn word_form(rules: &Rules) -> bloomline_text::Form {
    let mut form = rules.form;
    form.space = false;
    form.crlf = false;
    form
}

/// Returns the normalized text of each gram of an item, and its position among the grams.
fn gram_texts(rules: &Rules, hasher: &KeyHasher, text: &str, answer: Option<&str>) -> HashMap<u64, (usize, String)> {
    let mut texts = Texts::default();
    texts.push(rules, hasher, text.as_bytes());
    let document = texts.document(0);
    let mut grams = HashMap::new();
    for (unit, hashes) in document.verdicts().zip(document.hashes()) {
        let unit = &text[unit.range];
        let key = (rules.ngram > 0).then(|| PhrasesBuilder::new(rules.clone(), hasher.clone()).push(unit, answer));
        let key = key.flatten();
        let unit = if rules.ngram == 0 {
            // The newline before a paragraph is not part of it.
            let paragraph = if rules.unit == Unit::Paragraph { unit.strip_prefix('\n') } else { None };
            paragraph.unwrap_or(unit).to_owned()
        } else {
            let normalized = word_form(rules).apply(unit);
            // Symbols are replaced by spaces.
            if rules.form.symbols { normalized.split_whitespace().collect::<Vec<_>>().join(" ") } else { normalized }
        };
        let word_ranges: Vec<(usize, usize)> = words(&unit)
            .map(|word| {
                let start = word.as_ptr().addr() - unit.as_ptr().addr();
                (start, start + word.len())
            })
            .collect();
        for (i, hash) in hashes.iter().enumerate() {
            let gram = match rules.ngram {
                0 => &unit[..],
                ngram => &unit[word_ranges[i].0..word_ranges[word_ranges.len().min(i + ngram) - 1].1],
            };
            let position = grams.len();
            grams.entry(key.unwrap_or(*hash)).or_insert_with(|| (position, gram.to_owned()));
        }
    }
    grams
}
