//! Colours: plots are drawn in placeholders, which become variables of the page, or the colours of a light file.

use plotters::style::RGBColor;

/// What a colour is for.
#[derive(Clone, Copy)]
pub enum Ink {
    /// Text and axes.
    Text,
    Grid,
    /// Lines that mark a place on an axis.
    Mark,
    Background,
    /// A series, by hue and dash.
    Series(Stroke),
}

/// How a series is drawn. The hue has a marker of its own, and the dash is seen without colour too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stroke {
    pub hue: usize,
    /// 0 solid, 1 dashed, 2 dotted, 3 dashed and dotted.
    pub dash: usize,
}

/// Hues in the light and in the dark, told apart by most colour-blind people (after Okabe and Ito), all with a contrast of
/// 3 and more to the background.
pub const HUES: [(&str, &str); 7] = [
    ("#c84e00", "#ff9447"),
    ("#0072b2", "#56b4e9"),
    ("#00805c", "#2fd3a0"),
    ("#b0528a", "#e79fc4"),
    ("#7d6300", "#f0e442"),
    ("#5b45a8", "#b7a3ff"),
    ("#555555", "#bbbbbb"),
];

/// The dashes, as SVG has them.
const DASHES: [&str; 4] = ["", "14 8", "4 7", "14 6 4 6"];

/// The other colours, in the light and in the dark.
pub const TEXT: (&str, &str) = ("#1b1b1b", "#e8e6e3");
pub const GRID: (&str, &str) = ("#dddddd", "#3a3f44");
pub const MARK: (&str, &str) = ("#767676", "#9a9a9a");
pub const BACKGROUND: (&str, &str) = ("#ffffff", "#15181b");

impl Ink {
    /// The placeholder: no other colour begins with 1.
    pub fn placeholder(self) -> RGBColor {
        match self {
            Self::Text => RGBColor(1, 0, 100),
            Self::Grid => RGBColor(1, 0, 101),
            Self::Mark => RGBColor(1, 1, 102),
            Self::Background => RGBColor(1, 0, 103),
            Self::Series(Stroke { hue, dash }) => RGBColor(1, dash as u8, (hue % HUES.len()) as u8),
        }
    }
}

/// With the variables of the page, as wide as the page has room.
pub fn for_page(svg: &str) -> String {
    let svg = paint(svg, |slot| match slot {
        100 => "currentColor".to_owned(),
        101 => "var(--grid)".to_owned(),
        102 => "var(--mark)".to_owned(),
        103 => "var(--background)".to_owned(),
        hue => format!("var(--hue{hue})"),
    });
    let Some((_, rest)) = svg.split_once("viewBox") else { return svg };
    format!("<svg role=\"img\" viewBox{rest}")
}

/// In the light.
pub fn for_file(svg: &str) -> String {
    paint(svg, |slot| {
        let (light, _) = match slot {
            100 => TEXT,
            101 => GRID,
            102 => MARK,
            103 => BACKGROUND,
            hue => HUES[usize::from(hue)],
        };
        light.to_owned()
    })
}

/// Replaces each placeholder, and adds the dash of a stroke.
fn paint(svg: &str, colour: impl Fn(u8) -> String) -> String {
    let mut parts = svg.split("=\"#01");
    let mut painted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let number = |digits| part.get(digits).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (Some(dash), Some(slot)) = (number(0..2), number(2..4)) else { continue };
        let stroke = painted.ends_with("stroke");
        painted += &format!("=\"{}\"", colour(slot));
        if let Some(dashes) = DASHES.get(usize::from(dash)).filter(|dashes| stroke && !dashes.is_empty()) {
            painted += &format!(" stroke-dasharray=\"{dashes}\"");
        }
        painted += &part[5..];
    }
    painted
}
