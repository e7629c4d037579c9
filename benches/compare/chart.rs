//! A chart: panels under each other, and a legend below them. Text is large, so that it can be read on a phone.

use super::paint::{DASHES, Medium, Stroke};
use super::text::escaped;
use std::f64::consts::TAU;
use std::fmt::Write;

type Point = (f64, f64);

const WIDTH: f64 = 960.0;
const PANEL: f64 = 670.0;
const LEGEND_ROW: f64 = 56.0;
/// The axes of a panel: their left and right ends, and the upper and lower ones below the top of the panel.
const LEFT: f64 = 140.0;
const RIGHT: f64 = 920.0;
const UPPER: f64 = 108.0;
const LOWER: f64 = 550.0;
const MARKER: f64 = 11.0;

/// An axis. Its coordinates are linear in the drawing, so a logarithmic axis takes logarithms.
pub struct Axis {
    pub label: &'static str,
    pub from: f64,
    pub to: f64,
    pub ticks: Vec<(f64, String)>,
}

/// A line with markers on it, or one of the two alone.
pub struct Series {
    pub name: String,
    pub stroke: Stroke,
    pub line: Vec<Point>,
    pub markers: Vec<Point>,
}

/// A pair of axes with everything between them.
pub struct Panel {
    pub title: &'static str,
    pub x: Axis,
    pub y: Axis,
    /// Vertical lines: where they cross the horizontal axis, and their names.
    pub marks: Vec<(f64, String)>,
    pub series: Vec<Series>,
}

/// Draws the panels as SVG. In a file, the legend is below them.
pub fn draw(title: &str, panels: &[Panel], medium: Medium) -> String {
    let mut named: Vec<&Series> = Vec::new();
    if let Medium::File = medium {
        for series in panels.iter().flat_map(|panel| &panel.series) {
            if named.iter().all(|other| other.name != series.name) {
                named.push(series);
            }
        }
    }
    let below = PANEL * panels.len() as f64;
    let mut svg = open(below + legend_height(&named), medium);
    svg += &format!("<title>{}</title>\n", escaped(title));
    for (i, panel) in panels.iter().enumerate() {
        svg += &draw_panel(panel, PANEL * i as f64, medium);
    }
    svg + &draw_legend(&named, below, medium) + "</svg>"
}

/// Draws a legend alone as SVG.
pub fn legend(series: &[&Series], medium: Medium) -> String {
    open(legend_height(series), medium) + "<title>Legend</title>\n" + &draw_legend(series, 0.0, medium) + "</svg>"
}

fn open(height: f64, medium: Medium) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" fill=\"none\" \
         font-family=\"sans-serif\" font-size=\"32\">\n<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        medium.ink("background")
    )
}

fn legend_columns(series: &[&Series]) -> usize {
    if series.iter().any(|series| series.name.len() > 13) { 2 } else { 3 }
}

fn legend_height(series: &[&Series]) -> f64 {
    LEGEND_ROW * series.len().div_ceil(legend_columns(series)) as f64 + 16.0
}

fn draw_legend(series: &[&Series], top: f64, medium: Medium) -> String {
    let columns = legend_columns(series);
    let mut svg = String::new();
    for (i, Series { name, stroke, .. }) in series.iter().enumerate() {
        let (x, y) =
            (30.0 + WIDTH / columns as f64 * (i % columns) as f64, top + 24.0 + LEGEND_ROW * (i / columns) as f64);
        svg += &line(&[(x, y), (x + 64.0, y)], *stroke, medium);
        svg += &marker((x + 32.0, y), *stroke, medium);
        svg += &write(name, (x + 78.0, y + 11.0), "start", medium);
    }
    svg
}

fn draw_panel(panel: &Panel, top: f64, medium: Medium) -> String {
    let (upper, lower) = (top + UPPER, top + LOWER);
    let fraction = |axis: &Axis, value: f64| (value - axis.from) / (axis.to - axis.from);
    let x = |value: f64| LEFT + fraction(&panel.x, value) * (RIGHT - LEFT);
    let y = |value: f64| lower - fraction(&panel.y, value) * (lower - upper);
    let to_pixels = |points: &[Point]| points.iter().map(|point| (x(point.0), y(point.1))).collect::<Vec<_>>();
    let path =
        |lines: String, ink| format!("<path d=\"{lines}\" stroke=\"{}\" stroke-width=\"2\"/>\n", medium.ink(ink));
    let vertical = |at: &(f64, String)| format!("M{:.1} {upper}V{lower}", x(at.0));
    let horizontal = |at: &(f64, String)| format!("M{LEFT} {:.1}H{RIGHT}", y(at.0));

    let mut svg = write(panel.title, (24.0, top + 42.0), "start", medium);
    svg += &path(panel.x.ticks.iter().map(vertical).chain(panel.y.ticks.iter().map(horizontal)).collect(), "grid");
    svg += &path(panel.marks.iter().map(vertical).collect(), "mark");
    svg += &path(format!("M{LEFT} {upper}V{lower}H{RIGHT}"), "text");
    for (at, name) in &panel.x.ticks {
        svg += &write(name, (x(*at), lower + 40.0), "middle", medium);
    }
    for (at, name) in &panel.y.ticks {
        svg += &write(name, (LEFT - 12.0, y(*at) + 11.0), "end", medium);
    }
    for (at, name) in &panel.marks {
        svg += &write(name, (x(*at), upper - 14.0), "middle", medium);
    }
    svg += &write(panel.x.label, ((LEFT + RIGHT) / 2.0, lower + 88.0), "middle", medium);
    // The first series lies above the others, and markers above all lines.
    for series in panel.series.iter().rev().filter(|series| series.line.len() > 1) {
        svg += &line(&to_pixels(&series.line), series.stroke, medium);
    }
    for series in panel.series.iter().rev() {
        svg.extend(to_pixels(&series.markers).into_iter().map(|at| marker(at, series.stroke, medium)));
    }
    svg
}

fn write(text: &str, (x, y): Point, anchor: &str, medium: Medium) -> String {
    let (ink, text) = (medium.ink("text"), escaped(text));
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{ink}\">{text}</text>\n")
}

fn line(points: &[Point], Stroke { hue, dash }: Stroke, medium: Medium) -> String {
    let (ink, dashes, width) = (medium.ink(&format!("hue{hue}")), DASHES[dash], if hue == 0 { 5 } else { 3 });
    let points = join(points);
    format!("<polyline points=\"{points}\" stroke=\"{ink}\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\"/>\n")
}

fn join(points: &[Point]) -> String {
    let mut joined = String::new();
    points.iter().for_each(|(x, y)| _ = write!(joined, "{x:.1},{y:.1} "));
    joined
}

/// Each hue has a shape, and each filter of fingerprints. It is hollow where the line is not solid, and upside down where
/// the line is dotted.
fn marker((x, y): Point, Stroke { hue, dash }: Stroke, medium: Medium) -> String {
    // The corners, the radius of every second corner as a share of the full one, and the rotation.
    let (corners, inner, rotation): (usize, f64, f64) = match (hue, dash) {
        (0, _) => (24, 1.0, 0.0),
        (1, _) => (3, 1.0, -0.25),
        (2, _) => (4, 1.0, 0.125),
        (3, _) => (4, 1.0, 0.0),
        (4, _) => (10, 0.45, -0.25),
        (5, _) => (8, 0.4, 0.0),
        (7, 1) => (3, 1.0, 0.0),
        (7, 2) => (12, 0.45, 0.0),
        (7, _) => (5, 1.0, -0.25),
        _ => (6, 1.0, 0.0),
    };
    let up = if dash == 2 { -1.0 } else { 1.0 };
    let corner = |i: usize| {
        let radius = MARKER * if inner < 1.0 { 1.25 } else { 1.0 } * if i % 2 == 1 { inner } else { 1.0 };
        let angle = TAU * (i as f64 / corners as f64 + rotation);
        (x + radius * angle.cos(), y + up * radius * angle.sin())
    };
    let corners: Vec<Point> = (0..corners).map(corner).collect();
    let ink = medium.ink(&format!("hue{hue}"));
    let fill = if dash == 0 { ink.clone() } else { medium.ink("background") };
    format!("<polygon points=\"{}\" fill=\"{fill}\" stroke=\"{ink}\" stroke-width=\"3\"/>\n", join(&corners))
}
