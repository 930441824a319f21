//! How long a message may take from one board to the other and back.
//!
//! Each board sends its next message after the answer to its last one. So two messages are under
//! way at most, and each meets the other. The hosts count all that the other message brings once
//! for the whole trip ([`stay`](super::stay)). The bus counts it at each crossing, at the worst
//! phase of the whole trip ([`phases`](super::phases)). Control endpoints are silent, as in the
//! article.

use super::machine::ROUTER;
use super::phases::{Between, longest};
use super::stay::{BoardPace, HostStay, LOOK_NS};
use diapason::Failure;
use diapason_system::{CLOCKS_APART, System};

/// Bytes of a packet.
pub const PACKET: u32 = 1024;
/// The server's moderation of links, in ns.
const MODERATION_NS: u64 = 50_000;
/// A host that sends messages.
const BOARD: usize = 1;

/// A term of a bound: what takes how long in ns, and how often.
pub type Term = (&'static str, u64, u64);

/// Returns the terms of a round trip of a message of so many bytes: what, how long in ns, how
/// often. A cable takes `cable_ns`. The boards pause for `pause` ns at least between two messages.
///
/// # Errors
/// If a thread may wait for budget, or if messages can meet more than one message of the other
/// board.
pub fn terms(
    systems: &[System],
    cable_ns: u64,
    (bytes, pause): (u32, u64),
) -> Result<Vec<Term>, Failure> {
    let router = HostStay::router(&systems[ROUTER])?;
    let board = HostStay::board(&systems[BOARD])?;
    let at_router = [router.longest(2)?, router.longest(1)?];
    let at_board = [board.longest(2)?, board.longest(1)?];
    let cable = 2 * cable_ns;
    let between = Between {
        heard: MODERATION_NS,
        router: at_router,
        answer: by_any_clock(cable + LOOK_NS + at_board[1]),
    };
    let stages = 2 * between.heard + between.router[0] + between.answer;
    let terms = vec![
        ("board that sends: its program and debug server, twice", at_board[0], 1),
        ("board that answers: its debug server and program", at_board[1], 1),
        ("until a debug server looks (T_xDbC)", LOOK_NS, 2),
        ("USB, all packets of both messages (4 T_usb)", longest(bytes, &between) - stages, 1),
        ("cable, there and back", cable, 2),
        ("moderation of the interrupt", MODERATION_NS, 2),
        ("bottom halves and router, twice (T_iovcpu, T'_rx, T'_tx)", at_router[0], 1),
    ];
    let busy = at_router[0].max(at_board[0]);
    let pause = pause - pause / CLOCKS_APART - 1;
    let pace = BoardPace { pause, trail: MODERATION_NS + at_router[0] + at_board[0] };
    router.finds_budget(pace, busy)?;
    board.finds_budget(pace, busy)?;
    let whole = sum(&terms);
    let trips = pace.trips(whole + busy);
    if trips > 1 {
        return Err(Failure::Ours(format!("in {whole} ns a message may meet {trips} others")));
    }
    Ok(terms)
}

/// Returns a time by the clock of any other host.
const fn by_any_clock(time: u64) -> u64 {
    time + time / CLOCKS_APART + 1
}

/// Returns the sum of all terms by the clock of any host, in ns.
pub fn sum(terms: &[Term]) -> u64 {
    by_any_clock(terms.iter().map(|(_, ns, times)| ns * times).sum())
}
