//! The bills of pipes as stacked bars, with what was seen below and on them.

use super::Facts;
use super::svg::{self, Picture};
use crate::chart::Axis;
use crate::duration::human;
use crate::outcome::PipePromise;
use crate::simulate::Life;
use diapason_pipe::bill::{Bill, What};
use diapason_system::PipeDirection;

const LEFT: f64 = 110.0;
const ROW: f64 = 46.0;
const WIDTH: f64 = 960.0;

/// How high the bars are: what is planned, and what was seen.
const PLANNED: f64 = 18.0;
const SEEN: f64 = 7.0;

/// The bar of a pipe.
struct Bar<'a> {
    name: &'a str,
    /// The place on the page that tells the life of its slowest message.
    leads_to: String,
    bill: &'a Bill,
    /// The life of the message that took longest.
    worst: Option<&'a Life>,
    /// The longest that its reader or writer measured.
    seen: Option<u64>,
    nine: Option<u64>,
    wanted: Option<u64>,
}

impl Bar<'_> {
    fn end(&self) -> u64 {
        let marks = [self.seen, self.nine, self.wanted].into_iter().flatten();
        marks.fold(self.bill.total.0, u64::max)
    }

    /// Draws the bar. If a message was followed, the bar leads to its life.
    fn draw(&self, picture: &mut Picture, axis: &Axis, y: f64) {
        match self.worst {
            None => self.shapes(picture, axis, y),
            Some(life) => {
                let took = human(life.latency().0);
                let label = format!("{}: its slowest message took {took}", self.name);
                picture.link(&self.leads_to, &label, |picture| self.shapes(picture, axis, y));
            }
        }
    }

    fn shapes(&self, picture: &mut Picture, axis: &Axis, y: f64) {
        let x = |ns: u64| axis.place(ns as f64 / 1e6);
        picture.text((LEFT - 8.0, y + 17.0), "end", "", self.name);
        let mut stack = |y: f64, high: f64, stages: &[(What, u64, String)]| {
            let mut from = 0;
            for (what, took, hint) in stages {
                let size = ((x(from + took) - x(from)).max(0.5), high);
                let hint = format!("{}: {} ({hint})", what.name(), human(*took));
                picture.rectangle((x(from), y), size, &colour(*what), &hint);
                from += took;
            }
        };
        let items = self.bill.items().iter();
        let planned = items.clone().map(|item| (item.what, item.value.0, item.basis.to_string()));
        stack(y, PLANNED, &planned.collect::<Vec<_>>());
        if let Some(life) = self.worst {
            let hint = format!("message {}", life.number);
            let stages = items.map(|item| (item.what, life.took(item.what).0, hint.clone()));
            stack(y + PLANNED + 1.0, SEEN, &stages.collect::<Vec<_>>());
        }
        let marks = [
            (self.seen, "seen", "measured"),
            (self.nine, "nine", "[USB 2023, eq. 9]"),
            (self.wanted, "wanted", "wanted"),
        ];
        for (at, class, what) in marks {
            let Some(at) = at else { continue };
            picture.line((x(at), y - 5.0), (x(at), y + 29.0), class);
            let hint = format!("{what}: {}", human(at));
            picture.rectangle((x(at) - 3.0, y - 8.0), (6.0, 4.0), class, &hint);
        }
    }
}

/// Returns one bar for each pipe, and below it the message that took longest; nothing without any.
/// Pipes from devices and pipes to them have a picture and a legend each.
pub fn bills(facts: &Facts<'_>) -> String {
    let ways = [
        (PipeDirection::FromDevice, "the bill of every pipe from a device"),
        (PipeDirection::ToDevice, "the bill of every pipe to a device"),
    ];
    ways.into_iter().map(|(way, label)| of_way(facts, way, label)).collect()
}

fn of_way(facts: &Facts<'_>, way: PipeDirection, label: &str) -> String {
    let system = &facts.session.system;
    let promises = facts.session.promises();
    let piped = system.pipes.iter().zip(&facts.plan.pipes).zip(&facts.lives.seen);
    let bars: Vec<Bar<'_>> = piped
        .filter(|((pipe, _), _)| pipe.way == way)
        .filter_map(|((pipe, piped), seen)| {
            let promise = promises.iter().find(|promise| promise.name == pipe.name);
            let measured =
                |p: &PipePromise| Some(p.row(facts.outcome())?.whole_max_ns + p.least_ns);
            Some(Bar {
                name: &pipe.name,
                leads_to: facts.anchor("worst", &pipe.name),
                bill: piped.bill.as_ref().ok()?,
                worst: seen.worst.as_ref(),
                seen: promise.and_then(measured),
                nine: piped.equation_nine.map(|time| time.0),
                wanted: pipe.latency_ns,
            })
        })
        .collect();
    drawn(&bars, label)
}

fn drawn(bars: &[Bar<'_>], label: &str) -> String {
    let Some(longest) = bars.iter().map(Bar::end).max() else { return String::new() };
    let axis = Axis::up_to(longest as f64 / 1e6, LEFT, WIDTH - 20.0);
    let bottom = ROW * bars.len() as f64 + 8.0;
    let mut picture = Picture::of_bars(&axis, WIDTH, bottom);
    for (row, bar) in bars.iter().enumerate() {
        bar.draw(&mut picture, &axis, ROW * row as f64 + 12.0);
    }
    picture.finish(label) + &legend(bars.iter().map(|bar| bar.bill))
}

/// Returns the colour of an item; no two items have the same.
fn colour(what: What) -> String {
    svg::colour(What::ALL.iter().position(|it| *it == what).unwrap_or_default())
}

/// Returns the legend of the colours.
fn legend<'b>(bills: impl Iterator<Item = &'b Bill>) -> String {
    let mut used: Vec<What> = Vec::new();
    for item in bills.flat_map(Bill::items) {
        if !used.contains(&item.what) {
            used.push(item.what);
        }
    }
    let items = used.iter().map(|what| key(&colour(*what), what.name()));
    let marks = [("seen", "longest measured"), ("nine", "[USB 2023, eq. 9]"), ("wanted", "wanted")];
    let marks = marks.iter().map(|(class, what)| key(class, what));
    format!("<p class=\"legend\">{}</p>\n", items.chain(marks).collect::<String>())
}

/// Returns a colour and its name.
pub fn key(class: &str, what: &str) -> String {
    format!(
        "<span><svg viewBox=\"0 0 12 12\" class=\"key\" aria-hidden=\"true\">\
         <rect width=\"12\" height=\"12\" class=\"{class}\"/></svg>{what}</span> "
    )
}
