//! Colours. Plots are drawn in placeholders, which become CSS variables in the page and light colours in a file.

use plotters::style::RGBColor;

/// What a colour is for.
#[derive(Clone, Copy)]
pub enum Ink {
    /// Text and axes.
    Text,
    Grid,
    /// Lines that mark a point of an axis.
    Mark,
    Background,
    /// A series, by hue and dash.
    Series(Stroke),
}

/// How a series is drawn. Each hue has its own shape of marker, so that series differ without colour too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stroke {
    pub hue: usize,
    /// 0 solid, 1 dashed, 2 dotted, 3 dashed and dotted.
    pub dash: usize,
}

/// Hues on a light and on a dark background. Most colour-blind people can tell them apart (after Okabe and Ito), and each
/// has a contrast of at least 3 to its background.
const HUES: [(&str, &str); 8] = [
    ("#c84e00", "#ff9447"),
    ("#0072b2", "#56b4e9"),
    ("#00805c", "#2fd3a0"),
    ("#b0528a", "#e79fc4"),
    ("#7d6300", "#f0e442"),
    ("#5b45a8", "#b7a3ff"),
    ("#666666", "#aaaaaa"),
    ("#111111", "#ffffff"),
];

/// The `stroke-dasharray` of each dash.
const DASHES: [&str; 4] = ["", "14 8", "4 7", "14 6 4 6"];

/// The other colours: their CSS variables, on a light and on a dark background.
const PLAIN: [(&str, &str, &str); 4] = [
    ("text", "#1b1b1b", "#e8e6e3"),
    ("grid", "#dddddd", "#3a3f44"),
    ("mark", "#767676", "#9a9a9a"),
    ("background", "#ffffff", "#15181b"),
];
/// The first of their numbers in placeholders; those of hues are below.
const FIRST_PLAIN: u8 = 100;

impl Ink {
    /// The placeholder. In no other colour the red is 1.
    pub fn placeholder(self) -> RGBColor {
        match self {
            Self::Text => RGBColor(1, 0, FIRST_PLAIN),
            Self::Grid => RGBColor(1, 0, FIRST_PLAIN + 1),
            Self::Mark => RGBColor(1, 1, FIRST_PLAIN + 2),
            Self::Background => RGBColor(1, 0, FIRST_PLAIN + 3),
            Self::Series(Stroke { hue, dash }) => RGBColor(1, dash as u8, (hue % HUES.len()) as u8),
        }
    }
}

/// All colours, with their CSS variables.
pub fn colours() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    (0..PLAIN.len() as u8).map(|i| FIRST_PLAIN + i).chain(0..HUES.len() as u8).map(colour)
}

/// The CSS variable of a number in placeholders, and its colour on a light and on a dark background.
fn colour(number: u8) -> (String, &'static str, &'static str) {
    match number.checked_sub(FIRST_PLAIN).map(|i| PLAIN[usize::from(i)]) {
        Some((name, light, dark)) => (name.to_owned(), light, dark),
        None => {
            let (light, dark) = HUES[usize::from(number)];
            (format!("hue{number}"), light, dark)
        }
    }
}

/// For the page: in its CSS variables, and as wide as its column.
pub fn for_page(svg: &str) -> String {
    let svg = paint(svg, |number| format!("var(--{})", colour(number).0));
    let Some((_, rest)) = svg.split_once("viewBox") else { return svg };
    format!("<svg role=\"img\" viewBox{rest}")
}

/// For a file: in the light colours.
pub fn for_file(svg: &str) -> String {
    paint(svg, |number| colour(number).1.to_owned())
}

/// Replaces each placeholder by a colour, and adds the dashes of strokes.
fn paint(svg: &str, replacement: impl Fn(u8) -> String) -> String {
    let mut parts = svg.split("=\"#01");
    let mut painted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = |digits| part.get(digits).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (Some(dash), Some(number)) = (byte(0..2), byte(2..4)) else { continue };
        let stroke = painted.ends_with("stroke");
        painted += &format!("=\"{}\"", replacement(number));
        if let Some(dashes) = DASHES.get(usize::from(dash)).filter(|dashes| stroke && !dashes.is_empty()) {
            painted += &format!(" stroke-dasharray=\"{dashes}\"");
        }
        painted += &part[5..];
    }
    painted
}
