//! A picture as a list of shapes, in points from the upper left corner, before it is painted.

/// A colour: red, green, blue.
pub type Colour = (u8, u8, u8);

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// A line of text; `y` is its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Where it is anchored.
    pub x: f64,
    /// Its baseline.
    pub y: f64,
    /// The height of its capitals and the depth of its descenders together.
    pub size: f64,
    /// How it is anchored.
    pub anchor: Anchor,
    /// Whether it is bold.
    pub is_bold: bool,
    /// Its colour.
    pub colour: Colour,
    /// The words.
    pub words: String,
}

/// What a picture consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A filled rectangle: left, top, width, height.
    Rectangle([f64; 4], Colour),
    /// A line from (x, y) to (x, y) of a width.
    Line([f64; 4], f64, Colour),
    /// A text.
    Text(Text),
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// Its shapes, later ones over earlier ones.
    pub shapes: Vec<Shape>,
}

impl Scene {
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

/// What words are written in.
pub const INK: Colour = (31, 41, 55);
/// What lesser words are written in.
pub const PALE_INK: Colour = (107, 114, 128);
/// What lines behind the data are drawn in.
pub const RULE: Colour = (229, 231, 235);
/// What series are drawn in; the first is ours.
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
