//! Paints a scene: as SVG with real text, as PNG with strokes for letters, smoothed by painting it larger first.

use super::letters;
use super::scene::{Anchor, Colour, Scene, Shape, Text};
use crate::error::BenchError;
use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, FontStyle, IntoFont, RGBColor, ShapeStyle, TextStyle};
use std::path::Path;

/// Pixels of the PNG for each point.
const PIXELS: u32 = 2;
/// How much larger the PNG is painted before it is averaged down.
const SMOOTHING: u32 = 3;
/// The width of the pen relative to the size of a text: ordinary and bold.
const PEN: [f64; 2] = [0.088, 0.125];

/// Writes a scene as SVG.
pub fn write_svg(scene: &Scene, path: &Path) -> Result<(), BenchError> {
    let size = (scene.width.ceil() as u32, scene.height.ceil() as u32);
    let mut text = String::new();
    {
        let mut backend = SVGBackend::with_string(&mut text, size);
        paint_svg(scene, &mut backend)
            .and_then(|()| backend.present().map_err(|error| error.to_string()))
            .map_err(refuse(path))?;
    }
    std::fs::write(path, text).map_err(BenchError::io(path))
}

fn paint_svg(scene: &Scene, backend: &mut SVGBackend<'_>) -> Result<(), String> {
    let background = Shape::Rectangle([0.0, 0.0, scene.width, scene.height], (255, 255, 255));
    for shape in [&background].into_iter().chain(&scene.shapes) {
        let point = |x: f64, y: f64| (x.round() as i32, y.round() as i32);
        match shape {
            Shape::Rectangle([x, y, width, height], colour) => {
                backend.draw_rect(point(*x, *y), point(x + width, y + height), &filled(*colour), true)
            }
            Shape::Line([x0, y0, x1, y1], width, colour) => {
                let style = ShapeStyle { stroke_width: width.round().max(1.0) as u32, ..filled(*colour) };
                backend.draw_line(point(*x0, *y0), point(*x1, *y1), &style)
            }
            Shape::Text(text) => {
                // The backend divides sizes by 1.24 and puts a bottom-anchored baseline half an x-height higher.
                let size = text.size * 1.24;
                let style = if text.is_bold { FontStyle::Bold } else { FontStyle::Normal };
                let h_pos = match text.anchor {
                    Anchor::Start => HPos::Left,
                    Anchor::Middle => HPos::Center,
                    Anchor::End => HPos::Right,
                };
                let colour = RGBColor(text.colour.0, text.colour.1, text.colour.2);
                let style = TextStyle::from((FontFamily::SansSerif, size, style).into_font())
                    .pos(Pos::new(h_pos, VPos::Bottom))
                    .color(&colour);
                backend.draw_text(&text.words, &style, point(text.x, text.y + text.size * 0.26))
            }
        }
        .map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn filled((red, green, blue): Colour) -> ShapeStyle {
    ShapeStyle { color: RGBColor(red, green, blue).into(), filled: true, stroke_width: 1 }
}

/// Writes a scene as PNG.
pub fn write_png(scene: &Scene, path: &Path) -> Result<(), BenchError> {
    let (width, height) = ((scene.width.ceil() as u32) * PIXELS, (scene.height.ceil() as u32) * PIXELS);
    let large = (width * SMOOTHING, height * SMOOTHING);
    let mut pixels = vec![255; large.0 as usize * large.1 as usize * 3];
    {
        let mut backend = BitMapBackend::with_buffer(&mut pixels, large);
        paint_bitmap(scene, &mut backend).map_err(refuse(path))?;
    }
    let averaged = average(&pixels, large.0 as usize);
    let mut backend = BitMapBackend::new(path, (width, height));
    let copied = backend.blit_bitmap((0, 0), (width, height), &averaged);
    copied.and_then(|()| backend.present()).map_err(|error| error.to_string()).map_err(refuse(path))
}

fn paint_bitmap(scene: &Scene, backend: &mut BitMapBackend<'_>) -> Result<(), String> {
    let scale = f64::from(PIXELS * SMOOTHING);
    let point = |x: f64, y: f64| ((x * scale).round() as i32, (y * scale).round() as i32);
    for shape in &scene.shapes {
        match shape {
            Shape::Rectangle([x, y, width, height], colour) => {
                let (right, bottom) = point(x + width, y + height);
                rectangle(backend, point(*x, *y), (right - 1, bottom - 1), *colour)
            }
            Shape::Line([x0, y0, x1, y1], width, colour) if x0 != x1 && y0 != y1 => {
                let stroke = [(x0 * scale, y0 * scale), (x1 * scale, y1 * scale)];
                paint_stroke(backend, &stroke, width / 2.0 * scale, *colour)
            }
            // Upright and level lines are thin rectangles, whose edges are sharp.
            Shape::Line([x0, y0, x1, y1], width, colour) => {
                let half = width / 2.0;
                let (right, bottom) = point(x1 + half, y1 + half);
                rectangle(backend, point(x0 - half, y0 - half), (right - 1, bottom - 1), *colour)
            }
            Shape::Text(text) => paint_letters(text, backend, scale),
        }?;
    }
    Ok(())
}

fn rectangle(
    backend: &mut BitMapBackend<'_>,
    upper_left: (i32, i32),
    lower_right: (i32, i32),
    colour: Colour,
) -> Result<(), String> {
    backend.draw_rect(upper_left, lower_right, &filled(colour), true).map_err(|error| error.to_string())
}

/// Draws the strokes of a text.
fn paint_letters(text: &Text, backend: &mut BitMapBackend<'_>, scale: f64) -> Result<(), String> {
    let width = letters::width(&text.words, text.size);
    let left = match text.anchor {
        Anchor::Start => text.x,
        Anchor::Middle => text.x - width / 2.0,
        Anchor::End => text.x - width,
    };
    let radius = text.size * PEN[usize::from(text.is_bold)] / 2.0 * scale;
    for stroke in letters::strokes(&text.words, text.size) {
        let points: Vec<(f64, f64)> = stroke.iter().map(|(x, y)| ((left + x) * scale, (text.y + y) * scale)).collect();
        paint_stroke(backend, &points, radius, text.colour)?;
    }
    Ok(())
}

/// Draws a polyline with a round pen: a disc at every step along it.
fn paint_stroke(
    backend: &mut BitMapBackend<'_>,
    points: &[(f64, f64)],
    radius: f64,
    colour: Colour,
) -> Result<(), String> {
    let style = filled(colour);
    let mut put = |(x, y): (f64, f64)| {
        let centre = (x.round() as i32, y.round() as i32);
        let painted = backend.draw_circle(centre, radius.round().max(1.0) as u32, &style, true);
        painted.map_err(|error| error.to_string())
    };
    put(points[0])?;
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let steps = (to.0 - from.0).hypot(to.1 - from.1).ceil().max(1.0);
        for step in 1..=steps as u32 {
            let part = f64::from(step) / steps;
            put((from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part))?;
        }
    }
    Ok(())
}

/// Makes one pixel of each square of them.
fn average(pixels: &[u8], width: usize) -> Vec<u8> {
    let side = SMOOTHING as usize;
    let (columns, rows) = (width / side, pixels.len() / 3 / width / side);
    let mut averaged = Vec::with_capacity(columns * rows * 3);
    for row in 0..rows {
        for column in 0..columns {
            for channel in 0..3 {
                let squares = (0..side * side).map(|at| {
                    let (y, x) = (row * side + at / side, column * side + at % side);
                    u32::from(pixels[(y * width + x) * 3 + channel])
                });
                averaged.push((squares.sum::<u32>() / (side * side) as u32) as u8);
            }
        }
    }
    averaged
}

fn refuse(path: &Path) -> impl FnOnce(String) -> BenchError {
    move |message| BenchError::Plot { path: path.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::super::{Bar, Chart, Group, Line, LineChart, Picture, write};

    #[test]
    fn a_chart_becomes_a_png_and_an_svg() {
        let folder = tempfile::tempdir().unwrap();
        let bars =
            vec![Bar { series: 0, value: 2.5, range: Some((2.0, 3.0)) }, Bar { series: 1, value: 4.0, range: None }];
        let chart = Chart {
            title: "Title & more".to_owned(),
            subtitle: "subtitle".to_owned(),
            series: vec!["lanner".to_owned(), "tantivy".to_owned()],
            unit: "s".to_owned(),
            groups: vec![Group { label: "OR k 10".to_owned(), bars }],
        };
        write(&Picture::Bars(chart), folder.path(), "chart").unwrap();
        let png = std::fs::read(folder.path().join("chart.png")).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xae\x42\x60\x82"));
        assert!(png.len() > 5000, "{} bytes are too few for words and bars", png.len());
        let svg = std::fs::read_to_string(folder.path().join("chart.svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("Title &amp; more") && svg.matches("<rect").count() >= 5, "{svg}");
    }
    #[test]
    fn lines_become_a_png_and_an_svg() {
        let folder = tempfile::tempdir().unwrap();
        let line = Line { label: "bitpack".to_owned(), points: vec![(1.0, 2.0), (64.0, 9.0), (4096.0, 5.0)] };
        let chart = LineChart { title: "Decoding".to_owned(), lines: vec![line], ..LineChart::default() };
        write(&Picture::Lines(chart), folder.path(), "lines").unwrap();
        assert!(folder.path().join("lines.png").metadata().unwrap().len() > 5000);
        let svg = std::fs::read_to_string(folder.path().join("lines.svg")).unwrap();
        assert!(svg.contains("Decoding") && svg.matches("<line").count() >= 2, "{svg}");
    }
}
