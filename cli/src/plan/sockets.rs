//! The bills of UDP sockets, for people and for programs.

use super::view::View;
use crate::duration::human;
use crate::table::{Align, TextTable};
use diapason_pipe::bill::What;
use diapason_plan::sockets::Socketed;
use diapason_system::{System, UdpPort};
use serde_json::{Value, json};

/// The items of a bill, with their columns.
const ITEMS: [(What, &str); 7] = [
    (What::Request, "wait"),
    (What::Bus, "wire"),
    (What::Moderation, "moderation"),
    (What::TopHalf, "top half"),
    (What::BottomHalf, "bottom half"),
    (What::Driver, "netd"),
    (What::User, "program"),
];

impl View<'_> {
    /// Returns every socket with its bill; nothing without sockets.
    pub(super) fn socket_table(&self, system: &System) -> String {
        if system.sockets.is_empty() {
            return String::new();
        }
        let bills = || self.sockets.iter().filter_map(Socketed::bill);
        // Only sockets of USB devices have a thread of the server between.
        let is_there = |(what, _): &&(What, &str)| {
            *what != What::Driver || bills().any(|bill| bill.item(*what).is_some())
        };
        let items: Vec<(What, &str)> = ITEMS.iter().filter(is_there).copied().collect();
        let mut columns = vec![("socket", Align::Left)];
        columns.extend(items.iter().map(|(_, name)| (*name, Align::Right)));
        columns.extend(["bound", "wanted", "waiting", "quota"].map(|name| (name, Align::Right)));
        let mut table = TextTable::new(&columns);
        for (socket, socketed) in system.sockets.iter().zip(&self.sockets) {
            table.row(cells(socket, socketed, &items));
        }
        let unpromised = self.sockets.iter().any(|it| matches!(it, Socketed::Unpromised));
        let besides = if unpromised { "a socket without `period`, nor of " } else { "" };
        format!("{}nothing is promised of {besides}sending\n", table.render())
    }

    /// Returns the sockets as a list for programs.
    pub(super) fn socketed(&self, system: &System) -> Vec<Value> {
        let each = system.sockets.iter().zip(&self.sockets);
        let value = |(socket, socketed): (&UdpPort, &Socketed)| {
            let bill = socketed.bill();
            let items = bill.iter().flat_map(|bill| bill.items());
            let items = items.map(|it| json!({ "what": it.what.name(), "ns": it.value.0 }));
            json!({
                "socket": socket.name,
                "process": system.process_name(socket.process),
                "port": socket.port,
                "real_time": socket.real_time,
                "quota": socket.quota,
                "waiting": bill.map(|bill| bill.slots),
                "bound_ns": bill.map(|bill| bill.total.0),
                "wanted_ns": socket.latency_ns,
                "items": items.collect::<Vec<_>>(),
            })
        };
        each.map(value).collect()
    }
}

fn cells(socket: &UdpPort, socketed: &Socketed, items: &[(What, &str)]) -> Vec<String> {
    let nothing = || "-".to_owned();
    let bill = socketed.bill();
    let mut cells = vec![socket.name.clone()];
    cells.extend(items.iter().map(|(what, _)| {
        let item = bill.and_then(|bill| bill.item(*what));
        item.map_or_else(nothing, |item| human(item.value.0))
    }));
    let bound = match socketed {
        Socketed::Unpromised => nothing(),
        Socketed::Unbounded(_) => "NONE".to_owned(),
        Socketed::Bounded(bill) => human(bill.total.0),
    };
    cells.push(bound);
    cells.push(socket.latency_ns.map_or_else(nothing, human));
    cells.push(bill.map_or_else(nothing, |bill| bill.slots.to_string()));
    cells.push(socket.quota.to_string());
    cells
}
