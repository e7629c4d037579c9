//! Decisions: what becomes of the lines that are not the only ones of their kind.
//!
//! Whatever finds groups gives their members, sorted by group and place. Of each group one is chosen, and what becomes of each member
//! goes into a file, sorted by place. A line without a decision stays.

use crate::error::Error;
use crate::groups::places::{Again, Places};
use crate::phase::Phase;
use crate::sort::Sorter;
use crate::word_file::{WordFile, WordReader};
use std::env;
use std::io;

/// The places of a group that memory holds.
const IN_MEMORY: usize = 1 << 16;

/// A line, and what it is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Equal for those that are alike.
    pub group: u128,
    pub place: u64,
    /// The least of a group is the best, and of equal ones the first.
    pub score: u64,
    /// Whether the filter had it before the run. It counts of the first of a group alone.
    pub known: bool,
}

impl Member {
    /// As it is sorted.
    pub fn packed(&self) -> [u64; 4] {
        let Self { group, place, score, known } = *self;
        [(group >> u64::BITS) as u64, group as u64, place << 1 | u64::from(known), score]
    }

    pub fn unpacked([high, low, place, score]: [u64; 4]) -> Self {
        let group = u128::from(high) << u64::BITS | u128::from(low);
        Self { group, place: place >> 1, score, known: place & 1 > 0 }
    }
}

/// What becomes of the line at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub place: u64,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the best of so many.
    Stays { count: u64 },
    /// The one at this place stays for it, or one of an earlier run.
    Goes { kept: Option<u64> },
    /// It has no key.
    Aside(Aside),
}

/// Why a line has no key, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside {
    /// It is blank, and no line.
    Blank,
    /// It should have a key. It goes, or stays.
    FaultGoes,
    FaultStays,
    /// It has a text without anything to compare.
    EmptyGoes,
    EmptyStays,
}

impl Aside {
    const ALL: [Self; 5] = [Self::Blank, Self::FaultGoes, Self::FaultStays, Self::EmptyGoes, Self::EmptyStays];

    /// The one with this number.
    pub fn of(number: u128) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// A decision as it is sorted and kept: its place, and two numbers.
type Kept = [u64; 3];

/// What stands in the first of the numbers for no place; the second is then the number of an `Aside`, or no such number.
const NO_PLACE: u64 = u64::MAX;

impl Decision {
    /// Whether another stays in its stead.
    pub fn goes(&self) -> bool {
        matches!(self.verdict, Verdict::Goes { .. })
    }

    fn kept(self) -> Kept {
        match self.verdict {
            Verdict::Stays { count } => [self.place, self.place, count],
            Verdict::Goes { kept: Some(kept) } => [self.place, kept, 0],
            Verdict::Goes { kept: None } => [self.place, NO_PLACE, NO_PLACE],
            Verdict::Aside(aside) => [self.place, NO_PLACE, aside as u64],
        }
    }

    fn of([place, kept, number]: Kept) -> Self {
        let verdict = match Aside::of(number.into()) {
            Some(aside) if kept == NO_PLACE => Verdict::Aside(aside),
            _ if kept == NO_PLACE => Verdict::Goes { kept: None },
            _ if kept == place => Verdict::Stays { count: number },
            _ => Verdict::Goes { kept: Some(kept) },
        };
        Self { place, verdict }
    }
}

/// Calls `decide` with what becomes of each of these members, which are sorted: group by group, and in a group by place. Returns how
/// many groups there are of two or more. The places of a large group are on disk until all of them are known.
pub fn choose(
    members: impl IntoIterator<Item = Result<Member, Error>>,
    decide: impl FnMut(Decision) -> Result<(), Error>,
) -> Result<u64, Error> {
    choose_within(members, IN_MEMORY, decide)
}

fn choose_within(
    members: impl IntoIterator<Item = Result<Member, Error>>,
    in_memory: usize,
    mut decide: impl FnMut(Decision) -> Result<(), Error>,
) -> Result<u64, Error> {
    let (mut group, mut places, mut groups) = (None::<Group>, Vec::new(), 0);
    let mut end = |group: Option<Group>, places: &mut Vec<u64>| {
        let Some(Group { first, best, mut earlier }) = group else { return Ok(()) };
        let count = earlier.as_ref().map_or(0, WordFile::count) + places.len() as u64;
        groups += u64::from(count > 1);
        let earlier = earlier.as_mut().map(WordFile::read).transpose().map_err(Error::groups)?;
        earlier.into_iter().flatten().chain(places.drain(..).map(Ok)).try_for_each(|place| {
            let place = place.map_err(Error::groups)?;
            let verdict = match (first.known, count) {
                (true, _) => Verdict::Goes { kept: None },
                (false, 1) => return Ok(()),
                _ if place == best.place => Verdict::Stays { count },
                _ => Verdict::Goes { kept: Some(best.place) },
            };
            decide(Decision { place, verdict })
        })
    };
    for member in members {
        let member = member?;
        match &mut group {
            Some(Group { first, best, earlier }) if first.group == member.group => {
                if member.score < best.score {
                    *best = member;
                }
                if places.len() == in_memory {
                    let earlier = match earlier {
                        Some(earlier) => earlier,
                        none => none.insert(WordFile::new().map_err(Error::groups)?),
                    };
                    places.drain(..).try_for_each(|place| earlier.push(place)).map_err(Error::groups)?;
                }
            }
            _ => {
                end(group.take(), &mut places)?;
                group = Some(Group { first: member, best: member, earlier: None });
            }
        }
        places.push(member.place);
    }
    end(group, &mut places)?;
    Ok(groups)
}

/// A group whose members are not all known.
struct Group {
    first: Member,
    best: Member,
    /// The places that memory had no room for.
    earlier: Option<WordFile>,
}

/// Takes decisions in any order.
pub struct Deciding(Sorter<3>);

impl Deciding {
    /// None so far.
    pub fn new() -> Self {
        Self(Sorter::new(&env::temp_dir()))
    }

    pub fn push(&mut self, decision: Decision) -> Result<(), Error> {
        self.0.push(decision.kept())
    }

    /// All of them, to be looked up by place. Calls `tell` with each, in the order of places, in a `phase` of so many steps.
    pub fn end(
        self,
        places: Places,
        print: Printed,
        phase: impl FnOnce(u64) -> Phase,
        mut tell: impl FnMut(Decision) -> Result<(), Error>,
    ) -> Result<Decided, Error> {
        let mut words = WordFile::new().map_err(Error::groups)?;
        let decisions = self.0.sorted()?;
        for kept in phase(decisions.count).of(decisions) {
            let kept = kept?;
            tell(Decision::of(kept))?;
            kept.iter().try_for_each(|number| words.push(*number)).map_err(Error::groups)?;
        }
        let reader = words.read().map_err(Error::groups)?;
        let mut decided = Decided { reader, next: None, again: Again::new(places), print };
        decided.read().map_err(Error::groups)?;
        Ok(decided)
    }
}

/// Which lines are printed, and what is told of them.
#[derive(Clone, Copy)]
pub struct Printed {
    pub which: Which,
    /// Whether it is told how often each comes.
    pub counted: bool,
}

/// Which distinct lines are selected.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    All,
    Repeated,
    Unique,
}

impl Which {
    /// Whether a line is selected that comes so often.
    pub fn takes(self, count: u64) -> bool {
        match self {
            Self::All => true,
            Self::Repeated => count > 1,
            Self::Unique => count == 1,
        }
    }
}

/// What becomes of the lines of all inputs, which come again in the same order.
pub struct Decided {
    reader: WordReader,
    next: Option<Decision>,
    again: Again,
    pub print: Printed,
}

impl Decided {
    /// Takes the next lines of an input. Calls `found` with the numbers of those that something was decided of.
    pub fn take(
        &mut self,
        input: usize,
        header: bool,
        lines: usize,
        mut found: impl FnMut(usize, Verdict),
    ) -> io::Result<()> {
        let first = self.again.take(input, header, lines);
        while let Some(Decision { place, verdict }) = self.next.filter(|next| next.place < first + lines as u64) {
            found((place - first) as usize, verdict);
            self.read()?;
        }
        Ok(())
    }

    /// Whether as many lines came again.
    pub fn is_done(&self) -> bool {
        self.again.is_done()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut next = || self.reader.next().transpose();
        self.next = match (next()?, next()?, next()?) {
            (Some(place), Some(kept), Some(number)) => Some(Decision::of([place, kept, number])),
            _ => None,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    /// A line of a run: its group, its score, and whether the filter had it before.
    type Line = Result<(u8, u64, bool), Aside>;

    fn line() -> impl Strategy<Value = Line> {
        let aside = prop::sample::select(&Aside::ALL[..]);
        prop_oneof![8 => (0..12u8, 0..4u64, prop::bool::weighted(0.2)).prop_map(Ok), 1 => aside.prop_map(Err)]
    }

    /// What becomes of each line, by the words of the help; none for one that is alone.
    fn model(lines: &[Line]) -> Vec<Option<Verdict>> {
        let verdict = |place: usize| {
            let (group, ..) = match lines[place] {
                Ok(line) => line,
                Err(aside) => return Some(Verdict::Aside(aside)),
            };
            let all: Vec<usize> =
                (0..lines.len()).filter(|&i| matches!(lines[i], Ok((other, ..)) if other == group)).collect();
            let line = |i: usize| lines[i].unwrap();
            if line(all[0]).2 {
                return Some(Verdict::Goes { kept: None });
            }
            // The first of those with the best score.
            let best = *all.iter().min_by_key(|&&i| line(i).1).unwrap();
            match all.len() {
                1 => None,
                count if best == place => Some(Verdict::Stays { count: count as u64 }),
                _ => Some(Verdict::Goes { kept: Some(best as u64) }),
            }
        };
        (0..lines.len()).map(verdict).collect()
    }

    proptest! {
        #[test]
        fn they_are_those_of_the_model(
            lines in prop::collection::vec(line(), 0..80),
            batch in 1..20usize,
            in_memory in 1..9usize,
        ) {
            let mut sorter = Sorter::new(&env::temp_dir());
            let mut deciding = Deciding::new();
            for (line, place) in lines.iter().zip(0..) {
                match *line {
                    Ok((group, score, known)) => {
                        let member = Member { group: u128::from(group) << 100 | u128::from(group), place, score, known };
                        prop_assert_eq!(Member::unpacked(member.packed()), member);
                        sorter.push(member.packed()).unwrap();
                    }
                    Err(aside) => deciding.push(Decision { place, verdict: Verdict::Aside(aside) }).unwrap(),
                }
            }
            let members = sorter.sorted().unwrap().map(|member| member.map(Member::unpacked));
            let groups = choose_within(members, in_memory, |decision| deciding.push(decision)).unwrap();
            let mut places = Places::new([Path::new("a")]);
            places.take(0, false, lines.len());
            let mut told = Vec::new();
            let print = Printed { which: Which::All, counted: false };
            let mut decided = deciding.end(places, print, |steps| Phase::new("deciding", steps, false), |decision| { told.push(decision); Ok(()) }).unwrap();
            let expected = model(&lines);
            let mut found = vec![None; lines.len()];
            for first in (0..lines.len()).step_by(batch) {
                prop_assert!(!decided.is_done());
                let these = batch.min(lines.len() - first);
                decided.take(0, false, these, |line, verdict| found[first + line] = Some(verdict)).unwrap();
            }
            prop_assert!(decided.is_done() || lines.is_empty());
            prop_assert_eq!(&found, &expected);
            let expected: Vec<Decision> = expected.iter().zip(0..).filter_map(|(verdict, place)| Some(Decision { place, verdict: (*verdict)? })).collect();
            prop_assert_eq!(told, expected);
            let repeat = |group: &u8| lines.iter().filter(|line| matches!(line, Ok((other, ..)) if other == group)).count() > 1;
            prop_assert_eq!(groups as usize, (0..12).filter(repeat).count());
        }
    }
}
