//! The frames that passed the switches of a list of hosts in a run, and the credit of ports: as
//! tables, as JSON, and as findings.

use crate::plan::credit_limits;
use crate::several::Joints;
use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_plan::PlannedCredit;
use diapason_sim::{EthernetBooks, GatedBooks};
use diapason_system::WireEnd;
use diapason_tsn::CreditSpan;
use serde_json::{Value, json};

/// The frames of one queue of a port in a run.
#[derive(Clone, Debug)]
struct QueueRow {
    /// The switch and the number of the port.
    port: String,
    class: usize,
    offered: u64,
    passed: u64,
    /// Frames that the queue had no room for, and that no window of the gates is long enough for.
    full: u64,
    too_long: u64,
    peak: u64,
    room: u64,
    /// A flow whose bound is promised passes the queue.
    promised: bool,
}

/// A switch in a run.
#[derive(Clone, Debug)]
struct SwitchRow {
    switch: String,
    came: u64,
    unknown: u64,
    returned: u64,
    groups: u64,
}

/// The frames of one class that an adapter with gates sent in a run.
#[derive(Clone, Debug)]
struct GatedRow {
    adapter: String,
    class: usize,
    sent: u64,
    /// Frames that left their windows, and by how much the worst did.
    outside: u64,
    longest: Nanos,
    /// Frames in step that left the adapter later than promised, or earlier.
    late: u64,
}

/// The credit of a class at a port in a run.
#[derive(Clone, Debug)]
struct CreditRow {
    port: String,
    planned: PlannedCredit,
    seen: CreditSpan,
}

/// The switches and gates of a list of hosts in a run.
#[derive(Clone, Debug)]
pub(crate) struct SwitchReport {
    switches: Vec<SwitchRow>,
    queues: Vec<QueueRow>,
    gated: Vec<GatedRow>,
    credits: Vec<CreditRow>,
    /// Wires in which frames were lost because they were pulled, and how many.
    lost: Vec<(String, u64)>,
}

impl CreditRow {
    fn of(planned: PlannedCredit, joints: &Joints, books: &EthernetBooks) -> Option<CreditRow> {
        // The server of an adapter keeps its credit to itself.
        let WireEnd::Port { switch, port } = planned.end else { return None };
        let class = usize::from(planned.credit.priority);
        let seen = books.get(switch)?.ports.get(port)?.credits[class];
        let port = format!("{}:{}", joints.switches[switch].name, port + 1);
        Some(CreditRow { port, planned, seen })
    }

    fn finding(&self) -> Option<String> {
        let (span, CreditRow { port, planned, seen }) = (self.planned.span?, self);
        let priority = planned.credit.priority;
        (!span.contains(seen)).then(|| {
            format!(
                "the credit of priority {priority} at {port} was from {} to {} bytes, and {} to {} \
                 are planned: more was sent above it, or longer frames below it",
                seen.least, seen.most, span.least, span.most
            )
        })
    }
}

impl SwitchReport {
    /// Returns the report on switches with these books, and on wires in which so many frames were
    /// lost.
    pub(super) fn of(joints: &Joints, books: &EthernetBooks, lost: &[u64]) -> SwitchReport {
        let lost = joints.ethernet.iter().zip(lost).filter(|(_, lost)| **lost > 0);
        let lost = lost.map(|(wire, lost)| (wire.name.clone(), *lost)).collect();
        let credits = joints.credits.iter().filter_map(|it| CreditRow::of(*it, joints, books));
        let credits = credits.collect();
        let (switches, queues, gated) = (Vec::new(), Vec::new(), Vec::new());
        let mut report = SwitchReport { switches, queues, gated, credits, lost };
        for (switch, books) in joints.switches.iter().zip(books) {
            let (came, unknown) = (books.came, books.unknown);
            let (returned, groups) = (books.returned, books.groups);
            let name = switch.name.clone();
            report.switches.push(SwitchRow { switch: name, came, unknown, returned, groups });
            for (number, port) in books.ports.iter().enumerate() {
                let name = format!("{}:{}", switch.name, number + 1);
                for (class, (queue, too_long)) in port.queues.iter().zip(port.too_long).enumerate()
                {
                    if queue.offered + too_long == 0 {
                        continue;
                    }
                    let promised = joints.promised.contains(&(name.clone(), class));
                    report.queues.push(QueueRow {
                        port: name.clone(),
                        class,
                        offered: queue.offered + too_long,
                        passed: queue.passed,
                        full: queue.full,
                        too_long,
                        peak: queue.peak,
                        room: switch.room,
                        promised,
                    });
                }
            }
        }
        report
    }

    /// Adds what adapters with gates sent, each with its name.
    pub(super) fn with_gates(mut self, books: &[(String, &GatedBooks)]) -> SwitchReport {
        for (adapter, books) in books {
            let classes = (0..).zip(books.sent).filter(|(_, sent)| *sent > 0);
            self.gated.extend(classes.map(|(class, sent)| GatedRow {
                adapter: adapter.clone(),
                class,
                sent,
                outside: books.outside[class],
                longest: books.longest[class],
                late: books.late[class],
            }));
        }
        self
    }

    /// Returns a sentence for each wire that lost frames, for each class of an adapter that left
    /// its windows or its step, for each credit that left its limits, and for each queue of
    /// promised flows that dropped some.
    pub(crate) fn findings(&self) -> Vec<String> {
        let wires = self.lost.iter().map(|(wire, lost)| {
            format!("{lost} frames were lost in the wire {wire}, which was pulled")
        });
        let lost = self.queues.iter().filter(|it| it.promised && it.full + it.too_long > 0);
        let lost = lost.map(|it| {
            let QueueRow { port, class, full, too_long, room, .. } = it;
            format!(
                "{port} dropped {} frames of priority {class}, which flows rely on: {full} found \
                 the {room} places of the queue full, {too_long} fit no window",
                full + too_long
            )
        });
        let outside = self.gated.iter().filter(|it| it.outside > 0).map(|it| {
            let GatedRow { adapter, class, outside, longest, .. } = it;
            format!(
                "{adapter} sent {outside} frames of priority {class} outside of their windows, by \
                 up to {longest}: its server was later than its `guard`"
            )
        });
        let late = self.gated.iter().filter(|it| it.late > 0).map(|it| {
            let GatedRow { adapter, class, late, .. } = it;
            format!(
                "{adapter} sent {late} frames of priority {class} that were not in step with its \
                 gates: their flows promise another part of the cycle"
            )
        });
        let credits = self.credits.iter().filter_map(CreditRow::finding);
        wires.chain(outside).chain(late).chain(credits).chain(lost).collect()
    }

    /// Returns the tables; nothing without switches and gates.
    pub(crate) fn render(&self) -> String {
        let tables = [self.render_switches(), self.render_credits(), self.render_gates()];
        let some: Vec<String> = tables.into_iter().filter(|table| !table.is_empty()).collect();
        some.join("\n")
    }

    fn render_credits(&self) -> String {
        let right = |name| (name, Align::Right);
        let mut table = TextTable::new(&[
            ("credit", Align::Left),
            right("priority"),
            right("lowest"),
            right("planned"),
            right("highest"),
            right("planned"),
        ]);
        for CreditRow { port, planned, seen } in &self.credits {
            let [least, most] = credit_limits(planned);
            let priority = planned.credit.priority.to_string();
            let [lowest, highest] = [seen.least, seen.most].map(|it| it.to_string());
            table.row(vec![port.clone(), priority, lowest, least, highest, most]);
        }
        if self.credits.is_empty() { String::new() } else { table.render() }
    }

    fn render_gates(&self) -> String {
        let right = |name| (name, Align::Right);
        let mut table = TextTable::new(&[
            ("adapter", Align::Left),
            right("priority"),
            right("frames"),
            right("outside"),
            right("by"),
            right("not in step"),
        ]);
        for it in &self.gated {
            let counts = [it.sent, it.outside].map(|n| n.to_string());
            let named = vec![it.adapter.clone(), it.class.to_string()];
            table.row(
                [named, counts.to_vec(), vec![it.longest.to_string(), it.late.to_string()]]
                    .concat(),
            );
        }
        if self.gated.is_empty() { String::new() } else { table.render() }
    }

    fn render_switches(&self) -> String {
        if self.switches.is_empty() {
            return String::new();
        }
        let right = |name| (name, Align::Right);
        let mut switches = TextTable::new(&[
            ("switch", Align::Left),
            right("frames"),
            right("to nobody"),
            right("back"),
            right("to all"),
        ]);
        for SwitchRow { switch, came, unknown, returned, groups } in &self.switches {
            let counts = [came, unknown, returned, groups].map(u64::to_string);
            switches.row([vec![switch.clone()], counts.to_vec()].concat());
        }
        let mut queues = TextTable::new(&[
            ("port", Align::Left),
            right("priority"),
            right("frames"),
            right("passed"),
            right("dropped"),
            right("at once"),
            right("room"),
        ]);
        for it in &self.queues {
            let dropped = it.full + it.too_long;
            let counts = [it.offered, it.passed, dropped, it.peak, it.room].map(|n| n.to_string());
            let named = vec![it.port.clone(), it.class.to_string()];
            queues.row([named, counts.to_vec()].concat());
        }
        format!("{}\n{}", switches.render(), queues.render())
    }

    /// Returns what adapters with gates sent as JSON objects.
    pub(crate) fn gated_json(&self) -> Vec<Value> {
        let of = |it: &GatedRow| {
            json!({
                "adapter": it.adapter,
                "priority": it.class,
                "frames": it.sent,
                "outside": it.outside,
                "longest_ns": it.longest.0,
                "late": it.late,
            })
        };
        self.gated.iter().map(of).collect()
    }

    /// Returns the credit of ports as JSON objects.
    pub(crate) fn credits_json(&self) -> Vec<Value> {
        let of = |CreditRow { port, planned, seen }: &CreditRow| {
            json!({
                "port": port,
                "priority": planned.credit.priority,
                "lowest": seen.least,
                "highest": seen.most,
                "lo_credit": planned.span.map(|it| it.least),
                "hi_credit": planned.span.map(|it| it.most),
            })
        };
        self.credits.iter().map(of).collect()
    }

    /// Returns the switches as JSON objects.
    pub(crate) fn to_json(&self) -> Vec<Value> {
        let of = |it: &SwitchRow| {
            let own = self.queues.iter().filter(|queue| {
                queue.port.rsplit_once(':').is_some_and(|(switch, _)| switch == it.switch)
            });
            let queue = |queue: &QueueRow| {
                json!({
                    "port": queue.port,
                    "priority": queue.class,
                    "frames": queue.offered,
                    "passed": queue.passed,
                    "full": queue.full,
                    "too_long": queue.too_long,
                    "peak": queue.peak,
                    "room": queue.room,
                })
            };
            json!({
                "switch": it.switch,
                "frames": it.came,
                "unknown": it.unknown,
                "returned": it.returned,
                "groups": it.groups,
                "queues": own.map(queue).collect::<Vec<Value>>(),
            })
        };
        self.switches.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_sim::{PortBooks, SwitchBooks};
    use diapason_system::{ClassCredit, Switch};
    use diapason_tsn::LinkRate;

    fn report(full: u64, promised: bool) -> SwitchReport {
        let mut port = PortBooks::default();
        port.queues[6].offered = 10;
        port.queues[6].passed = 10 - full;
        port.queues[6].full = full;
        let books = vec![SwitchBooks { came: 10, ports: vec![port], ..SwitchBooks::default() }];
        let name = String::from("s");
        let (gates, credits) = (Vec::new(), Vec::new());
        let switch =
            Switch { name, ports: 2, latency_ns: 0, drift_ppm: 0, room: 4, gates, credits };
        let promised = if promised { vec![(String::from("s:1"), 6)] } else { Vec::new() };
        SwitchReport::of(
            &Joints { switches: vec![switch], promised, ..Joints::default() },
            &books,
            &[],
        )
    }

    #[test]
    fn only_drops_of_promised_flows_are_findings() {
        assert_eq!(report(0, true).findings(), Vec::<String>::new());
        assert_eq!(report(3, false).findings(), Vec::<String>::new());
        let said = "s:1 dropped 3 frames of priority 6, which flows rely on: 3 found the 4 places \
                    of the queue full, 0 fit no window";
        assert_eq!(report(3, true).findings(), [said]);
        assert!(report(3, true).render().contains("s:1"));
        assert_eq!(report(3, true).to_json()[0]["queues"][0]["full"], 3);
    }

    #[test]
    fn credit_outside_of_its_limits_is_a_finding() {
        let mut report = report(0, true);
        let credit = ClassCredit { priority: 6, idle_kbit: 500_000 };
        let end = WireEnd::Port { switch: 0, port: 0 };
        let (rate, span) = (LinkRate::GIGABIT, Some(CreditSpan { most: 100, least: -50 }));
        let planned = PlannedCredit { end, number: 0, credit, rate, is_used: true, span };
        let mut with = |most, span| {
            let seen = CreditSpan { most, least: -50 };
            let planned = PlannedCredit { span, ..planned };
            report.credits = vec![CreditRow { port: "s:1".to_owned(), planned, seen }];
            report.findings()
        };
        assert_eq!(with(100, span), Vec::<String>::new());
        assert_eq!(with(101, None), Vec::<String>::new());
        let said = "the credit of priority 6 at s:1 was from -50 to 101 bytes, and -50 to 100 are \
                    planned: more was sent above it, or longer frames below it";
        assert_eq!(with(101, span), [said]);
        assert!(report.render().contains("lowest"));
        assert_eq!(report.credits_json()[0]["hi_credit"], 100);
    }

    #[test]
    fn frames_outside_of_their_windows_are_findings() {
        let network = diapason_sim::EthernetNetwork::new(Vec::new()).unwrap();
        network.gate(GatedBooks::new(7, diapason_tsn::GateList::open(1_000), None));
        let mut books = network.gated();
        let report = |books: &[GatedBooks]| {
            let named = books.iter().map(|it| (String::from("h:nic0"), it));
            report(0, false).with_gates(&named.collect::<Vec<_>>())
        };
        books[0].sent[6] = 10;
        assert_eq!(report(&books).findings(), Vec::<String>::new());
        assert!(report(&books).render().contains("h:nic0"));
        (books[0].outside[6], books[0].longest[6]) = (2, Nanos(300));
        let said = "h:nic0 sent 2 frames of priority 6 outside of their windows, by up to 300 ns: \
                    its server was later than its `guard`";
        assert_eq!(report(&books).findings(), [said]);
        assert_eq!(report(&books).gated_json()[0]["outside"], 2);
        (books[0].outside[6], books[0].late[6]) = (0, 3);
        let said = "h:nic0 sent 3 frames of priority 6 that were not in step with its gates: their \
                    flows promise another part of the cycle";
        assert_eq!(report(&books).findings(), [said]);
        assert_eq!(report(&books).gated_json()[0]["late"], 3);
    }
}
