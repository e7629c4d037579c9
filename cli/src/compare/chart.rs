//! A chart: panels under each other, and a legend below them. Text is large, so that it can be read on a phone.

use super::paint::{Ink, Stroke};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::f64::consts::TAU;
use std::ops::Range;

const WIDTH: u32 = 960;
const PANEL: u32 = 670;
const LEGEND_ROW: u32 = 56;
/// Text in units of the drawing; plotters writes sizes 1.24 times too small.
const TEXT: f64 = 32.0 * 1.24;
const MARKER: f64 = 11.0;
/// The room above a panel for its title and the names of its marks.
const HEAD: i32 = 108;

/// An axis. Its coordinates are linear in the drawing, so a logarithmic axis takes logarithms.
#[derive(Clone)]
pub struct Axis {
    pub label: String,
    pub from: f64,
    pub to: f64,
    pub ticks: Vec<(f64, String)>,
}

/// A line with markers on it, or one of the two alone.
pub struct Series {
    pub name: String,
    pub stroke: Stroke,
    pub line: Vec<(f64, f64)>,
    pub markers: Vec<(f64, f64)>,
}

/// A pair of axes with everything between them.
pub struct Panel {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    /// Vertical lines: where they cross the horizontal axis, and their names.
    pub marks: Vec<(f64, String)>,
    pub series: Vec<Series>,
}

type Drawn<T> = Result<T, DrawingAreaErrorKind<std::io::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws the panels, which show the same series, in the placeholders of [`Ink`].
pub fn draw(panels: &[Panel]) -> Drawn<String> {
    let legend = &panels[0].series;
    let columns = if legend.iter().any(|series| series.name.len() > 13) { 2 } else { 3 };
    let panels_height = PANEL * panels.len() as u32;
    let height = panels_height + LEGEND_ROW * legend.len().div_ceil(columns) as u32 + 16;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&Ink::Background.placeholder())?;
        let (above, below) = root.split_vertically(panels_height);
        for (panel, area) in panels.iter().zip(above.split_evenly((panels.len(), 1))) {
            draw_panel(panel, &area)?;
        }
        for (i, Series { name, stroke, .. }) in legend.iter().enumerate() {
            let (column, row) = ((i % columns) as i32, (i / columns) as i32);
            let (x, y) = (30 + column * WIDTH as i32 / columns as i32, 24 + row * LEGEND_ROW as i32);
            below.draw(&PathElement::new(vec![(x, y), (x + 64, y)], line(*stroke)))?;
            marker(&below, (x + 32, y), *stroke)?;
            write(&below, name, (x + 78, y), HPos::Left, VPos::Center)?;
        }
        root.present()?;
    }
    Ok(svg)
}

fn draw_panel(panel: &Panel, area: &Area) -> Drawn<()> {
    write(area, &panel.title, (24, 14), HPos::Left, VPos::Top)?;
    let mut chart = ChartBuilder::on(area)
        .margin_top(HEAD)
        .margin_right(40)
        .margin_bottom(16)
        .x_label_area_size(104)
        .y_label_area_size(140)
        .build_cartesian_2d(panel.x.clone(), panel.y.clone())?;
    chart
        .configure_mesh()
        .label_style(("sans-serif", TEXT).into_font().color(&Ink::Text.placeholder()))
        .axis_style(Ink::Text.placeholder())
        .bold_line_style(Ink::Grid.placeholder())
        .light_line_style(TRANSPARENT)
        .x_desc(&panel.x.label)
        .draw()?;
    for (place, name) in &panel.marks {
        let ends = vec![(*place, panel.y.from), (*place, panel.y.to)];
        chart.draw_series([PathElement::new(ends, Ink::Mark.placeholder().stroke_width(2))])?;
        let (x, _) = chart.backend_coord(&(*place, panel.y.to));
        let (x0, _) = area.get_base_pixel();
        write(area, name, (x - x0, HEAD - 10), HPos::Center, VPos::Bottom)?;
    }
    // The first series lies above the others.
    for series in panel.series.iter().rev() {
        if series.line.len() > 1 {
            chart.draw_series([PathElement::new(series.line.clone(), line(series.stroke))])?;
        }
    }
    // Markers lie above all lines.
    for series in panel.series.iter().rev() {
        for place in &series.markers {
            let (x, y) = chart.backend_coord(place);
            let (x0, y0) = area.get_base_pixel();
            marker(area, (x - x0, y - y0), series.stroke)?;
        }
    }
    Ok(())
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        low + ((value - self.from) / (self.to - self.from) * f64::from(high - low)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|(tick, _)| tick == value).map_or_else(String::new, |(_, label)| label.clone())
    }
}

fn line(stroke: Stroke) -> ShapeStyle {
    Ink::Series(stroke).placeholder().stroke_width(if stroke.hue == 0 { 5 } else { 3 })
}

fn write(area: &Area, text: &str, place: (i32, i32), h: HPos, v: VPos) -> Drawn<()> {
    let style = ("sans-serif", TEXT).into_font().color(&Ink::Text.placeholder());
    area.draw_text(text, &style.pos(Pos::new(h, v)), place)
}

/// Each hue has a shape, and each filter of fingerprints. It is hollow where the line is not solid, and upside down where
/// the line is dotted.
fn marker(area: &Area, (x, y): (i32, i32), stroke: Stroke) -> Drawn<()> {
    // The corners, the radius of every second corner as a share of the full one, and the rotation.
    let (corners, inner, turn) = match (stroke.hue, stroke.dash) {
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
    let up = if stroke.dash == 2 { -1.0 } else { 1.0 };
    let corner = |i: usize| {
        let radius = MARKER * if inner < 1.0 { 1.25 } else { 1.0 } * if i % 2 == 1 { inner } else { 1.0 };
        let angle = TAU * (i as f64 / corners as f64 + turn);
        (x + (radius * angle.cos()).round() as i32, y + (up * radius * angle.sin()).round() as i32)
    };
    let outline: Vec<_> = (0..=corners).map(corner).collect();
    let solid = Ink::Series(Stroke { dash: 0, ..stroke }).placeholder();
    let fill = if stroke.dash == 0 { solid } else { Ink::Background.placeholder() };
    area.draw(&Polygon::new(outline.clone(), fill.filled()))?;
    area.draw(&PathElement::new(outline, solid.stroke_width(3)))
}
