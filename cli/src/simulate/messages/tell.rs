//! The life of a message in words.

use super::life::{During, Followed, Life, StageSpan};
use super::wire::Waits;
use crate::names::Names;
use crate::simulate::explain::{Cast, doing, shown, standing, sums};
use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_core::{Standing, Wait};
use diapason_pipe::bill::What;

/// Most items that are shown one by one.
const SHOWN: usize = 60;

/// The names on a core: of its threads, and of everything else.
pub type Called<'a> = (&'a Cast, &'a Names);

/// Returns items in order of time, then what the stages took, then sums by kind. `called` has the
/// names on a part of the run, or on the core of the server.
#[must_use]
pub fn render<'a>(life: &Life, pipe: &str, called: impl Fn(Option<usize>) -> Called<'a>) -> String {
    let words = |item: &StageSpan| words(item, called(life.part(item.stage)));
    let promised = life.bound.map(|bound| format!(" (at most {} promised)", shown(bound)));
    let (begun, ended) = match (life.to_device, life.message) {
        (true, _) => ("written", "known to be through"),
        (false, Followed::Run { .. }) => ("due", "read"),
        (false, _) => ("in the device", "read"),
    };
    let mut text = format!(
        "message {} of {pipe}, {}: {begun} at {}, {ended} {} later{}\n\n",
        life.number,
        life.message.words(),
        shown(life.from),
        shown(life.latency()),
        promised.unwrap_or_default(),
    );
    let right = Align::Right;
    let mut rows = TextTable::new(&[
        ("at", right),
        ("for", right),
        ("stage", Align::Left),
        ("what happens", Align::Left),
        ("whose turn it is", Align::Left),
    ]);
    for item in life.items.iter().take(SHOWN) {
        let (what, whose) = words(item);
        let times = [item.from - life.from, item.to - item.from].map(shown);
        let [at, length] = times;
        rows.row(vec![at, length, item.stage.name().to_owned(), what, whose]);
    }
    text += &rows.render();
    if life.items.len() > SHOWN {
        text += &format!("and {} more\n", life.items.len() - SHOWN);
    }
    let kinds = life.items.iter().map(|item| {
        let (what, whose) = words(item);
        let stage = item.stage.name();
        let whose = if whose.is_empty() { whose } else { format!(": {whose}") };
        (format!("{stage}{whose}: {what}"), item.to - item.from)
    });
    text + "\n" + &stages(life) + "\n" + &sums(kinds)
}

/// Returns the time of each stage, and its end beside the latest that the plan says. A message that
/// is early at a stage may wait there for longer than a late one.
fn stages(life: &Life) -> String {
    let (right, left) = (Align::Right, Align::Left);
    let mut rows =
        TextTable::new(&[("took", right), ("after", right), ("planned", right), ("stage", left)]);
    let planned = |value: Option<Nanos>| value.map_or(String::from("-"), shown);
    let (mut after, mut latest) = (Nanos::ZERO, Nanos::ZERO);
    for stage in What::ALL {
        let took = life.took(stage);
        let most = life.bill.and_then(|bill| bill.item(stage)).map(|item| item.value);
        if took == Nanos::ZERO && most.is_none() {
            continue;
        }
        (after, latest) = (after + took, latest + most.unwrap_or_default());
        let by_plan = planned(life.bill.map(|_| latest));
        rows.row(vec![shown(took), shown(after), by_plan, stage.name().to_owned()]);
    }
    rows.render()
}

/// Returns an event in words, with the thread that is to continue with the message.
fn words(item: &StageSpan, (cast, names): Called<'_>) -> (String, String) {
    match item.during {
        During::Pipe => (String::from("messages before it"), String::new()),
        During::Frames => (String::from("frames before it"), String::new()),
        During::Frame => (String::from("its frame"), String::new()),
        During::Device(waits) => (waiting(waits), String::new()),
        During::NotNow => (String::from("the device said \"not now\""), String::new()),
        During::Packet => (String::from("its packet"), String::new()),
        During::Transfer => (String::from("the rest of its transfer"), String::new()),
        During::Interval => (String::from("no interrupt yet"), String::new()),
        During::Processor(thread, span)
            if item.stage == What::Look && span.standing == Standing::Waiting(Wait::Time) =>
        {
            (doing(&span, cast, names), format!("{} sleeps", cast.name(thread, names)))
        }
        During::Processor(thread, item) => {
            let whose =
                format!("{} {}", cast.name(thread, names), standing(&item, thread, cast, names));
            (doing(&item, cast, names), whose)
        }
    }
}

fn waiting(waits: Waits) -> String {
    match waits {
        Waits::NoTransfer => String::from("no transfer is queued"),
        Waits::Before => String::from("packets before it"),
        Waits::Others(device, address) => {
            let way = if address & 0x80 == 0 { "out" } else { "in" };
            format!("packet of device {device}, {way} {}", address & 0xf)
        }
        Waits::SlotEnds => String::from("the microframe ends too soon"),
        Waits::Free => String::from("nothing on the bus"),
    }
}
