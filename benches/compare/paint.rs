//! Colours and dashes. Plots have CSS variables in the page, and light colours in a file.

/// The stroke of a series. Each hue has its own shape of marker, so that series differ without colour too.
#[derive(Clone, Copy)]
pub struct Stroke {
    pub hue: usize,
    /// 0 solid, 1 dashed, 2 dotted, 3 dashed and dotted.
    pub dash: usize,
}

/// The `stroke-dasharray` of each dash.
pub const DASHES: [&str; 4] = ["none", "14 8", "4 7", "14 6 4 6"];

/// The names of colours, on a light and on a dark background. Most colour-blind people can tell the hues apart (after Okabe
/// and Ito), and each has a contrast of at least 3 to its background.
pub const COLOURS: [(&str, &str, &str); 12] = [
    ("hue0", "#c84e00", "#ff9447"),
    ("hue1", "#0072b2", "#56b4e9"),
    ("hue2", "#00805c", "#2fd3a0"),
    ("hue3", "#b0528a", "#e79fc4"),
    ("hue4", "#7d6300", "#f0e442"),
    ("hue5", "#5b45a8", "#b7a3ff"),
    ("hue6", "#666666", "#aaaaaa"),
    ("hue7", "#111111", "#ffffff"),
    ("text", "#1b1b1b", "#e8e6e3"),
    ("grid", "#dddddd", "#3a3f44"),
    // Lines that mark a point of an axis.
    ("mark", "#767676", "#9a9a9a"),
    ("background", "#ffffff", "#15181b"),
];

/// The medium of a plot.
#[derive(Clone, Copy)]
pub enum Medium {
    Page,
    File,
}

impl Medium {
    /// The colour of this name.
    pub fn ink(self, name: &str) -> String {
        match (self, COLOURS.iter().find(|colour| colour.0 == name)) {
            (Self::File, Some((_, light, _))) => (*light).to_owned(),
            _ => format!("var(--{name})"),
        }
    }
}
