//! Tokens of any text, character by character.

use crate::class::{self, *};
use crate::scan::{Scan, Token};

/// The state between the start of a token and the next character, as in the library for word boundaries.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    /// No token: at the start of the text, and after the end of a line.
    Nothing,
    Letter,
    Hebrew,
    Number,
    Katakana,
    Connector,
    Space,
    /// Half of a flag.
    Flag,
    /// A character that only combining marks join.
    Alone,
    /// A letter and an apostrophe, which belong to the token in any case.
    HebrewApostrophe,
    /// In this state and the two after it, the last mark of punctuation becomes a token of its own unless the next
    /// character is of the right class.
    LetterMid,
    HebrewQuote,
    NumberMid,
    /// Not a state: the next character begins a token.
    Break,
}

use State::*;

/// The state after each state and class.
const STEPS: [[State; CLASSES]; Break as usize] = {
    let mut steps = [[Break; CLASSES]; Break as usize];
    let words = [Letter as usize, Hebrew as usize, Number as usize, Connector as usize];
    let mut i = 0;
    while i < words.len() {
        steps[words[i]][LETTER as usize] = Letter;
        steps[words[i]][HEBREW as usize] = Hebrew;
        steps[words[i]][NUMBER as usize] = Number;
        steps[words[i]][CONNECTOR as usize] = Connector;
        i += 1;
    }
    let letters = [Letter as usize, Hebrew as usize];
    i = 0;
    while i < letters.len() {
        steps[letters[i]][MID_LETTER as usize] = LetterMid;
        steps[letters[i]][MID_BOTH as usize] = LetterMid;
        steps[letters[i]][APOSTROPHE as usize] = LetterMid;
        i += 1;
    }
    let between_letters = [LetterMid as usize, HebrewApostrophe as usize];
    i = 0;
    while i < between_letters.len() {
        steps[between_letters[i]][LETTER as usize] = Letter;
        steps[between_letters[i]][HEBREW as usize] = Hebrew;
        i += 1;
    }
    steps[Hebrew as usize][APOSTROPHE as usize] = HebrewApostrophe;
    steps[Hebrew as usize][QUOTE as usize] = HebrewQuote;
    steps[HebrewQuote as usize][HEBREW as usize] = Hebrew;
    steps[Number as usize][MID_NUMBER as usize] = NumberMid;
    steps[Number as usize][MID_BOTH as usize] = NumberMid;
    steps[Number as usize][APOSTROPHE as usize] = NumberMid;
    steps[NumberMid as usize][NUMBER as usize] = Number;
    steps[Katakana as usize][KATAKANA as usize] = Katakana;
    steps[Katakana as usize][CONNECTOR as usize] = Connector;
    steps[Connector as usize][KATAKANA as usize] = Katakana;
    steps[Space as usize][SPACE as usize] = Space;
    steps[Flag as usize][FLAG as usize] = Alone;
    steps
};

/// The state after the first character of a token, by its class.
const FIRST: [State; CLASSES] = {
    let mut first = [Alone; CLASSES];
    first[LETTER as usize] = Letter;
    first[HEBREW as usize] = Hebrew;
    first[NUMBER as usize] = Number;
    first[KATAKANA as usize] = Katakana;
    first[CONNECTOR as usize] = Connector;
    first[SPACE as usize] = Space;
    first[FLAG as usize] = Flag;
    first[NEWLINE as usize] = Nothing;
    first
};

/// The number of characters of common classes before a boundary at which [`scan_blocks`](Scan::scan_blocks) continues.
const COMMON_RUN: u32 = 16;

impl<T: Token> Scan<'_, T> {
    /// Scans tokens from the boundary `from` to a boundary after `min_end` that follows a run of characters without
    /// rare rules, or to the end. Returns that boundary.
    pub(crate) fn scan_chars(&mut self, from: usize, min_end: usize) -> usize {
        let text = self.text;
        let (mut state, mut start) = (Nothing, from);
        // True if the token has only white space; true if its last character is a joiner.
        let (mut blank, mut joiner) = (true, false);
        // The offset of the last mark of punctuation.
        let mut mid = from;
        let mut common = 0;
        for (i, c) in text[from..].char_indices() {
            let i = from + i;
            let class = class::class(c);
            let kind = class & CLASS;
            common = if matches!(kind, HEBREW | FLAG | JOINER) { 0 } else { common + 1 };
            if kind >= MARK && state != Nothing {
                joiner = kind == JOINER;
                blank = false;
                if state == Space {
                    state = Alone;
                }
                continue;
            }
            if joiner && class & PICTOGRAM != 0 {
                (state, joiner) = (Alone, false);
                continue;
            }
            joiner = false;
            let next = STEPS[state as usize][usize::from(kind)];
            if next != Break {
                if matches!(next, LetterMid | HebrewQuote | NumberMid) {
                    mid = i;
                }
                blank &= class & WHITE != 0;
                state = next;
                continue;
            }
            self.push_ended_token(state, start, mid, i, blank);
            if common >= COMMON_RUN && i > min_end {
                return i;
            }
            if c == '\n' {
                self.push_newline(i);
            }
            start = i;
            state = FIRST[usize::from(kind)];
            blank = class & WHITE != 0;
            joiner = kind == JOINER;
        }
        self.push_ended_token(state, start, mid, text.len(), blank);
        text.len()
    }

    /// Pushes a token that ends at `end`. If the mark of punctuation at `mid` has joined nothing, it begins a second
    /// token. White space is not a token.
    #[inline(always)]
    fn push_ended_token(&mut self, state: State, mut start: usize, mid: usize, end: usize, blank: bool) {
        if matches!(state, LetterMid | HebrewQuote | NumberMid) {
            self.push_token(start, mid);
            start = mid;
        }
        if !blank {
            self.push_token(start, end);
        }
    }
}
