//! Servers without a VCPU, and the sections of everybody who asks them.

use super::{CALLS, quoted};
use crate::systems::drawn::{Drawn, DrawnServer, DrawnTask};
use std::fmt::Write;

/// Returns all servers, each with its mailbox and the sections that it may still end for a caller
/// that is gone.
pub fn servers(drawn: &Drawn) -> String {
    let mut text = String::new();
    for (number, server) in drawn.servers.iter().enumerate() {
        let DrawnServer { work, section, .. } = server;
        let section = if drawn.locker() == Some(number) { *section } else { 0 };
        let asks = drawn.onward(number) << (8 * (number + 1));
        let itself = [(number, 1)];
        let _ = write!(
            text,
            "\n[[mailbox]]\nname = \"service-{number}\"\nserver = \"server-{number}\"\n\
             \n[[process]]\nname = \"server-{number}\"\nprogram = \"service\"\npriority = 61\n\
             arguments = [{number}, {work}, {section}, {asks}]\n{}{}",
            uses(drawn, &itself),
            sections(&format!("server-{number}"), drawn, &itself)
        );
    }
    text
}

/// Returns what a task asks for in each job, as its program takes it.
pub fn asks(drawn: &Drawn, task: &DrawnTask) -> u64 {
    let asked = drawn.asked(task).into_iter().map(|(server, times)| times << (8 * server));
    asked.sum::<u64>() | task.patience << 32
}

/// Returns the time that servers take for a job of a task, in microseconds.
pub fn served(drawn: &Drawn, task: &DrawnTask) -> u64 {
    drawn.asked(task).into_iter().map(|(server, times)| times * longest(drawn, server)).sum()
}

/// Returns the longest time from a call to a server to its end, in microseconds.
fn longest(drawn: &Drawn, server: usize) -> u64 {
    let onward = drawn.onward(server);
    let inner = if onward > 0 { onward * longest(drawn, server + 1) } else { 0 };
    drawn.servers[server].work + inner + drawn.calls(CALLS)
}

/// Returns all servers that work for these calls: each with how often, and the server that asks it.
fn chain(drawn: &Drawn, asked: &[(usize, u64)]) -> Vec<(usize, u64, Option<usize>)> {
    let mut all = Vec::new();
    for (first, times) in asked {
        all.push((*first, *times, None));
        let mut server = *first;
        while drawn.onward(server) > 0 {
            all.push((server + 1, drawn.onward(server), Some(server)));
            server += 1;
        }
    }
    all
}

/// Returns the key `uses` of somebody with these calls.
pub fn uses(drawn: &Drawn, asked: &[(usize, u64)]) -> String {
    let all = chain(drawn, asked);
    let mut names: Vec<String> = all.iter().map(|it| format!("service-{}", it.0)).collect();
    if all.iter().any(|(server, ..)| drawn.locker() == Some(*server)) {
        names.push(String::from("shared"));
    }
    format!("uses = [{}]\n", quoted(&names))
}

/// Returns the sections of a process with these calls.
pub fn sections(process: &str, drawn: &Drawn, asked: &[(usize, u64)]) -> String {
    let mut text = String::new();
    let mut section = |mutex: &str, micros: u64, times: u64, inside: Option<usize>| {
        let inside = inside.map(|outer| format!("inside = \"service-{outer}.server\"\n"));
        let _ = write!(
            text,
            "\n[[section]]\nprocess = \"{process}\"\nmutex = \"{mutex}\"\n\
             longest = \"{micros}us\"\ntimes = {times}\n{}",
            inside.unwrap_or_default()
        );
    };
    for (server, times, outer) in chain(drawn, asked) {
        let micros = longest(drawn, server);
        section(&format!("service-{server}.server"), micros, times, outer);
        if drawn.locker() == Some(server) {
            let micros = drawn.servers[server].section + drawn.calls(CALLS);
            // A section inside is at most as long as the outer one.
            section("shared", micros.min(longest(drawn, server)), 1, Some(server));
        }
    }
    text
}
