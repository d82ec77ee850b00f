//! Pictures of a report, as SVG: the roofline, and bars for each group of shapes.

use crate::compare::counterpart;
use crate::report::{Report, Row, figure};
use crate::shapes;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of every picture in pixels.
const WIDTH: u32 = 900;

/// Colours for one kind of background, which the pictures leave transparent.
pub struct Theme {
    /// `light` or `dark`: part of file names and classes.
    pub name: &'static str,
    ink: RGBColor,
    muted: RGBColor,
    grid: RGBColor,
    /// The colour of text on a bar.
    inside: RGBColor,
    series: [RGBColor; 8],
}

const fn rgb(hex: u32) -> RGBColor {
    RGBColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

/// Themes for light and for dark pages.
pub const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        ink: rgb(0x1f2328),
        muted: rgb(0x59636e),
        grid: rgb(0xd8dee4),
        inside: rgb(0xffffff),
        series: [
            rgb(0x0969da),
            rgb(0xd4691e),
            rgb(0x1a7f37),
            rgb(0x8250df),
            rgb(0xbf3989),
            rgb(0xa8820a),
            rgb(0x0e8a8a),
            rgb(0x6e7781),
        ],
    },
    Theme {
        name: "dark",
        ink: rgb(0xe6edf3),
        muted: rgb(0x9198a1),
        grid: rgb(0x3a424c),
        inside: rgb(0x0d1117),
        series: [
            rgb(0x58a6ff),
            rgb(0xf0883e),
            rgb(0x3fb950),
            rgb(0xbc8cff),
            rgb(0xf778ba),
            rgb(0xe3b341),
            rgb(0x39c5cf),
            rgb(0x8b949e),
        ],
    },
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

impl Theme {
    fn text(&self, size: i32, color: RGBColor, h: HPos) -> TextStyle<'static> {
        ("sans-serif", size).into_font().color(&color).pos(Pos::new(h, VPos::Center))
    }

    fn label(&self, h: HPos) -> TextStyle<'static> {
        self.text(13, self.muted, h)
    }

    fn series(&self, at: usize) -> RGBColor {
        self.series[at % self.series.len()]
    }

    /// The colour of a group of shapes, which is the same in every report.
    fn group(&self, name: &str) -> RGBColor {
        self.series(
            shapes::DEFAULT
                .iter()
                .position(|group| *group == name)
                .unwrap_or(self.series.len() - 1),
        )
    }
}

/// Draws on a picture of this height and returns its text.
fn picture(height: u32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String, String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        draw(&area).and_then(|()| area.present()).map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// A point's sign, filled or hollow: a circle for f32, a triangle for f16, a square for anything
/// else.
fn mark(area: &Area<'_>, at: (i32, i32), dtype: &str, color: RGBColor, filled: bool) -> Drawn {
    let style = if filled { color.mix(0.85).filled() } else { color.stroke_width(1) };
    let outline = match dtype {
        "f32" => return area.draw(&Circle::new(at, 5, style)),
        "f16" => vec![(0, -6), (6, 5), (-6, 5), (0, -6)],
        _ => vec![(-5, -5), (5, -5), (5, 5), (-5, 5), (-5, -5)],
    };
    match filled {
        true => area.draw(&(EmptyElement::at(at) + Polygon::new(outline, style))),
        false => area.draw(&(EmptyElement::at(at) + PathElement::new(outline, style))),
    }
}

/// Writes a power of ten, or a number between, in few digits.
fn short(number: &f64) -> String {
    match *number {
        n if n >= 1e4 => format!("{:.0}k", n / 1e3),
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 1.0 => format!("{}", (n * 10.0).round() / 10.0),
        n => format!("{}", (n * 1e4).round() / 1e4),
    }
}

/// Draws operations per byte against TFLOP/s, both logarithmic, under the ceilings: `report`
/// filled, `others` hollow.
///
/// # Errors
/// The errors of the plotting library.
pub fn roofline(report: &Report, others: &[Report], theme: &Theme) -> Result<String, String> {
    let ours = report.rows.iter().map(|row| (row, row.group.as_str(), true));
    let theirs = others.iter().flat_map(|other| {
        report
            .rows
            .iter()
            .filter_map(|row| Some((counterpart(row, other)?, row.group.as_str(), false)))
    });
    let points: Vec<(&Row, &str, bool)> = theirs.chain(ours).collect();
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| {
            (low.min(value), high.max(value))
        })
    };
    let (left, right) = range(&mut points.iter().map(|(row, ..)| row.intensity()));
    let (low, high) = range(&mut points.iter().map(|(row, ..)| row.tflops));
    let (left, right) = if left < right { (left / 1.6, right * 1.6) } else { (0.1, 1e4) };
    let peaks: Vec<(f64, &str)> = [
        (report.ceiling.peak_tflops, "f32"),
        (report.ceiling.peak_tflops_f16.unwrap_or(0.0), "f16"),
    ]
    .into();
    let peaks: Vec<_> = peaks.into_iter().filter(|(peak, _)| *peak > 0.0).collect();
    let roof = peaks.iter().map(|(peak, _)| *peak).fold(0.0, f64::max);
    let (low, high) = if low <= high { (low / 1.8, 1.8 * high.max(roof)) } else { (0.01, 100.0) };
    picture(560, |area| {
        let title = format!("Roofline: {} on {}", report.label(), report.adapter);
        area.draw(&Text::new(title, (14, 20), theme.text(17, theme.ink, HPos::Left)))?;
        let (plot, legend) = area.margin(36, 4, 4, 4).split_horizontally(690);
        let mut chart = ChartBuilder::on(&plot)
            .margin_right(10)
            .margin_left(8)
            .x_label_area_size(44)
            .y_label_area_size(58)
            .build_cartesian_2d((left..right).log_scale(), (low..high).log_scale())?;
        chart
            .configure_mesh()
            .bold_line_style(theme.grid)
            .light_line_style(TRANSPARENT)
            .axis_style(theme.muted)
            .label_style(("sans-serif", 13).into_font().color(&theme.muted))
            .axis_desc_style(("sans-serif", 14).into_font().color(&theme.ink))
            .x_desc("operations per byte")
            .y_desc("TFLOP/s")
            .x_label_formatter(&short)
            .y_label_formatter(&short)
            .draw()?;
        let slope = report.ceiling.peak_gbs * 1e-3;
        if slope > 0.0 && roof > 0.0 {
            let (from, to) = ((low / slope).max(left), (roof / slope).min(right));
            if from < to {
                let line = [(from, from * slope), (to, to * slope)];
                chart.draw_series(LineSeries::new(line, theme.ink.stroke_width(2)))?;
                let name = format!("{} GB/s", figure(report.ceiling.peak_gbs, 3));
                let at = ((from * to).sqrt(), (from * to).sqrt() * slope);
                chart.draw_series([
                    EmptyElement::at(at) + Text::new(name, (-8, -10), theme.label(HPos::Right))
                ])?;
            }
            for (peak, dtype) in &peaks {
                let from = (peak / slope).max(left);
                // Two roofs of the same height are drawn as one.
                let same = peaks.len() > 1 && peaks.iter().all(|(other, _)| other == peak);
                let name =
                    format!("{} TFLOP/s {}", figure(*peak, 3), if same { "" } else { dtype });
                chart.draw_series(LineSeries::new(
                    [(from, *peak), (right, *peak)],
                    theme.ink.stroke_width(2),
                ))?;
                chart.draw_series([EmptyElement::at((right, *peak))
                    + Text::new(name, (-4, -12), theme.label(HPos::Right))])?;
            }
        }
        for (row, group, own) in &points {
            let at = chart.backend_coord(&(row.intensity(), row.tflops));
            mark(area, at, &row.dtype, theme.group(group), *own)?;
        }
        roofline_legend(&legend, report, others, theme)
    })
}

fn roofline_legend(area: &Area<'_>, report: &Report, others: &[Report], theme: &Theme) -> Drawn {
    let mut y = 14;
    let mut entry = |gap: i32, dtype: &str, color: RGBColor, filled: bool, name: &str| {
        y += gap;
        mark(area, (14, y), dtype, color, filled)?;
        area.draw(&Text::new(name.to_owned(), (28, y), theme.label(HPos::Left)))?;
        y += 22;
        Ok(())
    };
    for (group, _) in report.groups() {
        entry(0, "", theme.group(group), true, group)?;
    }
    let mut dtypes: Vec<&str> = report.rows.iter().map(|row| row.dtype.as_str()).collect();
    dtypes.sort_unstable();
    dtypes.dedup();
    for (at, dtype) in dtypes.into_iter().enumerate() {
        entry(if at == 0 { 12 } else { 0 }, dtype, theme.muted, true, dtype)?;
    }
    for (at, other) in others.iter().enumerate() {
        entry(if at == 0 { 12 } else { 0 }, "f32", theme.muted, false, &other.label())?;
    }
    Ok(())
}

/// Rows of one group that have the same yardstick.
struct Panel<'a> {
    title: String,
    /// Ceiling in the panel's unit.
    peak: f64,
    rows: Vec<Bars<'a>>,
    value: fn(&Row) -> f64,
}

/// The name of a shape, and its row in each report that has it.
struct Bars<'a> {
    name: &'a str,
    found: Vec<(usize, &'a Row)>,
}

impl Bars<'_> {
    fn height(&self) -> i32 {
        BAR * self.found.len() as i32 + GAP
    }
}

impl Panel<'_> {
    fn bottom(&self) -> i32 {
        HEAD + self.rows.iter().map(Bars::height).sum::<i32>()
    }
}

const BAR: i32 = 14;
const GAP: i32 = 8;
/// Heights above and below the bars of a panel.
const HEAD: i32 = 30;
const FOOT: i32 = 14;
/// Left and right ends of the bars.
const LEFT: i32 = 190;
const RIGHT: i32 = WIDTH as i32 - 70;

/// Splits a group by dtype and by what bounds it.
fn panels<'a>(report: &Report, others: &'a [Report], rows: &[&'a Row]) -> Vec<Panel<'a>> {
    let mut panels: Vec<Panel<'a>> = Vec::new();
    for &row in rows {
        let moved = row.intensity() < report.ceiling.ridge(&row.dtype);
        let title = match moved {
            true => format!("{}, bound by bandwidth: GB/s", row.dtype),
            false if report.ceiling.peak_gbs > 0.0 => {
                format!("{}, bound by arithmetic: TFLOP/s", row.dtype)
            }
            false => format!("{}: TFLOP/s", row.dtype),
        };
        let theirs = others.iter().map(|other| counterpart(row, other));
        let found = [Some(row)].into_iter().chain(theirs).enumerate();
        let found = found.filter_map(|(at, row)| Some((at, row?))).collect();
        let bars = Bars { name: row.shape.trim_end_matches(&format!(":{}", row.dtype)), found };
        match panels.iter_mut().find(|panel| panel.title == title) {
            Some(panel) => panel.rows.push(bars),
            None => {
                let peak =
                    if moved { report.ceiling.peak_gbs } else { report.ceiling.peak(&row.dtype) };
                let value: fn(&Row) -> f64 = if moved { |row| row.gbs } else { |row| row.tflops };
                panels.push(Panel { title, peak, rows: vec![bars], value });
            }
        }
    }
    panels
}

/// Draws the bars of one group: each shape in `report`, and beside it in `others`.
///
/// # Errors
/// The errors of the plotting library.
pub fn bars(
    report: &Report,
    others: &[Report],
    group: &str,
    rows: &[&Row],
    theme: &Theme,
) -> Result<String, String> {
    let panels = panels(report, others, rows);
    let top = 64;
    let total = top + panels.iter().map(|panel| panel.bottom() + FOOT).sum::<i32>();
    picture(total as u32, |area| {
        let title = match shapes::about(group) {
            "" => group.to_owned(),
            about => format!("{group}: {about}"),
        };
        area.draw(&Text::new(title, (14, 20), theme.text(17, theme.ink, HPos::Left)))?;
        let mut x = 14;
        for (at, reported) in [report].into_iter().chain(others).enumerate() {
            let name = reported.label();
            // Letters of this size are about 7.5 pixels wide.
            let next = x + 44 + name.len() as i32 * 15 / 2;
            area.draw(&Rectangle::new([(x, 39), (x + 12, 51)], theme.series(at).filled()))?;
            area.draw(&Text::new(name, (x + 18, 45), theme.label(HPos::Left)))?;
            x = next;
        }
        let mut y = top;
        for panel in &panels {
            let height = panel.bottom() + FOOT;
            draw_panel(&area.clone().shrink((0, y), (WIDTH, height as u32)), panel, theme)?;
            y += height;
        }
        Ok(())
    })
}

fn draw_panel(area: &Area<'_>, panel: &Panel<'_>, theme: &Theme) -> Drawn {
    area.draw(&Text::new(panel.title.clone(), (14, 14), theme.text(14, theme.ink, HPos::Left)))?;
    let values =
        panel.rows.iter().flat_map(|bars| bars.found.iter().map(|(_, row)| (panel.value)(row)));
    let most = values.fold(0.0, f64::max);
    // A ceiling far above all bars would only make them short.
    let ceiling = Some(panel.peak).filter(|peak| *peak > 0.0 && *peak <= 2.5 * most);
    let scale = f64::from(RIGHT - LEFT) / most.max(ceiling.unwrap_or(0.0));
    let end = |value: f64| LEFT + ((value * scale) as i32).max(1);
    let bottom = panel.bottom();
    area.draw(&PathElement::new(vec![(LEFT, HEAD - 4), (LEFT, bottom)], theme.grid))?;
    if let Some(peak) = ceiling {
        let x = end(peak);
        area.draw(&DashedPathElement::new([(x, HEAD - 4), (x, bottom)], 4, 3, theme.muted))?;
        let name = format!("dashed: ceiling of {}", figure(peak, 3));
        area.draw(&Text::new(name, (RIGHT, 14), theme.text(12, theme.muted, HPos::Right)))?;
    }
    let mut y = HEAD;
    for bars in &panel.rows {
        let middle = y + (bars.height() - GAP) / 2;
        area.draw(&Text::new(bars.name.to_owned(), (LEFT - 8, middle), theme.label(HPos::Right)))?;
        for (bar, (at, row)) in bars.found.iter().enumerate() {
            let (value, y) = ((panel.value)(row), y + BAR * bar as i32);
            let x = end(value);
            area.draw(&Rectangle::new([(LEFT, y), (x, y + BAR - 1)], theme.series(*at).filled()))?;
            // Figures are inside a bar if it has room, to keep them off the ceiling's line.
            let (x, color, anchor) = if x > LEFT + 44 {
                (x - 5, theme.inside, HPos::Right)
            } else {
                (x + 5, theme.muted, HPos::Left)
            };
            area.draw(&Text::new(
                figure(value, 3),
                (x, y + BAR / 2),
                theme.text(12, color, anchor),
            ))?;
        }
        y += bars.height();
    }
    Ok(())
}
