//! Decisions about the lines that are not unique.
//!
//! The input is the members of all groups, sorted by group and ordinal. One member of each group is chosen, and the decision about
//! each member is written to a file, sorted by ordinal. A line without a decision is kept.

use crate::steps::groups::ordinals::{Ordinals, SecondOrdinals};
use crate::steps::groups::score::{Kind, text_of};
use crate::steps::groups::string_order::byte_order_misleads;
use crate::system::error::Error;
use crate::system::external_sort::ExternalSort;
use crate::system::u64_file::{U64File, U64Reader};
use crate::terminal::phase::Phase;
use std::env;
use std::io;
use std::mem;

/// The maximum number of ordinals of a group in memory.
const IN_MEMORY: usize = 1 << 16;

/// A line with its group, and one word of its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Equal for similar lines.
    pub group: u128,
    pub ordinal: u64,
    /// True if the filter had the line before the run. Only the first member of a group counts.
    pub known: bool,
    /// The index of the word in the score. The least score of a group is the best, and ties go to the first.
    pub part: u64,
    pub word: u64,
}

impl GroupMember {
    /// Returns the words that are sorted.
    pub fn packed(&self) -> [u64; 5] {
        let Self { group, ordinal, known, part, word } = *self;
        [(group >> u64::BITS) as u64, group as u64, ordinal << 1 | u64::from(known), part, word]
    }

    pub fn unpacked([high, low, ordinal, part, word]: [u64; 5]) -> Self {
        let group = u128::from(high) << u64::BITS | u128::from(low);
        Self { group, ordinal: ordinal >> 1, known: ordinal & 1 > 0, part, word }
    }
}

/// A decision about the line at an ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub ordinal: u64,
    pub verdict: LineVerdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineVerdict {
    /// The best of `count` lines, which is kept.
    Kept { count: u64 },
    /// Removed in favour of the line at this ordinal, or of one from an earlier run.
    Removed { survivor: Option<u64> },
    /// A line without a key. The code of the reason is below [`CODES`].
    Skipped(u8),
}

/// The number of codes of the reasons why a line has no key.
pub const CODES: u8 = 16;

/// A decision as it is sorted and stored: its ordinal, and two numbers.
type DecisionWords = [u64; 3];

/// The first number of a line without a survivor in this run. The second number is then the code of a reason, or `NO_ORDINAL`.
const NO_ORDINAL: u64 = u64::MAX;

impl Decision {
    /// True if the line is removed in favour of another.
    pub fn is_removed(&self) -> bool {
        matches!(self.verdict, LineVerdict::Removed { .. })
    }

    fn to_words(self) -> DecisionWords {
        match self.verdict {
            LineVerdict::Kept { count } => [self.ordinal, self.ordinal, count],
            LineVerdict::Removed { survivor: Some(survivor) } => [self.ordinal, survivor, 0],
            LineVerdict::Removed { survivor: None } => [self.ordinal, NO_ORDINAL, NO_ORDINAL],
            LineVerdict::Skipped(code) => [self.ordinal, NO_ORDINAL, code.into()],
        }
    }

    fn from_words([ordinal, survivor, number]: DecisionWords) -> Self {
        let verdict = match survivor {
            NO_ORDINAL => u8::try_from(number).map_or(LineVerdict::Removed { survivor: None }, LineVerdict::Skipped),
            _ if survivor == ordinal => LineVerdict::Kept { count: number },
            _ => LineVerdict::Removed { survivor: Some(survivor) },
        };
        Self { ordinal, verdict }
    }
}

/// The numbers of groups, by the values of their members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupStats {
    /// Groups of two or more.
    pub groups: u64,
    /// The number of groups without a line of an earlier run, in which a member was chosen.
    pub chosen: u64,
    /// Groups among `chosen` without a value to compare, and with both numbers and texts.
    pub without_value: u64,
    pub mixed: u64,
    /// Two strings of one of these groups, the better first, whose byte order differs from the order of the dates or numbers in
    /// them.
    pub misled: Option<[Vec<u8>; 2]>,
}

/// The group whose members are being read.
#[derive(Default)]
struct CurrentGroup {
    first: Option<GroupMember>,
    /// The ordinals in memory, and those before them on disk.
    ordinals: Vec<u64>,
    earlier: Option<U64File>,
    /// The ordinal and the score of the best member before the last.
    best: u64,
    best_score: Vec<u64>,
    /// The score of the last member so far.
    score: Vec<u64>,
    /// True for each kind of value that a member has.
    kinds: [bool; 2],
    /// The first two strings whose byte order misleads, the better first.
    misled: Option<[Vec<u8>; 2]>,
}

impl CurrentGroup {
    /// Starts another group with this member.
    fn begin(&mut self, first: GroupMember) {
        self.first = Some(first);
        self.ordinals.clear();
        self.earlier = None;
        self.best_score.clear();
        self.kinds = [false; 2];
        self.misled = None;
    }

    /// Adds a word of a member. Memory holds up to `in_memory` ordinals.
    fn add(&mut self, member: GroupMember, in_memory: usize) -> io::Result<()> {
        if member.part == 0 {
            self.compare();
            if self.ordinals.len() == in_memory {
                let earlier = match &mut self.earlier {
                    Some(earlier) => earlier,
                    none => none.insert(U64File::new()?),
                };
                self.ordinals.drain(..).try_for_each(|ordinal| earlier.push(ordinal))?;
            }
            self.ordinals.push(member.ordinal);
            if let Some(kind) = Kind::from_first_word(member.word) {
                self.kinds[kind as usize] = true;
            }
        }
        self.score.push(member.word);
        Ok(())
    }

    /// Compares the last member, whose score is complete, with the best one before it.
    fn compare(&mut self) {
        if let Some(last) = self.ordinals.last()
            && (self.best_score.is_empty() || self.score < self.best_score)
        {
            self.best = *last;
            mem::swap(&mut self.best_score, &mut self.score);
        }
        // Only compared strings are checked: a string that should have won is compared with the one that won.
        if self.misled.is_none()
            && let Some((better, worse)) = text_of(&self.best_score).zip(text_of(&self.score))
            && byte_order_misleads(&better, &worse)
        {
            self.misled = Some([better, worse]);
        }
        self.score.clear();
    }
}

/// Calls `decide` with the decision about each of the members, which are sorted by group, ordinal and word. The ordinals of a large
/// group are on disk until the group is complete. Memory holds two scores.
pub fn choose(
    members: impl IntoIterator<Item = Result<GroupMember, Error>>,
    decide: impl FnMut(Decision) -> Result<(), Error>,
) -> Result<GroupStats, Error> {
    choose_within(members, IN_MEMORY, decide)
}

fn choose_within(
    members: impl IntoIterator<Item = Result<GroupMember, Error>>,
    in_memory: usize,
    mut decide: impl FnMut(Decision) -> Result<(), Error>,
) -> Result<GroupStats, Error> {
    let (mut group, mut stats) = (CurrentGroup::default(), GroupStats::default());
    let mut end = |group: &mut CurrentGroup| {
        group.compare();
        let Some(GroupMember { known, .. }) = group.first else { return Ok(()) };
        let count = group.earlier.as_ref().map_or(0, U64File::count) + group.ordinals.len() as u64;
        if count > 1 {
            stats.groups += 1;
            let chosen = u64::from(!known);
            stats.chosen += chosen;
            stats.without_value += if group.kinds == [false; 2] { chosen } else { 0 };
            stats.mixed += if group.kinds == [true; 2] { chosen } else { 0 };
            stats.misled = stats.misled.take().or_else(|| group.misled.take().filter(|_| !known));
        }
        let earlier = group.earlier.as_mut().map(U64File::read).transpose().map_err(Error::groups)?;
        earlier.into_iter().flatten().chain(group.ordinals.drain(..).map(Ok)).try_for_each(|ordinal| {
            let ordinal = ordinal.map_err(Error::groups)?;
            let verdict = match (known, count) {
                (true, _) => LineVerdict::Removed { survivor: None },
                (false, 1) => return Ok(()),
                _ if ordinal == group.best => LineVerdict::Kept { count },
                _ => LineVerdict::Removed { survivor: Some(group.best) },
            };
            decide(Decision { ordinal, verdict })
        })
    };
    for member in members {
        let member = member?;
        if group.first.is_none_or(|first| first.group != member.group) {
            end(&mut group)?;
            group.begin(member);
        }
        group.add(member, in_memory).map_err(Error::groups)?;
    }
    end(&mut group)?;
    Ok(stats)
}

/// A sorter of decisions that are added in any order.
pub struct DecisionSorter(ExternalSort<3>);

impl DecisionSorter {
    pub fn new() -> Self {
        Self(ExternalSort::new(&env::temp_dir()))
    }

    pub fn push(&mut self, decision: Decision) -> Result<(), Error> {
        self.0.push(decision.to_words())
    }

    /// Returns the decisions about lines that the last pass reads, by ordinal. Calls `visit` with every decision, in the order of
    /// ordinals. `phase` gets their number.
    pub fn finish(
        self,
        ordinals: Ordinals,
        print: PrintedLines,
        phase: impl FnOnce(u64) -> Phase,
        mut visit: impl FnMut(Decision) -> Result<(), Error>,
    ) -> Result<Decisions, Error> {
        let mut words = U64File::new().map_err(Error::groups)?;
        let first_own = ordinals.first_own();
        let decisions = self.0.sorted()?;
        for decision in phase(decisions.count).count(decisions) {
            let decision = decision?;
            visit(Decision::from_words(decision))?;
            if decision[0] < first_own {
                continue;
            }
            decision.iter().try_for_each(|number| words.push(*number)).map_err(Error::groups)?;
        }
        let reader = words.read().map_err(Error::groups)?;
        let mut decisions = Decisions { reader, next: None, second: SecondOrdinals::without_earlier(ordinals), print };
        decisions.read().map_err(Error::groups)?;
        Ok(decisions)
    }
}

/// The lines that are printed, and their counts.
#[derive(Clone, Copy)]
pub struct PrintedLines {
    pub occurrences: Occurrences,
    /// True if the number of occurrences is printed.
    pub counted: bool,
}

/// The distinct lines that are selected.
#[derive(Clone, Copy, Debug)]
pub enum Occurrences {
    All,
    Repeated,
    Unique,
}

impl Occurrences {
    /// True if a line with `count` occurrences is selected.
    pub fn selects(self, count: u64) -> bool {
        match self {
            Self::All => true,
            Self::Repeated => count > 1,
            Self::Unique => count == 1,
        }
    }
}

/// The decisions about the lines of all inputs, which are read again in the same order.
pub struct Decisions {
    reader: U64Reader,
    next: Option<Decision>,
    second: SecondOrdinals,
    pub print: PrintedLines,
}

impl Decisions {
    /// Reads the next lines of an input. Calls `found` with the number of each line that has a decision.
    pub fn take(
        &mut self,
        input: usize,
        header: bool,
        lines: usize,
        mut found: impl FnMut(usize, LineVerdict),
    ) -> io::Result<()> {
        let first = self.second.take(input, header, lines);
        while let Some(Decision { ordinal, verdict }) = self.next.filter(|next| next.ordinal < first + lines as u64) {
            found((ordinal - first) as usize, verdict);
            self.read()?;
        }
        Ok(())
    }

    /// True if the number of lines was the same again.
    pub fn is_done(&self) -> bool {
        self.second.is_done()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut next = || self.reader.next().transpose();
        self.next = match (next()?, next()?, next()?) {
            (Some(ordinal), Some(survivor), Some(number)) => Some(Decision::from_words([ordinal, survivor, number])),
            _ => None,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::groups::score::{self, NONE};
    use proptest::prelude::*;
    use std::path::Path;

    /// The group of a line, the value that is compared, and whether the filter contained the line before the run.
    type GroupedKey = (u8, Option<(bool, String)>, bool);
    type Line = Result<GroupedKey, u8>;

    fn line() -> impl Strategy<Value = Line> {
        let value =
            prop_oneof![1 => Just(None), 6 => (prop::bool::weighted(0.8), "[ab]{0,2}(a{7}){0,2}").prop_map(Some)];
        prop_oneof![8 => (0..12u8, value, prop::bool::weighted(0.2)).prop_map(Ok), 1 => (0..CODES).prop_map(Err)]
    }

    fn words(value: Option<&(bool, String)>) -> Vec<u64> {
        let mut words = Vec::new();
        match value {
            Some((text, value)) => {
                let kind = if *text { Kind::Text } else { Kind::Number };
                score::push(kind, value.as_bytes(), false, &mut words);
            }
            None => words.push(NONE),
        }
        words
    }

    fn members(lines: &[Line], group: u8) -> Vec<usize> {
        (0..lines.len()).filter(|&i| matches!(lines[i], Ok((other, ..)) if other == group)).collect()
    }

    /// Returns the decisions as the help describes them. A unique line has none.
    fn model(lines: &[Line]) -> Vec<Option<LineVerdict>> {
        let verdict = |ordinal: usize| {
            let (group, ..) = match &lines[ordinal] {
                Ok(line) => line,
                Err(skip) => return Some(LineVerdict::Skipped(*skip)),
            };
            let all = members(lines, *group);
            let line = |i: usize| lines[i].as_ref().unwrap();
            if line(all[0]).2 {
                return Some(LineVerdict::Removed { survivor: None });
            }
            // The first line with the best value is kept. Lines without a value are the worst.
            let best = *all.iter().min_by_key(|&&i| (line(i).1.is_none(), &line(i).1)).unwrap();
            match all.len() {
                1 => None,
                count if best == ordinal => Some(LineVerdict::Kept { count: count as u64 }),
                _ => Some(LineVerdict::Removed { survivor: Some(best as u64) }),
            }
        };
        (0..lines.len()).map(verdict).collect()
    }

    proptest! {
        #[test]
        fn decisions_match_the_model(
            lines in prop::collection::vec(line(), 0..80),
            batch in 1..20usize,
            in_memory in 1..9usize,
        ) {
            let mut sorter = ExternalSort::new(&env::temp_dir());
            let mut decision_sorter = DecisionSorter::new();
            for (line, ordinal) in lines.iter().zip(0..) {
                match line {
                    Ok((group, value, known)) => {
                        let (group, known) = (u128::from(*group) << 100 | u128::from(*group), *known);
                        for (word, part) in words(value.as_ref()).into_iter().zip(0..) {
                            let member = GroupMember { group, ordinal, known, part, word };
                            prop_assert_eq!(GroupMember::unpacked(member.packed()), member);
                            sorter.push(member.packed()).unwrap();
                        }
                    }
                    Err(skip) => decision_sorter.push(Decision { ordinal, verdict: LineVerdict::Skipped(*skip) }).unwrap(),
                }
            }
            let sorted = sorter.sorted().unwrap().map(|member| member.map(GroupMember::unpacked));
            let stats = choose_within(sorted, in_memory, |decision| decision_sorter.push(decision)).unwrap();
            let mut ordinals = Ordinals::new([Path::new("a")], 0);
            ordinals.take(0, false, lines.len());
            let mut reported = Vec::new();
            let print = PrintedLines { occurrences: Occurrences::All, counted: false };
            let mut decisions = decision_sorter.finish(ordinals, print, |steps| Phase::new("deciding", steps, false), |decision| { reported.push(decision); Ok(()) }).unwrap();
            let expected = model(&lines);
            let mut found = vec![None; lines.len()];
            for first in (0..lines.len()).step_by(batch) {
                prop_assert!(!decisions.is_done());
                let these = batch.min(lines.len() - first);
                decisions.take(0, false, these, |line, verdict| found[first + line] = Some(verdict)).unwrap();
            }
            prop_assert!(decisions.is_done() || lines.is_empty());
            prop_assert_eq!(&found, &expected);
            let expected: Vec<Decision> = expected.iter().zip(0..).filter_map(|(verdict, ordinal)| Some(Decision { ordinal, verdict: (*verdict)? })).collect();
            prop_assert_eq!(reported, expected);
            let groups: Vec<Vec<&GroupedKey>> = (0..12)
                .map(|group| members(&lines, group).into_iter().map(|i| lines[i].as_ref().unwrap()).collect())
                .filter(|group: &Vec<_>| group.len() > 1)
                .collect();
            let chosen = groups.iter().filter(|group| !group[0].2);
            let has = |group: &[&GroupedKey], text| group.iter().any(|(_, value, _)| value.as_ref().is_some_and(|value| value.0 == text));
            prop_assert_eq!(stats, GroupStats {
                groups: groups.len() as u64,
                chosen: chosen.clone().count() as u64,
                without_value: chosen.clone().filter(|group| !has(group, true) && !has(group, false)).count() as u64,
                mixed: chosen.filter(|group| has(group, true) && has(group, false)).count() as u64,
                misled: None,
            });
        }
    }
}
