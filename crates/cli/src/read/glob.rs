//! Globs by ripgrep's rules (those of `.gitignore`, and `{a,b}`), which select files in directories.

use std::path::{Path, is_separator};
use std::str::FromStr;

/// A glob. Matching paths are selected or, if the glob begins with !, excluded.
#[derive(Clone, Debug)]
pub struct Glob {
    pieces: Vec<GlobPart>,
    leaves_out: bool,
    only_folders: bool,
}

#[derive(Clone, Debug)]
enum GlobPart {
    /// The given character.
    One(char),
    /// `?`: any character of a name.
    Any,
    /// `[a-z]`: a character in one of the ranges or, with ! before them, in none of them.
    Class { ranges: Vec<(char, char)>, negated: bool },
    /// `*`: any part of a name.
    Star,
    /// `**/`: any number of folders.
    Folders,
    /// `**` at the end.
    All,
    /// `{a,b}`
    Either(Vec<Vec<GlobPart>>),
}

/// True if the globs select the file or folder at this path below the named directory. The last matching glob decides.
pub fn take(globs: &[Glob], path: &Path, is_folder: bool) -> bool {
    let path: Vec<char> = path.to_string_lossy().chars().map(|c| if is_separator(c) { '/' } else { c }).collect();
    match globs.iter().rev().find(|glob| glob.matches(&path, is_folder)) {
        Some(glob) => !glob.leaves_out,
        // If any glob selects, other files are excluded. Folders are kept, because they may contain selected files.
        None => is_folder || globs.iter().all(|glob| glob.leaves_out),
    }
}

impl Glob {
    fn matches(&self, path: &[char], is_folder: bool) -> bool {
        let mut begins = vec![false; path.len() + 1];
        begins[0] = true;
        (is_folder || !self.only_folders) && ends(&self.pieces, path, begins)[path.len()]
    }
}

/// Returns the positions in the path at which a match of `pieces` may end if it starts at one of `places`. All are tracked
/// together, so the time is bounded.
fn ends(pieces: &[GlobPart], path: &[char], mut places: Vec<bool>) -> Vec<bool> {
    for piece in pieces {
        if let GlobPart::Either(choices) = piece {
            let each = choices.iter().map(|choice| ends(choice, path, places.clone()));
            places = each.reduce(|a, b| a.iter().zip(b).map(|(a, b)| a | b).collect()).unwrap_or(places);
            continue;
        }
        let mut begun = false;
        let end = |at: usize| {
            let before = if at == 0 { '/' } else { path[at - 1] };
            begun = places[at] || begun && !(before == '/' && matches!(piece, GlobPart::Star));
            match piece {
                GlobPart::Star | GlobPart::All => begun,
                GlobPart::Folders => places[at] || begun && before == '/',
                one => at > 0 && places[at - 1] && one.takes(before),
            }
        };
        places = (0..=path.len()).map(end).collect();
    }
    places
}

impl GlobPart {
    /// True if this piece, which matches one character, matches `character`.
    fn takes(&self, character: char) -> bool {
        match self {
            Self::One(one) => character == *one,
            Self::Class { ranges, negated } => {
                ranges.iter().any(|&(first, last)| (first..=last).contains(&character)) != *negated
            }
            _ => character != '/',
        }
    }
}

impl FromStr for Glob {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('#') {
            return Err("it begins with #, as a comment of .gitignore does; for a literal #, write [#]");
        }
        let (leaves_out, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (only_folders, text) =
            text.strip_suffix("\\/").or(text.strip_suffix('/')).map_or((false, text), |rest| (true, rest));
        let path: Vec<char> = text.strip_prefix('/').unwrap_or(text).chars().collect();
        if path.is_empty() {
            return Err("it matches no name; give a pattern such as '*.gz'");
        }
        let mut pieces = parse(&mut path.as_slice(), false)?;
        if !text.contains('/') {
            // A name, in any folder.
            pieces.insert(0, GlobPart::Folders);
        }
        Ok(Self { pieces, leaves_out, only_folders })
    }
}

/// Parses a glob or, inside braces, a choice, up to its end.
fn parse(rest: &mut &[char], in_braces: bool) -> Result<Vec<GlobPart>, &'static str> {
    let mut pieces = Vec::new();
    let mut before = '/';
    while let [first, after @ ..] = *rest {
        if in_braces && matches!(first, ',' | '}') {
            break;
        }
        *rest = after;
        let (piece, length) = match (first, after) {
            ('*', ['*', '/', ..]) if before == '/' => (GlobPart::Folders, 2),
            ('*', ['*']) if before == '/' => (GlobPart::All, 1),
            ('*', ['*', ',' | '}', ..]) if before == '/' && in_braces => (GlobPart::All, 1),
            ('*', _) => (GlobPart::Star, 0),
            ('?', _) => (GlobPart::Any, 0),
            ('[', _) => class(after)
                .ok_or("a class is not closed, or a range in it runs backwards; for a literal [, write [[]")?,
            ('{', _) => (parse_alternative(rest)?, 0),
            ('}', _) => return Err("a } has no { before it; for a literal }, write [}]"),
            ('\\', [escaped, ..]) => (GlobPart::One(*escaped), 1),
            ('\\', []) => return Err("it ends in a backslash; for a literal backslash, write two"),
            (one, _) => (GlobPart::One(*one), 0),
        };
        before = if length > 0 { after[length - 1] } else { *first };
        pieces.push(piece);
        *rest = &rest[length..];
    }
    Ok(pieces)
}

/// Parses the choices after a {. None may be empty.
fn parse_alternative(rest: &mut &[char]) -> Result<GlobPart, &'static str> {
    let mut choices = Vec::new();
    loop {
        choices.push(parse(rest, true)?);
        let (&end, after) = rest.split_first().ok_or("a { is not closed; for a literal {, write [{]")?;
        *rest = after;
        if end == '}' {
            choices.retain(|choice| !choice.is_empty());
            return Ok(GlobPart::Either(choices));
        }
    }
}

/// Parses the class after a [. Returns the class and its length, with the closing ].
fn class(text: &[char]) -> Option<(GlobPart, usize)> {
    let negated = matches!(text.first()?, '!' | '^');
    let mut at = usize::from(negated);
    let begin = at;
    let mut ranges = Vec::new();
    // A ] in first position is a character.
    while at == begin || *text.get(at)? != ']' {
        let first = *text.get(at)?;
        let (last, length) = match text.get(at + 1..at + 3) {
            Some(&['-', last]) if last != ']' => (last, 3),
            _ => (first, 1),
        };
        if last < first {
            return None;
        }
        ranges.push((first, last));
        at += length;
    }
    Some((GlobPart::Class { ranges, negated }, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn taken(globs: &[&str], path: &str) -> bool {
        let globs: Vec<Glob> = globs.iter().map(|glob| glob.parse().unwrap()).collect();
        take(&globs, path.trim_end_matches('/').as_ref(), path.ends_with('/'))
    }

    /// Each glob has paths that match and paths that do not. A path that ends with a slash is a folder.
    // Names have backslashes.
    #[cfg(unix)]
    #[test]
    fn globs_match_as_in_ripgrep() {
        for (glob, takes, leaves) in [
            ("a", "a x/a x/y/a", "b aa a/x"),
            ("/a", "a", "x/a"),
            ("x/a", "x/a", "a y/x/a x/y/a"),
            ("*.gz", "a.gz .gz x/a.gz ü.gz", "a.gz.b gz x.gz/a"),
            ("*a*b*", "ab xaybz aab x/ab", "ba a/b"),
            ("a?c", "abc aüc a.c", "ac abbc a/c"),
            ("/?a", "üa", "a xya /a"),
            ("**", "a x/a x/y/a", ""),
            ("x/**", "x/a x/y/a", "x y/x/a"),
            ("**/x/*", "x/a y/x/a", "x a x/y/a"),
            ("x/**/a", "x/a x/y/a x/y/z/a", "xa x/ya x/y/b"),
            ("x/**/**/a", "x/a x/y/a", "a"),
            ("x**/a", "x/a xy/a", "a xy/z/a"),
            ("x/**y", "x/y x/ay", "x/a/y"),
            ("[ab].[!a-c]", "a.d b.ü", "c.d a.a a.b"),
            ("[^a]", "b -", "a"),
            ("[]-]", "] -", "a"),
            ("[!]a]", "b", "] a"),
            ("[a-]", "a -", "b"),
            ("[*?{]", "* ? {", "a"),
            ("*.{txt,md}{.gz,.xz}", "a.txt.gz a.md.xz", "a.txt a.gz"),
            ("{a,{b,c}d}", "a bd cd", "b d ad"),
            ("/{x,y/z}/a", "x/a y/z/a", "z/a y/a"),
            ("{x/**,**/b}", "x/a x/y/a b y/b", "x a"),
            ("a{,.b}", "a.b", "a"),
            ("a,b", "a,b", "a b"),
            (r"\*\{\\", r"*{\", "a"),
            (r"\!a", "!a", "a"),
            ("!!a", "a b", "!a"),
        ] {
            for (paths, expected) in [(takes, true), (leaves, false)] {
                for path in paths.split(' ').filter(|path| !path.is_empty()) {
                    assert_eq!(taken(&[glob], path), expected, "{glob} {path}");
                }
            }
        }
    }

    #[test]
    fn the_last_matching_glob_decides() {
        for (globs, takes, leaves) in [
            (&[][..], "a x/ x/a", ""),
            (&["!a"], "b x/ x/b", "a a/ x/a"),
            (&["a"], "a x/ x/a a/", "b x/b"),
            (&["!x/"], "x a y/", "x/ y/x/"),
            (&["*.gz", "!b.*"], "a.gz x/", "b.gz a.txt"),
            (&["!*.gz", "a*"], "a.gz", "b.gz b.txt"),
        ] {
            for (paths, expected) in [(takes, true), (leaves, false)] {
                for path in paths.split(' ').filter(|path| !path.is_empty()) {
                    assert_eq!(taken(globs, path), expected, "{globs:?} {path}");
                }
            }
        }
    }

    #[test]
    fn invalid_globs_are_refused() {
        for (glob, reason) in [
            ("", "it matches no name"),
            ("!", "it matches no name"),
            ("/", "it matches no name"),
            ("!/", "it matches no name"),
            ("#a", "it begins with #"),
            ("{a", "a { is not closed"),
            ("a}", "a } has no { before it"),
            ("{a,{b}", "a { is not closed"),
            ("[a", "a class is not closed"),
            ("[", "a class is not closed"),
            ("[]", "a class is not closed"),
            ("[b-a]", "a range in it runs backwards"),
            (r"a\", "it ends in a backslash"),
        ] {
            let error = glob.parse::<Glob>().unwrap_err();
            assert!(error.contains(reason), "{glob}: {error}");
        }
    }

    /// A name without separators.
    const NAME: &str = if cfg!(windows) { r"[^/\\]{1,8}" } else { "[^/]{1,8}" };

    proptest! {
        #[test]
        fn escaped_names_match_only_themselves(name in NAME, other in NAME) {
            let glob: String = name.chars().flat_map(|character| ['\\', character]).collect();
            prop_assert!(taken(&[&glob], &name));
            prop_assert_eq!(taken(&[&glob], &other), name == other);
        }

        #[test]
        fn any_glob_matches_in_bounded_time(stars in 1..500_usize) {
            let glob = "*a{*a,**/a}".repeat(stars) + "b";
            prop_assert!(!taken(&[&glob], &"a".repeat(250)));
        }
    }
}
