//! The frames that passed the switches of a list of hosts in a run: as a table, as JSON, and as
//! findings.

use crate::several::Joints;
use crate::table::{Align, TextTable};
use diapason_sim::EthernetBooks;
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

/// The switches of a list of hosts in a run.
#[derive(Clone, Debug)]
pub(crate) struct SwitchReport {
    switches: Vec<SwitchRow>,
    queues: Vec<QueueRow>,
    /// Wires in which frames were lost because they were pulled, and how many.
    lost: Vec<(String, u64)>,
}

impl SwitchReport {
    /// Returns the report on switches with these books, and on wires in which so many frames were
    /// lost.
    pub(super) fn of(joints: &Joints, books: &EthernetBooks, lost: &[u64]) -> SwitchReport {
        let lost = joints.ethernet.iter().zip(lost).filter(|(_, lost)| **lost > 0);
        let lost = lost.map(|(wire, lost)| (wire.name.clone(), *lost)).collect();
        let mut report = SwitchReport { switches: Vec::new(), queues: Vec::new(), lost };
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

    /// Returns a sentence for each wire that lost frames, and for each queue of promised flows that
    /// dropped some.
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
        wires.chain(lost).collect()
    }

    /// Returns the tables; nothing without switches.
    pub(crate) fn render(&self) -> String {
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
    use diapason_system::Switch;

    fn report(full: u64, promised: bool) -> SwitchReport {
        let mut port = PortBooks::default();
        port.queues[6].offered = 10;
        port.queues[6].passed = 10 - full;
        port.queues[6].full = full;
        let books = vec![SwitchBooks { came: 10, ports: vec![port], ..SwitchBooks::default() }];
        let name = String::from("s");
        let switch =
            Switch { name, ports: 2, latency_ns: 0, drift_ppm: 0, room: 4, gates: Vec::new() };
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
}
