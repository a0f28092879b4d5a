//! Lines over a logarithmic or linear x axis.

use super::bars::{tick_label, tick_step};
use super::font;
use super::scene::{Anchor, LABEL, MARGIN, PALE_INK, RULE, SERIES, Scene, Shape, TICK, WIDTH};
use crate::result::Measurement;

/// A line chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    pub title: String,
    /// What the lines show and which direction is better.
    pub subtitle: String,
    pub x_label: String,
    pub unit: String,
    /// Whether the y axis is logarithmic too; values that are not positive are left out then.
    pub is_logarithmic: bool,
    /// Whether the x axis is linear and starts at 0.
    pub is_linear: bool,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    pub label: String,
    /// Points from left to right; on a logarithmic axis x is at least 1.
    pub points: Vec<(f64, f64)>,
}

const HEIGHT: f64 = 300.0;
/// Distance between the y axis and its numbers.
const GAP: f64 = 8.0;
/// Minimal space left of the y axis for its numbers, and right of the lines for their labels.
const SIDES: [f64; 2] = [48.0, 120.0];

impl Line {
    pub fn new(label: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Line {
        Line { label: label.into(), points: points.into_iter().collect() }
    }
}

/// Makes one line for each value of a label, with a point for each of its rows.
pub fn lines_by<T: AsRef<str>>(
    rows: &[Measurement],
    label: &str,
    values: &[T],
    point: impl Fn(&Measurement) -> (f64, f64),
) -> Vec<Line> {
    let line = |value: &T| {
        let of_value = rows.iter().filter(|row| row.label(label) == value.as_ref());
        Line::new(value.as_ref(), of_value.map(&point))
    };
    values.iter().map(line).collect()
}

impl LineChart {
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>, [x_label, unit]: [&str; 2]) -> LineChart {
        let (x_label, unit) = (x_label.to_owned(), unit.to_owned());
        LineChart { title: title.into(), subtitle: subtitle.into(), x_label, unit, ..LineChart::default() }
    }

    /// A chart whose y axis is logarithmic too.
    pub fn logarithmic(title: impl Into<String>, subtitle: impl Into<String>, axes: [&str; 2]) -> LineChart {
        LineChart { is_logarithmic: true, ..LineChart::new(title, subtitle, axes) }
    }

    /// The chart with a linear x axis.
    pub fn linear(self) -> LineChart {
        LineChart { is_linear: true, ..self }
    }

    pub fn lines(self, lines: impl IntoIterator<Item = Line>) -> LineChart {
        LineChart { lines: lines.into_iter().collect(), ..self }
    }

    /// Lays the chart out.
    pub(super) fn scene(&self) -> Scene {
        let mut scene = Scene::titled(&self.title, &self.subtitle);
        scene.height = MARGIN * 2.0 + 60.0 + HEIGHT + 40.0;
        let frame = self.frame();
        self.draw_axes(&mut scene, &frame);
        let mut ends = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let colour = SERIES[at % SERIES.len()];
            let is_shown = |point: &&(f64, f64)| !self.is_logarithmic || point.1 > 0.0;
            let points: Vec<(f64, f64)> =
                line.points.iter().filter(is_shown).map(|&point| frame.position(point)).collect();
            for pair in points.windows(2) {
                scene.shapes.push(Shape::Line([pair[0].0, pair[0].1, pair[1].0, pair[1].1], 2.0, colour));
            }
            for (x, y) in &points {
                scene.shapes.push(Shape::Rectangle([x - 2.5, y - 2.5, 5.0, 5.0], colour));
            }
            ends.extend(points.last().map(|&(_, y)| (y, at)));
        }
        // Labels stand at the ends of their lines, pushed apart where lines end close together.
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut heights: Vec<f64> = ends.iter().map(|(y, _)| y + LABEL * 0.34).collect();
        spread_labels(&mut heights, frame.top + HEIGHT);
        for ((_, at), y) in ends.into_iter().zip(heights) {
            let label = scene.text(frame.right + 12.0, y, LABEL, &self.lines[at].label);
            label.colour = SERIES[at % SERIES.len()];
        }
        scene
    }

    fn frame(&self) -> Frame {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let widest = points().map(|point| point.0).fold(if self.is_linear { 0.0 } else { 2.0 }, f64::max);
        let widest = if self.is_linear { widest } else { widest.log2() };
        let largest = points().map(|point| point.1).filter(|y| y.is_finite()).fold(0.0, f64::max);
        let step = tick_step(if largest > 0.0 { largest } else { 1.0 });
        let ticks = (largest / step).ceil().max(1.0);
        let least = points().map(|point| point.1).filter(|&y| y > 0.0).fold(f64::INFINITY, f64::min);
        let powers = (self.is_logarithmic && least.is_finite()).then(|| {
            let low = least.log10().floor();
            (low, largest.log10().ceil().max(low + 1.0))
        });
        let names = self.lines.iter().map(|line| font::width(&line.label, LABEL)).fold(SIDES[1], f64::max);
        let (right, top) = (WIDTH - MARGIN - names, MARGIN + 60.0);
        let (left, is_linear) = (MARGIN + SIDES[0], self.is_linear);
        let mut frame = Frame { left, right, top, is_linear, widest, step, ticks, powers };
        let labels = self.tick_labels(&frame).into_iter().map(|(_, words)| font::width(&words, TICK));
        frame.left = labels.map(|width| width + 2.0 * GAP).fold(frame.left, f64::max);
        frame
    }

    /// Returns the ticks of the y axis and their texts; the topmost text has the unit.
    fn tick_labels(&self, frame: &Frame) -> Vec<(f64, String)> {
        let mut labels: Vec<_> = frame.values().into_iter().map(|value| (value, tick_label(value))).collect();
        if let Some((_, words)) = labels.last_mut() {
            *words = format!("{words} {}", self.unit);
        }
        labels
    }

    fn draw_axes(&self, scene: &mut Scene, frame: &Frame) {
        let bottom = frame.top + HEIGHT;
        let ticks = self.tick_labels(frame);
        for (tick, (value, words)) in ticks.iter().enumerate() {
            let (_, y) = frame.position((1.0, *value));
            let colour = if tick == 0 { PALE_INK } else { RULE };
            scene.shapes.push(Shape::Line([frame.left, y, frame.right, y], 1.0, colour));
            let label = scene.text(frame.left - GAP, y + 4.0, TICK, words.as_str());
            (label.anchor, label.colour) = (Anchor::End, PALE_INK);
        }
        let lowest = ticks[0].0;
        for x in frame.marks() {
            let label = scene.text(frame.position((x, lowest)).0, bottom + 18.0, TICK, tick_label(x));
            (label.anchor, label.colour) = (Anchor::Middle, PALE_INK);
        }
        let label = scene.text((frame.left + frame.right) / 2.0, bottom + 38.0, TICK, &self.x_label);
        (label.anchor, label.colour) = (Anchor::Middle, PALE_INK);
    }
}

/// Moves the baselines of labels, sorted from the top, apart from each other; first down, then up from the bottom.
fn spread_labels(heights: &mut [f64], bottom: f64) {
    let gap = LABEL + 3.0;
    for at in 1..heights.len() {
        heights[at] = heights[at].max(heights[at - 1] + gap);
    }
    let mut limit = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(limit);
        limit = *height - gap;
    }
}

/// The area of the lines, which maps values to positions.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    is_linear: bool,
    /// The largest x, or its logarithm.
    widest: f64,
    step: f64,
    ticks: f64,
    /// The powers of ten at both ends of a logarithmic y axis.
    powers: Option<(f64, f64)>,
}

impl Frame {
    fn position(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let along = if self.is_linear { x } else { x.max(1.0).log2() };
        let across = self.left + (self.right - self.left) * along / self.widest.max(f64::MIN_POSITIVE);
        let up = match self.powers {
            Some((low, high)) => (y.log10() - low) / (high - low),
            None => y / (self.ticks * self.step),
        };
        (across, self.top + HEIGHT * (1.0 - up))
    }

    /// Returns the ticks of the x axis: of a logarithmic one every power of two if they fit, every second one
    /// otherwise.
    fn marks(&self) -> Vec<f64> {
        if self.is_linear {
            let step = tick_step(if self.widest > 0.0 { self.widest } else { 1.0 });
            return (0..=(self.widest / step) as usize).map(|mark| mark as f64 * step).collect();
        }
        let powers = (0..=self.widest as i32).step_by(if self.widest > 6.0 { 2 } else { 1 });
        powers.map(|power| 2f64.powi(power)).collect()
    }

    /// Returns the ticks of the y axis, from below.
    fn values(&self) -> Vec<f64> {
        match self.powers {
            Some((low, high)) => (low as i32..=high as i32).map(|power| 10f64.powi(power)).collect(),
            None => (0..=self.ticks as usize).map(|tick| tick as f64 * self.step).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_by_the_logarithm_of_x() {
        let line = Line::new("raw", [(1.0, 1.0), (16.0, 4.0), (256.0, 4.0)]);
        let scene = LineChart::default().lines([line]).scene();
        let points: Vec<(f64, f64)> = scene
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Rectangle([x, y, ..], _) => Some((*x, *y)),
                _ => None,
            })
            .collect();
        assert!((points[1].0 - points[0].0 - (points[2].0 - points[1].0)).abs() < 1e-9, "{points:?}");
        assert!(points[0].1 > points[1].1, "larger values are higher");
    }

    #[test]
    fn points_of_a_linear_axis_lie_by_x() {
        let line = Line::new("delays", [(0.0, 1.0), (1.0, 4.0), (4.5, 4.0)]);
        let frame = LineChart::default().linear().lines([line]).frame();
        let across = [0.0, 1.5, 4.5].map(|x| frame.position((x, 1.0)).0);
        assert_eq!((across[0], across[2]), (frame.left, frame.right));
        assert!(((across[1] - across[0]) * 3.0 - (across[2] - across[0])).abs() < 1e-9);
        assert_eq!(frame.marks(), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn labels_do_not_overlap_and_stay_above_the_axis() {
        let mut heights = [10.0, 12.0, 95.0, 98.0];
        spread_labels(&mut heights, 100.0);
        assert_eq!(heights, [10.0, 26.0, 84.0, 100.0]);
    }

    #[test]
    fn a_logarithmic_axis_goes_from_power_to_power() {
        let line = Line::new("raw", [(1.0, 0.2), (2.0, 2.0), (4.0, 20.0), (8.0, 0.0)]);
        let chart = LineChart::logarithmic("", "", ["", ""]).lines([line]);
        assert_eq!(chart.frame().values(), [0.1, 1.0, 10.0, 100.0]);
        let heights: Vec<f64> = [0.2, 2.0, 20.0].iter().map(|&y| chart.frame().position((1.0, y)).1).collect();
        assert!((heights[0] - heights[1] - (heights[1] - heights[2])).abs() < 1e-9, "{heights:?}");
        let points = chart.scene().shapes.iter().filter(|shape| matches!(shape, Shape::Rectangle(..))).count();
        assert_eq!(points, 3, "zero has no position");
    }
}
