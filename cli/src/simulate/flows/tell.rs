//! The messages of flows in words: the longest time at each stage, and the life of one message.

use super::follow::{FlowLife, FlowSeen, LostAt, SeenTime};
use crate::simulate::explain::shown;
use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_plan::{FlowBill, FlowStage};
use diapason_system::Hosts;
use serde_json::{Value, json};

/// A stage of a flow as one can see it: what lies between two events at links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowStep {
    /// The number of the host; none from one to the next.
    pub host: Option<usize>,
    /// The program, the server, or the cable and the server behind it.
    pub place: String,
    pub does: &'static str,
    /// The longest by the plan, and how long after its beginning a message has left the stage.
    pub planned: Nanos,
    pub planned_by_end: Nanos,
}

/// Returns the steps of a flow. The first program's own time is before them, and that of the
/// server that takes its messages if it is `mailed`: a message begins when it is given to a link.
#[must_use]
pub fn steps(bill: &FlowBill, mailed: bool, hosts: &Hosts) -> Vec<FlowStep> {
    let mut steps: Vec<FlowStep> = Vec::new();
    let mut cable: Option<FlowStep> = None;
    for item in bill.items.iter().skip(if mailed { 2 } else { 1 }) {
        let (planned, planned_by_end) = (item.value, item.after);
        let host = item.host;
        let step = |place, does| FlowStep { host, place, does, planned, planned_by_end };
        match item.stage {
            FlowStage::Cable => cable = Some(step(item.name.clone(), "crosses")),
            FlowStage::Told | FlowStage::Receives => {
                let Some(crossed) = &mut cable else { continue };
                crossed.planned += item.value;
                crossed.planned_by_end = item.after;
                if item.stage == FlowStage::Receives {
                    crossed.place = format!("{} to {}", crossed.place, item.place(hosts));
                    steps.extend(cable.take());
                }
            }
            FlowStage::Sends | FlowStage::Program => {
                steps.push(step(item.place(hosts), item.stage.word()));
            }
            // Messages over Ethernet are not followed here, and neither are those of a pipe.
            FlowStage::Clocks | FlowStage::Wire | FlowStage::Port | FlowStage::Pipe => {}
        }
    }
    steps
}

/// A flow with what was seen of it.
pub struct ToldFlow<'a> {
    /// Its number in the list of hosts.
    pub number: usize,
    pub name: &'a str,
    /// The bill from when its first program sends a message.
    pub bill: FlowBill,
    pub steps: Vec<FlowStep>,
    /// For each cable, the places at which a message can be lost.
    pub cables: Vec<[String; 3]>,
    /// The places at mailboxes, if it goes from one to another, in the order of `LostMail`.
    pub mail: [String; 6],
    pub seen: FlowSeen,
}

impl ToldFlow<'_> {
    /// Returns the steps with the times at each; none if no message was followed.
    fn timed(&self) -> impl Iterator<Item = (&FlowStep, &SeenTime)> {
        self.steps.iter().zip(&self.seen.stages)
    }

    /// Returns the name of a place at which messages are lost.
    fn place(&self, at: LostAt) -> &str {
        let (cable, place) = match at {
            LostAt::Server(cable) => (cable, 0),
            LostAt::Cable(cable) => (cable, 1),
            LostAt::Program(cable) => (cable, 2),
            LostAt::Mail(at) => return &self.mail[at as usize],
        };
        self.cables.get(cable).map_or("", |places| &places[place])
    }

    /// Returns where its messages are, as JSON; null if that is not known.
    fn books_to_json(&self) -> Value {
        let Some(books) = &self.seen.books else { return Value::Null };
        let lost =
            |(at, count): (&LostAt, &u64)| json!({ "where": self.place(*at), "messages": count });
        json!({
            "sent": books.sent,
            "delivered": books.delivered,
            "lost": books.lost.iter().map(lost).collect::<Vec<Value>>(),
            "late": books.late,
            "under_way": books.under_way,
            "strange": books.strange,
        })
    }

    /// Returns the result as JSON.
    pub fn to_json(&self) -> Value {
        let stage = |(step, seen): (&FlowStep, &SeenTime)| {
            json!({
                "where": step.place,
                "stage": step.does,
                "longest_ns": seen.within.0,
                "planned_ns": step.planned.0,
                "by_end_ns": seen.by_end.0,
                "planned_by_end_ns": step.planned_by_end.0,
            })
        };
        json!({
            "flow": self.name,
            "messages": self.seen.messages,
            "longest_ns": self.seen.worst.as_ref().map(|worst| worst.latency().0),
            "bound_ns": self.bill.total.0,
            "turned": json!({
                "messages": self.seen.turned.0,
                "longest_ns": self.seen.turned.1.0,
                "bound_ns": self.bill.longest.0,
            }),
            "books": self.books_to_json(),
            "stages": self.timed().map(stage).collect::<Vec<Value>>(),
        })
    }

    /// Returns the life of one of its messages, step by step.
    #[must_use]
    pub fn life(&self, life: &FlowLife) -> String {
        let (right, left) = (Align::Right, Align::Left);
        let mut rows = TextTable::new(&[
            ("at", right),
            ("took", right),
            ("after", right),
            ("planned", right),
            ("where", left),
            ("does", left),
        ]);
        for ((step, seen), end) in self.steps.iter().zip(life.stages()).zip(&life.ends) {
            let by_plan = shown(step.planned_by_end);
            let times =
                [shown(*end - seen.within), shown(seen.within), shown(seen.by_end), by_plan];
            rows.row([&times[..], &[step.place.clone(), step.does.to_owned()]].concat());
        }
        format!(
            "message {} of {}: given to its link at {}, done with {} later (at most {} after its \
             program has it)\n\n{}",
            life.number,
            self.name,
            shown(life.from),
            shown(life.latency()),
            shown(self.bill.total),
            rows.render()
        )
    }
}

/// Returns all flows as one table: the longest time at each stage, beside the plan.
#[must_use]
pub fn render(flows: &[ToldFlow<'_>]) -> String {
    let (right, left) = (Align::Right, Align::Left);
    let mut table = TextTable::new(&[
        ("flow", left),
        ("messages", right),
        ("where", left),
        ("does", left),
        ("longest", right),
        ("planned", right),
        ("by its end", right),
        ("planned", right),
    ]);
    for flow in flows {
        let mut head = [flow.name.to_owned(), flow.seen.messages.to_string()];
        let mut row = |cells: [String; 6]| {
            table.row([&std::mem::take(&mut head)[..], &cells[..]].concat());
        };
        for (step, seen) in flow.timed() {
            let times = [seen.within, step.planned, seen.by_end, step.planned_by_end].map(shown);
            let [longest, planned, by_end, latest] = times;
            row([step.place.clone(), step.does.to_owned(), longest, planned, by_end, latest]);
        }
        let longest = flow.seen.worst.as_ref().map(|worst| shown(worst.latency()));
        let longest = longest.unwrap_or_else(|| String::from("-"));
        let (whole, nothing) = (shown(flow.bill.total), String::new);
        row([String::from("in all"), nothing(), longest, whole, nothing(), nothing()]);
        if let (count @ 1.., longest) = flow.seen.turned {
            let by_others = format!("{count} by other ways");
            let (longest, whole) = (shown(longest), shown(flow.bill.longest));
            row([by_others, nothing(), longest, whole, nothing(), nothing()]);
        }
    }
    table.render()
}

/// Returns where the messages of all flows are: sent = delivered + late + lost + under way.
#[must_use]
pub fn render_books(flows: &[ToldFlow<'_>]) -> String {
    let (right, left) = (Align::Right, Align::Left);
    let mut table = TextTable::new(&[
        ("flow", left),
        ("sent", right),
        ("delivered", right),
        ("late", right),
        ("under way", right),
        ("strange", right),
        ("lost", right),
        ("where", left),
    ]);
    for flow in flows {
        let Some(books) = &flow.seen.books else { continue };
        let counts = [books.sent, books.delivered, books.late, books.under_way, books.strange];
        let counts = counts.map(|count| count.to_string());
        let mut head = [&[flow.name.to_owned()][..], &counts].concat();
        let mut lost: Vec<[String; 2]> = books
            .lost
            .iter()
            .map(|(at, messages)| [messages.to_string(), flow.place(*at).to_owned()])
            .collect();
        if lost.is_empty() {
            lost.push([String::from("0"), String::new()]);
        }
        for row in lost {
            table.row([&head[..], &row].concat());
            head.fill(String::new());
        }
    }
    table.render()
}
