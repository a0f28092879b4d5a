//! Horizontal bars in groups, each with the spread of its runs.

use super::font;
use super::scene::{Anchor, INK, LABEL, MARGIN, PALE_INK, RULE, SERIES, Scene, Shape, TICK, WIDTH};
use crate::result::Measurement;
use crate::table::{count, number};

/// A bar chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    pub title: String,
    /// What the bars show and which direction is better.
    pub subtitle: String,
    /// The names of the series, in the order of their colours.
    pub series: Vec<String>,
    pub unit: String,
    /// The groups from top to bottom.
    pub groups: Vec<Group>,
}

/// Bars that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub label: String,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    pub series: usize,
    pub value: f64,
    /// The minimum and the maximum of the runs.
    pub range: Option<(f64, f64)>,
}

const BAR: f64 = 18.0;
const BAR_GAP: f64 = 4.0;
const GROUP_GAP: f64 = 16.0;
/// Space for the number behind the longest bar.
const NUMBER_WIDTH: f64 = 78.0;

impl Bar {
    pub fn new(series: usize, value: f64) -> Bar {
        Bar { series, value, range: None }
    }

    /// Takes median, minimum and maximum from a measurement.
    pub fn with_range(series: usize, row: &Measurement, [value, least, most]: [&str; 3]) -> Bar {
        Bar { series, value: row.value(value), range: Some((row.value(least), row.value(most))) }
    }
}

impl Group {
    pub fn new(label: impl Into<String>, bars: impl IntoIterator<Item = Bar>) -> Group {
        Group { label: label.into(), bars: bars.into_iter().collect() }
    }

    /// One bar for each series, in their order.
    pub fn of_series(label: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Group {
        Group::new(label, (0..).zip(values).map(|(series, value)| Bar::new(series, value)))
    }

    fn height(&self) -> f64 {
        self.bars.len() as f64 * (BAR + BAR_GAP) - BAR_GAP
    }
}

impl Chart {
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>, unit: &str) -> Chart {
        Chart { title: title.into(), subtitle: subtitle.into(), unit: unit.to_owned(), ..Chart::default() }
    }

    pub fn series<T: ToString>(self, names: &[T]) -> Chart {
        Chart { series: names.iter().map(T::to_string).collect(), ..self }
    }

    pub fn groups(self, groups: impl IntoIterator<Item = Group>) -> Chart {
        Chart { groups: groups.into_iter().collect(), ..self }
    }

    /// Lays the chart out.
    pub(super) fn scene(&self) -> Scene {
        let mut scene = Scene::titled(&self.title, &self.subtitle);
        let mut top = MARGIN + 56.0;
        if self.series.len() > 1 {
            top = self.draw_legend(&mut scene, top) + 28.0;
        }
        let widest = self.groups.iter().map(|group| font::width(&group.label, LABEL)).fold(0.0, f64::max);
        let left = MARGIN + widest + 14.0;
        let right = WIDTH - MARGIN - NUMBER_WIDTH;
        let bottom = top + self.groups.iter().map(|group| group.height() + GROUP_GAP).sum::<f64>();
        let step = tick_step(self.largest());
        let scale = (right - left) / ((self.largest() / step).ceil().max(1.0) * step);
        let x_of = |value: f64| left + value * scale;
        self.draw_axis(&mut scene, &x_of, step, [top - 6.0, bottom - 4.0]);
        let mut y = top + GROUP_GAP / 2.0 - 4.0;
        for group in &self.groups {
            let label = scene.text(left - 12.0, y + group.height() / 2.0 + LABEL * 0.34, LABEL, &group.label);
            label.anchor = Anchor::End;
            for (at, bar) in group.bars.iter().enumerate() {
                draw_bar(&mut scene, bar, &x_of, y + at as f64 * (BAR + BAR_GAP));
            }
            y += group.height() + GROUP_GAP;
        }
        scene.height = bottom + 38.0;
        scene
    }

    fn largest(&self) -> f64 {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let largest = bars.map(|bar| bar.range.map_or(bar.value, |range| range.1.max(bar.value))).fold(0.0, f64::max);
        if largest > 0.0 && largest.is_finite() { largest } else { 1.0 }
    }

    /// Draws the legend in as many rows as needed; returns the position of the last row.
    fn draw_legend(&self, scene: &mut Scene, mut y: f64) -> f64 {
        let mut x = MARGIN;
        for (at, name) in self.series.iter().enumerate() {
            if x > MARGIN && x + 18.0 + font::width(name, LABEL) > WIDTH - MARGIN {
                (x, y) = (MARGIN, y + 22.0);
            }
            scene.shapes.push(Shape::Rectangle([x, y - 3.0, 12.0, 12.0], SERIES[at % SERIES.len()]));
            scene.text(x + 18.0, y + 7.6, LABEL, name);
            x += 18.0 + font::width(name, LABEL) + 24.0;
        }
        y
    }

    fn draw_axis(&self, scene: &mut Scene, x_of: &dyn Fn(f64) -> f64, step: f64, [top, bottom]: [f64; 2]) {
        let ticks = (self.largest() / step).ceil().max(1.0) as usize;
        for tick in 0..=ticks {
            let value = tick as f64 * step;
            let x = x_of(value);
            let colour = if tick == 0 { PALE_INK } else { RULE };
            scene.shapes.push(Shape::Line([x, top, x, bottom], 1.0, colour));
            let words = if tick == ticks { format!("{} {}", tick_label(value), self.unit) } else { tick_label(value) };
            let label = scene.text(x, bottom + 18.0, TICK, words);
            (label.anchor, label.colour) = (Anchor::Middle, PALE_INK);
        }
    }
}

fn draw_bar(scene: &mut Scene, bar: &Bar, x_of: &dyn Fn(f64) -> f64, y: f64) {
    let colour = SERIES[bar.series % SERIES.len()];
    let (left, end) = (x_of(0.0), x_of(bar.value));
    scene.shapes.push(Shape::Rectangle([left, y, (end - left).max(1.0), BAR], colour));
    let mut label_x = end;
    if let Some((least, most)) = bar.range {
        let (from, to, middle) = (x_of(least), x_of(most), y + BAR / 2.0);
        if to - from >= 2.0 {
            scene.shapes.push(Shape::Line([from, middle, to, middle], 1.4, INK));
            for x in [from, to] {
                scene.shapes.push(Shape::Line([x, middle - 4.0, x, middle + 4.0], 1.4, INK));
            }
        }
        label_x = label_x.max(to);
    }
    scene.text(label_x + 8.0, y + BAR / 2.0 + LABEL * 0.34, LABEL, number(bar.value)).is_bold = true;
}

/// Returns a distance of 1, 2 or 5 times a power of ten that gives four to eight ticks.
pub(super) fn tick_step(largest: f64) -> f64 {
    let rough = largest / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * power >= rough * 0.999);
    nice.unwrap_or(10.0) * power
}

/// Formats the number at a tick.
pub(super) fn tick_label(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded >= 1000.0 { count(rounded as u64) } else { rounded.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!([0.7, 4.2, 18.0, 990.0].map(tick_step), [0.2, 1.0, 5.0, 200.0]);
        assert_eq!([0.2 * 3.0, 1500.0].map(tick_label), ["0.6", "1,500"]);
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let scene = Chart::default().groups([Group::of_series("a", [1.0, 3.0])]).scene();
        let widths: Vec<f64> = scene
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Rectangle([_, _, width, _], _) => Some(*width),
                _ => None,
            })
            .collect();
        assert!((widths[1] / widths[0] - 3.0).abs() < 1e-9);
    }
}
