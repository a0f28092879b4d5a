//! Noto Sans, regular and bold: the widths of texts, and their glyphs as pixels.
//!
//! plotters draws glyphs without their side bearings, which spaces letters unevenly; hence `ab_glyph` directly.

use super::scene::Text;
use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};
use std::sync::LazyLock;

static REGULAR: LazyLock<FontRef<'static>> = LazyLock::new(|| parse(ttf_noto_sans::REGULAR));
static BOLD: LazyLock<FontRef<'static>> = LazyLock::new(|| parse(ttf_noto_sans::BOLD));

fn parse(bytes: &'static [u8]) -> FontRef<'static> {
    FontRef::try_from_slice(bytes).expect("the font of the program is valid")
}

fn font(is_bold: bool) -> &'static FontRef<'static> {
    if is_bold { &BOLD } else { &REGULAR }
}

/// Lays out a line of text of a size in pixels per em, starting at the origin; also returns its width.
fn layout(words: &str, size: f64, is_bold: bool) -> (Vec<Glyph>, f32) {
    let font = font(is_bold);
    // A scale of ab_glyph is the height from ascent to descent.
    let em = font.units_per_em().expect("a TrueType font has units");
    let scaled = font.as_scaled(PxScale::from(size as f32 * font.height_unscaled() / em));
    let (mut x, mut previous, mut glyphs) = (0.0, None, Vec::new());
    for character in words.chars() {
        let id = scaled.glyph_id(character);
        x += previous.map_or(0.0, |previous| scaled.kern(previous, id));
        glyphs.push(id.with_scale_and_position(scaled.scale(), point(x, 0.0)));
        x += scaled.h_advance(id);
        previous = Some(id);
    }
    (glyphs, x)
}

/// Returns the width of a line of regular text.
pub fn width(words: &str, size: f64) -> f64 {
    f64::from(layout(words, size, false).1)
}

/// Calls `put` with every pixel of a scaled text and its coverage; `anchor` is the share of the width that lies left of
/// the text's point.
pub fn draw(text: &Text, scale: f64, anchor: f32, put: &mut dyn FnMut((i32, i32), f32)) {
    let (glyphs, width) = layout(&text.words, text.size * scale, text.is_bold);
    let (left, y) = ((text.x * scale) as f32 - width * anchor, (text.y * scale) as f32);
    for mut glyph in glyphs {
        glyph.position = point(left + glyph.position.x, y);
        if let Some(outline) = font(text.is_bold).outline_glyph(glyph) {
            let corner = outline.px_bounds().min;
            outline.draw(|x, y, coverage| put((corner.x as i32 + x as i32, corner.y as i32 + y as i32), coverage));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scene::Scene;
    use super::*;

    #[test]
    fn every_character_of_the_charts_has_a_glyph() {
        for character in (' '..='~').chain(['–', '×', 'µ', '…']) {
            for is_bold in [false, true] {
                assert_ne!(font(is_bold).glyph_id(character).0, 0, "{character}");
            }
        }
    }

    #[test]
    fn pixels_stay_within_the_width_of_the_text() {
        let end = width("Hamburgefonstiv 1,000", 100.0);
        let mut pixels = Vec::new();
        let mut scene = Scene::default();
        draw(scene.text(0.0, 0.0, 100.0, "Hamburgefonstiv 1,000"), 1.0, 0.0, &mut |at, _| pixels.push(at));
        assert!(pixels.iter().all(|&(x, y)| (0.0..end).contains(&f64::from(x)) && (-80..30).contains(&y)));
        assert!(pixels.iter().any(|&(x, _)| f64::from(x) > end - 10.0));
        assert_eq!(width("", 14.0), 0.0);
    }
}
