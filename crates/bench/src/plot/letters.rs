//! A typeface of strokes, so that pictures have words where no font is installed.
//!
//! A glyph is drawn with a round pen on a grid: the baseline is 0, small letters are 7 high, capitals 10, descenders
//! reach to -3. `M x y` moves the pen, `L x y` draws a line, `A x y rx ry from to` an arc around (x, y) between two
//! angles in degrees (counter-clockwise if they grow), `E x y rx ry` an ellipse, `P x y` a point.

/// The distance between two glyphs.
const SPACING: f64 = 2.2;
/// The advance of a space.
const SPACE: f64 = 3.6;
/// Units of the grid in a text of size 1.
const UNITS: f64 = 14.0;

/// Width and strokes of a glyph.
type Glyph = (f64, &'static str);

/// The strokes of a line of text as points of polylines, its baseline beginning at (0, 0), y growing downwards.
pub fn strokes(words: &str, size: f64) -> Vec<Vec<(f64, f64)>> {
    let scale = size / UNITS;
    let mut left = 0.0;
    let mut strokes = Vec::new();
    for character in words.chars() {
        let (width, drawing) = glyph(character);
        for stroke in trace(drawing) {
            strokes.push(stroke.into_iter().map(|(x, y)| ((left + x) * scale, -y * scale)).collect());
        }
        left += width + SPACING;
    }
    strokes
}

/// The width of a line of text.
pub fn width(words: &str, size: f64) -> f64 {
    let units: f64 = words.chars().map(|character| glyph(character).0 + SPACING).sum();
    (units - SPACING).max(0.0) * size / UNITS
}

/// Follows the commands of a glyph.
fn trace(drawing: &str) -> Vec<Vec<(f64, f64)>> {
    let mut words = drawing.split_whitespace();
    let mut strokes: Vec<Vec<(f64, f64)>> = Vec::new();
    while let Some(command) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
        match command {
            "M" | "P" => strokes.push(vec![(number(), number())]),
            "L" => {
                let point = (number(), number());
                strokes.last_mut().expect("a glyph begins by moving").push(point);
            }
            "E" => {
                let (centre, radii) = ((number(), number()), (number(), number()));
                strokes.push(arc(centre, radii, (0.0, 360.0)));
            }
            _ => {
                let (centre, radii) = ((number(), number()), (number(), number()));
                let points = arc(centre, radii, (number(), number()));
                match strokes.last_mut().filter(|stroke| stroke.last().is_some_and(|&end| is_near(end, points[0]))) {
                    Some(stroke) => stroke.extend(points),
                    None => strokes.push(points),
                }
            }
        }
    }
    strokes
}

fn arc(centre: (f64, f64), radii: (f64, f64), angles: (f64, f64)) -> Vec<(f64, f64)> {
    let steps = ((angles.1 - angles.0).abs() / 10.0).ceil().max(1.0);
    let angle = |step: f64| (angles.0 + (angles.1 - angles.0) * step / steps).to_radians();
    let point = |step: i32| angle(f64::from(step)).sin_cos();
    let points = (0..=steps as i32).map(point);
    points.map(|(sine, cosine)| (centre.0 + radii.0 * cosine, centre.1 + radii.1 * sine)).collect()
}

fn is_near(first: (f64, f64), second: (f64, f64)) -> bool {
    (first.0 - second.0).hypot(first.1 - second.1) < 0.7
}

#[rustfmt::skip]
fn glyph(character: char) -> Glyph {
    match character {
        ' ' | '\u{a0}' => (SPACE - SPACING, ""),
        'a' => (5.6, "E 2.8 3.5 2.8 3.5 M 5.6 7 L 5.6 0"),
        'b' => (5.6, "M 0 10 L 0 0 E 2.8 3.5 2.8 3.5"),
        'c' => (4.8, "A 2.8 3.5 2.8 3.5 48 312"),
        'd' => (5.6, "E 2.8 3.5 2.8 3.5 M 5.6 10 L 5.6 0"),
        'e' => (5.6, "M 0 3.6 L 5.6 3.6 A 2.8 3.5 2.8 3.5 0 315"),
        'f' => (3.6, "A 3.4 8.2 1.9 1.8 75 180 L 1.5 0 M 0 6.8 L 3.5 6.8"),
        'g' => (5.6, "E 2.8 3.5 2.8 3.5 M 5.6 7 L 5.6 -0.4 A 2.8 -0.4 2.8 2.6 0 -145"),
        'h' => (5.2, "M 0 10 L 0 0 M 0 4.2 A 2.6 4.2 2.6 2.8 180 0 L 5.2 0"),
        'i' => (0.4, "M 0.2 7 L 0.2 0 P 0.2 9.6"),
        'j' => (1.8, "M 1.8 7 L 1.8 -1.2 A 0 -1.2 1.8 1.8 0 -85 P 1.8 9.6"),
        'k' => (4.8, "M 0 10 L 0 0 M 4.6 7 L 0 2.7 M 1.8 4.4 L 4.8 0"),
        'l' => (0.4, "M 0.2 10 L 0.2 0"),
        'm' => (8.8, "M 0 7 L 0 0 M 0 4.6 A 2.2 4.6 2.2 2.4 180 0 L 4.4 0 M 4.4 4.6 A 6.6 4.6 2.2 2.4 180 0 L 8.8 0"),
        'n' => (5.2, "M 0 7 L 0 0 M 0 4.2 A 2.6 4.2 2.6 2.8 180 0 L 5.2 0"),
        'o' => (6.0, "E 3 3.5 3 3.5"),
        'p' => (5.6, "M 0 7 L 0 -3 E 2.8 3.5 2.8 3.5"),
        'q' => (5.6, "E 2.8 3.5 2.8 3.5 M 5.6 7 L 5.6 -3"),
        'r' => (3.0, "M 0 7 L 0 0 M 0 4.2 A 2.8 4.2 2.8 2.8 180 80"),
        's' => (4.4, "A 2.2 5.25 2 1.75 35 270 M 2.2 3.5 A 2.2 1.75 2.2 1.75 90 -150"),
        't' => (3.6, "M 1.5 9.2 L 1.5 1.8 A 3.3 1.8 1.8 1.8 180 275 M 0 6.8 L 3.5 6.8"),
        'u' => (5.2, "M 0 7 L 0 2.8 A 2.6 2.8 2.6 2.8 180 360 M 5.2 7 L 5.2 0"),
        'v' => (5.2, "M 0 7 L 2.6 0 L 5.2 7"),
        'w' => (8.0, "M 0 7 L 2 0 L 4 6.6 L 6 0 L 8 7"),
        'x' => (5.0, "M 0 7 L 5 0 M 5 7 L 0 0"),
        'y' => (5.2, "M 0 7 L 2.7 0.2 M 5.2 7 L 2.2 -1.6 A 0.6 -1.3 1.6 1.6 -10 -95"),
        'z' => (4.6, "M 0 7 L 4.6 7 L 0 0 L 4.6 0"),
        'A' => (7.6, "M 0 0 L 3.8 10 L 7.6 0 M 1.3 3.3 L 6.3 3.3"),
        'B' => (6.2, "M 0 5.3 L 3.4 5.3 A 3.4 7.65 2.4 2.35 -90 90 L 0 10 L 0 0 L 3.4 0 A 3.4 2.65 2.8 2.65 -90 90"),
        'C' => (7.6, "A 4.6 5 4.6 5 50 310"),
        'D' => (7.2, "M 0 0 L 0 10 L 2.6 10 A 2.6 5 4.6 5 90 -90 L 0 0"),
        'E' => (5.4, "M 5.4 10 L 0 10 L 0 0 L 5.4 0 M 0 5.2 L 4.8 5.2"),
        'F' => (5.2, "M 5.2 10 L 0 10 L 0 0 M 0 5.2 L 4.6 5.2"),
        'G' => (8.2, "A 4.6 5 4.6 5 50 325 L 8.2 4.6 L 5 4.6"),
        'H' => (7.0, "M 0 10 L 0 0 M 7 10 L 7 0 M 0 5.2 L 7 5.2"),
        'I' => (0.4, "M 0.2 10 L 0.2 0"),
        'J' => (4.0, "M 4 10 L 4 2.4 A 2 2.4 2 2.4 0 -165"),
        'K' => (6.2, "M 0 10 L 0 0 M 6 10 L 0 4 M 2.2 6.2 L 6.2 0"),
        'L' => (5.0, "M 0 10 L 0 0 L 5 0"),
        'M' => (8.6, "M 0 0 L 0 10 L 4.3 3 L 8.6 10 L 8.6 0"),
        'N' => (7.0, "M 0 0 L 0 10 L 7 0 L 7 10"),
        'O' => (9.2, "E 4.6 5 4.6 5"),
        'P' => (6.0, "M 0 0 L 0 10 L 3.3 10 A 3.3 7.3 2.7 2.7 90 -90 L 0 4.6"),
        'Q' => (9.2, "E 4.6 5 4.6 5 M 5.8 2.4 L 8.8 -0.8"),
        'R' => (6.4, "M 0 0 L 0 10 L 3.3 10 A 3.3 7.3 2.7 2.7 90 -90 L 0 4.6 M 3.2 4.6 L 6.4 0"),
        'S' => (6.0, "A 3 7.5 2.7 2.5 35 270 M 3 5 A 3 2.5 3 2.5 90 -155"),
        'T' => (7.0, "M 0 10 L 7 10 M 3.5 10 L 3.5 0"),
        'U' => (6.6, "M 0 10 L 0 3.3 A 3.3 3.3 3.3 3.3 180 360 L 6.6 10"),
        'V' => (7.4, "M 0 10 L 3.7 0 L 7.4 10"),
        'W' => (11.0, "M 0 10 L 2.75 0 L 5.5 9.6 L 8.25 0 L 11 10"),
        'X' => (6.8, "M 0 10 L 6.8 0 M 6.8 10 L 0 0"),
        'Y' => (7.0, "M 0 10 L 3.5 5 L 7 10 M 3.5 5 L 3.5 0"),
        'Z' => (6.2, "M 0 10 L 6.2 10 L 0 0 L 6.2 0"),
        '0' => (5.8, "E 2.9 5 2.9 5"),
        '1' => (5.8, "M 0.9 8 L 3.3 10 L 3.3 0"),
        '2' => (5.8, "A 2.9 7.2 2.7 2.8 165 -35 L 0.2 0 L 5.8 0"),
        '3' => (5.8, "A 2.7 7.6 2.4 2.4 150 -90 A 2.7 2.6 2.9 2.6 90 -150"),
        '4' => (5.8, "M 4.4 0 L 4.4 10 L 0 3 L 5.9 3"),
        '5' => (5.8, "M 5 10 L 1 10 L 0.6 5.4 A 2.7 3.15 3 3.15 132 -150"),
        '6' => (5.8, "E 2.9 3.1 2.9 3.1 M 0 3.1 A 5.2 3.1 5.2 6.9 180 97"),
        '7' => (5.8, "M 0 10 L 5.8 10 L 2 0"),
        '8' => (5.8, "E 2.9 7.65 2.4 2.35 E 2.9 2.65 2.9 2.65"),
        '9' => (5.8, "E 2.9 6.9 2.9 3.1 M 5.8 6.9 A 0.6 6.9 5.2 6.9 0 -83"),
        '.' => (0.6, "P 0.3 0.1"),
        ',' => (0.8, "M 0.6 0.2 L 0 -1.8"),
        ':' => (0.6, "P 0.3 0.4 P 0.3 6"),
        ';' => (0.8, "M 0.6 0.4 L 0 -1.6 P 0.6 6"),
        '!' => (0.6, "M 0.3 10 L 0.3 3 P 0.3 0.1"),
        '?' => (5.0, "A 2.5 7.6 2.4 2.4 165 -50 L 2.5 4.6 L 2.5 3 P 2.5 0.1"),
        '\'' => (0.6, "M 0.3 10 L 0.3 7.4"),
        '"' => (2.2, "M 0.3 10 L 0.3 7.4 M 2 10 L 2 7.4"),
        '-' => (3.4, "M 0 3.7 L 3.4 3.7"),
        '–' => (5.4, "M 0 3.7 L 5.4 3.7"),
        '_' => (6.0, "M 0 -1.4 L 6 -1.4"),
        '+' => (5.6, "M 0 4 L 5.6 4 M 2.8 6.8 L 2.8 1.2"),
        '=' => (5.6, "M 0 5.2 L 5.6 5.2 M 0 2.6 L 5.6 2.6"),
        '×' => (4.4, "M 0 6.2 L 4.4 1.8 M 4.4 6.2 L 0 1.8"),
        '/' => (4.4, "M 0 -1 L 4.4 10.6"),
        '(' => (2.2, "A 6 4 6 7.4 118 242"),
        ')' => (2.2, "A -3.8 4 6 7.4 62 -62"),
        '%' => (8.4, "E 1.8 7.8 1.8 2.2 E 6.6 2.2 1.8 2.2 M 6.8 10 L 1.6 0"),
        '<' => (5.0, "M 5 7 L 0 4 L 5 1"),
        '>' => (5.0, "M 0 7 L 5 4 L 0 1"),
        'µ' => (5.2, "M 0 7 L 0 -3 M 0 2.8 A 2.6 2.8 2.6 2.8 180 360 M 5.2 7 L 5.2 0"),
        _ => (5.0, "M 0 0 L 0 8 L 5 8 L 5 0 L 0 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_ascii_character_that_charts_use_has_a_glyph_of_its_own() {
        let unknown = glyph('\u{1}').1;
        let used = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(".,:;!?'\"-_+=/()%<>".chars());
        for character in used {
            assert_ne!(glyph(character).1, unknown, "{character}");
        }
    }

    #[test]
    fn strokes_stay_within_the_width_of_the_words() {
        for words in ["Hamburgefonstiv", "0123456789", "AND k 1,000 (us)"] {
            let points: Vec<(f64, f64)> = strokes(words, 14.0).concat();
            let end = width(words, 14.0);
            assert!(
                points.iter().all(|&(x, y)| (-1.0..end + 1.0).contains(&x) && (-11.0..4.0).contains(&y)),
                "{words}"
            );
        }
        assert_eq!(width("", 14.0), 0.0);
    }
}
