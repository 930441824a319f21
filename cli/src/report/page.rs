//! The page: its parts in order.

use super::facts::{Facts, PageFacts, anchor};
use super::script::SCRIPT;
use super::style::STYLE;
use super::{
    bills, buses, chain_bars, curves, flow_bars, head, network, tables, timeline, topology, worst,
};
use crate::chart::escaped;

/// The policy of a page: it loads nothing. Its style and its script are inside it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Returns the whole page.
pub fn page(page: &PageFacts<'_>) -> String {
    let name = escaped(&page.title());
    let content = match &page.parts[..] {
        [alone] if page.joined.is_none() => of_one(alone, page),
        parts => shared(page) + &parts.iter().map(|facts| part(facts, page)).collect::<String>(),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{name} – Diapason</title>\n<style>{STYLE}</style></head>\n<body><main>\n\
         {}{content}</main><script>{SCRIPT}</script></body></html>\n",
        head::head(page),
    )
}

/// Returns what is about all hosts or cores together.
fn shared(page: &PageFacts<'_>) -> String {
    let title = if page.network.is_some() { "Hosts and cables" } else { "Cores" };
    let sections = [
        section("h2", title, "", network::picture(page) + &network::table(page)),
        section(
            "h2",
            "Flows over cables",
            "Each bar is the bill of a flow: the stages of a message from its first program to its \
             last, in one colour for each host and one for cables. The narrow bar below it is the \
             slowest message of the simulated run, from when it was given to its first link. The \
             mark is the longest that the last program measured. A bar leads to that message.",
            flow_bars::flows(page),
        ),
        section("h2", "Threads over time", "", timeline::timeline(page)),
    ];
    sections.concat()
}

/// Returns what is about one of several hosts or cores.
fn part(facts: &Facts<'_>, page: &PageFacts<'_>) -> String {
    let (id, badge) = (anchor(&["part", facts.name]), facts.badge());
    let title = escaped(&page.called(facts));
    format!(
        "<div class=\"part\" id=\"{id}\"><h2>{title} <span class=\"badge {}\">{}</span></h2>\n\
         <p>{}</p>\n{}<div class=\"tiles\">{}</div>\n{}</div>\n",
        badge.class(),
        badge.words(),
        escaped(&facts.session.system.name),
        head::findings(facts),
        head::tiles(facts),
        sections("h3", facts, String::new())
    )
}

/// Returns what is about the only host of a page.
fn of_one(facts: &Facts<'_>, page: &PageFacts<'_>) -> String {
    sections("h2", facts, section("h2", "Threads over time", "", timeline::timeline(page)))
}

/// Returns the sections of a host with headings of a level. `threads` stands where its threads over
/// time belong.
fn sections(level: &str, facts: &Facts<'_>, threads: String) -> String {
    let sections = [
        section(level, "Devices and processes", "", topology::topology(facts)),
        section(
            level,
            "The longest delay of messages",
            "Each bar is the bill of a pipe: the stages of a message, one after the other. The \
             narrow bar below it is the slowest message of the simulated run. The mark is the \
             longest delay that the reader or writer measured. A bar leads to that message.",
            bills::bills(facts) + &tables::pipes(facts) + &worst::worst(facts),
        ),
        section(
            level,
            "Through several threads",
            "Each bar is the bill of a chain: the stages of a message from the device to the \
             chain's end. Each thread has a colour of its own.",
            chain_bars::chains(facts) + &tables::chains(facts),
        ),
        section(
            level,
            "UDP sockets",
            "How long datagrams were on their way from their server to their program, beside the \
             part of the bound that is for that. The rest of the bound is for the wire and the \
             distance of interrupts, which no driver sees.",
            tables::sockets(facts),
        ),
        section(
            level,
            "How long they took",
            "The share of messages with at most this delay beyond the fastest message.",
            curves::delays(facts),
        ),
        section(level, "Messages a second", "", curves::rates(facts)),
        section(
            level,
            "Schedule of the buses",
            "The slots of each USB bus: microframes, or frames below 480 Mbit/s. Each stack is \
             the time that periodic endpoints take of a slot; the rest is for bulk.",
            buses::buses(facts),
        ),
        threads,
        section(level, "Budgets", "", tables::vcpus(facts)),
        section(level, "Threads", "", tables::threads(facts)),
        of_class("words", level, "Inputs of the bills", "", &tables::bills(facts)),
    ];
    sections.concat()
}

/// Returns a section. `level` is that of its heading.
fn section(level: &str, title: &str, words: &str, content: String) -> String {
    of_class("numbers", level, title, words, &content)
}

fn of_class(class: &str, level: &str, title: &str, words: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    let words = if words.is_empty() { String::new() } else { format!("<p>{words}</p>\n") };
    format!("<section class=\"{class}\"><{level}>{title}</{level}>\n{words}{content}</section>\n")
}
