//! Charts as PNG and SVG, drawn alike on any machine: no font files are needed.

mod bars;
mod letters;
mod lines;
mod paint;
mod scene;

pub use bars::{Bar, Chart, Group};
pub use lines::{Line, LineChart};

use crate::error::BenchError;
use std::path::Path;

/// A chart of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Bars in groups.
    Bars(Chart),
    /// Lines over a logarithmic axis.
    Lines(LineChart),
}

impl Picture {
    /// What it shows.
    pub fn title(&self) -> &str {
        match self {
            Picture::Bars(chart) => &chart.title,
            Picture::Lines(chart) => &chart.title,
        }
    }
}

/// Writes a chart as `NAME.png` and `NAME.svg` into a folder.
pub fn write(picture: &Picture, folder: &Path, name: &str) -> Result<(), BenchError> {
    let scene = match picture {
        Picture::Bars(chart) => chart.scene(),
        Picture::Lines(chart) => chart.scene(),
    };
    paint::write_png(&scene, &folder.join(format!("{name}.png")))?;
    paint::write_svg(&scene, &folder.join(format!("{name}.svg")))
}
