//! A chart as a list of shapes. Coordinates are points from the upper left corner.

/// Red, green, blue.
pub type Colour = (u8, u8, u8);

/// Which part of a text lies at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    pub x: f64,
    /// The baseline.
    pub y: f64,
    /// Points per em.
    pub size: f64,
    pub anchor: Anchor,
    pub is_bold: bool,
    pub colour: Colour,
    pub words: String,
}

/// An element of a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A filled rectangle: left, top, width, height.
    Rectangle([f64; 4], Colour),
    /// A line: the coordinates of both ends, and its width.
    Line([f64; 4], f64, Colour),
    Text(Text),
}

/// A chart that is laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    /// Later shapes cover earlier ones.
    pub shapes: Vec<Shape>,
}

impl Scene {
    /// Creates a scene with a title and a subtitle.
    pub fn titled(title: &str, subtitle: &str) -> Scene {
        let mut scene = Scene { width: WIDTH, ..Scene::default() };
        scene.text(MARGIN, MARGIN + 14.0, 19.0, title).is_bold = true;
        scene.text(MARGIN, MARGIN + 36.0, LABEL, subtitle).colour = PALE_INK;
        scene
    }

    /// Adds a text and returns it for changes.
    pub fn text(&mut self, x: f64, y: f64, size: f64, words: impl Into<String>) -> &mut Text {
        let (anchor, is_bold, colour) = (Anchor::Start, false, INK);
        self.shapes.push(Shape::Text(Text { x, y, size, anchor, is_bold, colour, words: words.into() }));
        match self.shapes.last_mut() {
            Some(Shape::Text(text)) => text,
            _ => unreachable!("a text was just added"),
        }
    }
}

/// The width of every chart.
pub const WIDTH: f64 = 820.0;
pub const MARGIN: f64 = 28.0;
/// The size of labels.
pub const LABEL: f64 = 13.0;
/// The size of the numbers at axes.
pub const TICK: f64 = 12.0;

/// The colour of texts.
pub const INK: Colour = (31, 41, 55);
/// The colour of subtitles and axes.
pub const PALE_INK: Colour = (107, 114, 128);
/// The colour of grid lines.
pub const RULE: Colour = (229, 231, 235);
/// The colours of series; the first is Lanner's.
pub const SERIES: [Colour; 8] = [
    (13, 116, 110),
    (148, 163, 184),
    (217, 119, 6),
    (190, 24, 93),
    (79, 70, 229),
    (22, 163, 74),
    (120, 53, 15),
    (14, 165, 233),
];
