//! Paints a scene as SVG with text elements, or as PNG: painted larger, then averaged down for smooth edges.

use super::font;
use super::scene::{Anchor, Colour, Scene, Shape, Text};
use crate::error::{BenchError, Result};
use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontFamily, FontStyle, IntoFont, RGBColor, ShapeStyle, TextStyle};
use std::path::Path;

/// Pixels of the PNG for each point.
const PIXELS: u32 = 2;
/// How much larger the PNG is painted before it is averaged down.
const SMOOTHING: u32 = 3;

/// Writes a scene as SVG.
pub fn write_svg(scene: &Scene, path: &Path) -> Result<()> {
    let mut text = String::new();
    let mut backend = SVGBackend::with_string(&mut text, size(scene, 1));
    paint(scene, &mut backend, 1.0, svg_text).map_err(refuse(path))?;
    backend.present().map_err(refuse(path))?;
    drop(backend);
    std::fs::write(path, text).map_err(BenchError::io(path))
}

/// Writes a scene as PNG.
pub fn write_png(scene: &Scene, path: &Path) -> Result<()> {
    let (width, height) = size(scene, PIXELS * SMOOTHING);
    let mut pixels = vec![255; width as usize * height as usize * 3];
    let mut backend = BitMapBackend::with_buffer(&mut pixels, (width, height));
    paint(scene, &mut backend, f64::from(PIXELS * SMOOTHING), bitmap_text).map_err(refuse(path))?;
    drop(backend);
    let size = size(scene, PIXELS);
    let mut backend = BitMapBackend::new(path, size);
    backend.blit_bitmap((0, 0), size, &average(&pixels, width as usize)).map_err(refuse(path))?;
    backend.present().map_err(refuse(path))
}

fn size(scene: &Scene, scale: u32) -> (u32, u32) {
    (scene.width.ceil() as u32 * scale, scene.height.ceil() as u32 * scale)
}

fn refuse<E: ToString>(path: &Path) -> impl FnOnce(E) -> BenchError {
    move |error| BenchError::File { path: path.to_owned(), what: format!("cannot draw: {}", error.to_string()) }
}

/// The result of painting; the error is that of a backend, in words.
type Painted = Result<(), String>;

/// Paints all shapes on a white background. Backends differ in how they write text.
fn paint<B: DrawingBackend>(
    scene: &Scene,
    backend: &mut B,
    scale: f64,
    write: fn(&mut B, &Text, f64) -> Painted,
) -> Painted {
    let background = Shape::Rectangle([0.0, 0.0, scene.width, scene.height], (255, 255, 255));
    let point = |x: f64, y: f64| ((x * scale).round() as i32, (y * scale).round() as i32);
    for shape in [&background].into_iter().chain(&scene.shapes) {
        match shape {
            Shape::Rectangle([x, y, width, height], colour) => {
                backend.draw_rect(point(*x, *y), point(x + width, y + height), &style(*colour, 1.0), true)
            }
            Shape::Line([x0, y0, x1, y1], width, colour) => {
                backend.draw_line(point(*x0, *y0), point(*x1, *y1), &style(*colour, width * scale))
            }
            Shape::Text(text) => {
                write(backend, text, scale)?;
                Ok(())
            }
        }
        .map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn rgb((red, green, blue): Colour) -> RGBColor {
    RGBColor(red, green, blue)
}

fn style(colour: Colour, width: f64) -> ShapeStyle {
    rgb(colour).filled().stroke_width(width.round().max(1.0) as u32)
}

fn svg_text(backend: &mut SVGBackend<'_>, text: &Text, _: f64) -> Painted {
    let anchor = match text.anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    let weight = if text.is_bold { FontStyle::Bold } else { FontStyle::Normal };
    let colour = rgb(text.colour);
    // The backend divides sizes by 1.24, and moves the baseline of a bottom-anchored text up by half an x-height.
    let style = TextStyle::from((FontFamily::Name("Noto Sans, sans-serif"), text.size * 1.24, weight).into_font())
        .pos(Pos::new(anchor, VPos::Bottom))
        .color(&colour);
    let baseline = text.y + text.size * 0.26;
    let written = backend.draw_text(&text.words, &style, (text.x.round() as i32, baseline.round() as i32));
    written.map_err(|error| error.to_string())
}

fn bitmap_text(backend: &mut BitMapBackend<'_>, text: &Text, scale: f64) -> Painted {
    let anchor = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => 0.5,
        Anchor::End => 1.0,
    };
    let mut painted = Ok(());
    let mut put = |at, coverage: f32| {
        let pixel = backend.draw_pixel(at, rgb(text.colour).mix(f64::from(coverage)).to_backend_color());
        painted = std::mem::replace(&mut painted, Ok(())).and(pixel);
    };
    font::draw(text, scale, anchor, &mut put);
    painted.map_err(|error| error.to_string())
}

/// Averages squares of pixels.
fn average(pixels: &[u8], width: usize) -> Vec<u8> {
    let side = SMOOTHING as usize;
    let (columns, rows) = (width / side, pixels.len() / 3 / width / side);
    let mut averaged = Vec::with_capacity(columns * rows * 3);
    for row in 0..rows {
        for column in 0..columns {
            for channel in 0..3 {
                let square = (0..side * side).map(|at| {
                    let (y, x) = (row * side + at / side, column * side + at % side);
                    u32::from(pixels[(y * width + x) * 3 + channel])
                });
                averaged.push((square.sum::<u32>() / (side * side) as u32) as u8);
            }
        }
    }
    averaged
}

#[cfg(test)]
mod tests {
    use super::super::{Bar, Chart, Group, Line, LineChart, Picture};

    #[test]
    fn a_bar_chart_becomes_a_png_and_an_svg() {
        let folder = tempfile::tempdir().unwrap();
        let bars = [Bar { series: 0, value: 2.5, range: Some((2.0, 3.0)) }, Bar::new(1, 4.0)];
        let chart = Chart::new("Title & more", "subtitle", "s").series(&["lanner", "tantivy"]);
        Picture::from(chart.groups([Group::new("OR k 10", bars)])).write(folder.path(), "chart").unwrap();
        let png = std::fs::read(folder.path().join("chart.png")).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xae\x42\x60\x82"));
        assert!(png.len() > 5000, "{} bytes are too few for words and bars", png.len());
        let svg = std::fs::read_to_string(folder.path().join("chart.svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("Title &amp; more") && svg.matches("<rect").count() >= 5, "{svg}");
        assert!(svg.contains("<text") && svg.contains("Noto Sans, sans-serif"), "{svg}");
    }

    #[test]
    fn a_line_chart_becomes_a_png_and_an_svg() {
        let folder = tempfile::tempdir().unwrap();
        let line = Line::new("bitpack", [(1.0, 2.0), (64.0, 9.0), (4096.0, 5.0)]);
        let chart = LineChart::new("Decoding", "", ["", ""]).lines([line]);
        Picture::from(chart).write(folder.path(), "lines").unwrap();
        assert!(folder.path().join("lines.png").metadata().unwrap().len() > 5000);
        let svg = std::fs::read_to_string(folder.path().join("lines.svg")).unwrap();
        assert!(svg.contains("Decoding") && svg.matches("<line").count() >= 2, "{svg}");
    }
}
