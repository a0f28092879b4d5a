//! Charts as PNG and SVG, drawn alike on any machine: no font files are needed.

mod bars;
mod letters;
mod paint;
mod scene;

pub use bars::{Bar, Chart, Group};

use crate::error::BenchError;
use std::path::Path;

/// Writes a chart as `NAME.png` and `NAME.svg` into a folder.
pub fn write(chart: &Chart, folder: &Path, name: &str) -> Result<(), BenchError> {
    let scene = chart.scene();
    paint::write_png(&scene, &folder.join(format!("{name}.png")))?;
    paint::write_svg(&scene, &folder.join(format!("{name}.svg")))
}
