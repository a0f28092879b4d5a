//! Charts as PNG and SVG. The font comes with the program, so that charts look the same on every machine.

mod bars;
mod font;
mod lines;
mod paint;
mod scene;

pub use bars::{Bar, Chart, Group};
pub use lines::{Line, LineChart, lines_by};

use crate::error::Result;
use scene::Scene;
use std::path::Path;

/// A chart of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    Bars(Chart),
    Lines(LineChart),
}

impl Picture {
    pub fn title(&self) -> &str {
        match self {
            Picture::Bars(chart) => &chart.title,
            Picture::Lines(chart) => &chart.title,
        }
    }

    fn scene(&self) -> Scene {
        match self {
            Picture::Bars(chart) => chart.scene(),
            Picture::Lines(chart) => chart.scene(),
        }
    }

    /// Writes `NAME.png` and `NAME.svg` to a folder.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        let scene = self.scene();
        paint::write_png(&scene, &folder.join(format!("{name}.png")))?;
        paint::write_svg(&scene, &folder.join(format!("{name}.svg")))
    }
}

impl From<Chart> for Picture {
    fn from(chart: Chart) -> Picture {
        Picture::Bars(chart)
    }
}

impl From<LineChart> for Picture {
    fn from(chart: LineChart) -> Picture {
        Picture::Lines(chart)
    }
}
