//! The engine controller: the same every time, and the same in the core on the host.

use super::{Observed, QemuTest};

const ENGINE: &str = "examples/engine.toml";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest {
        boots: 2,
        horizon_ns: 2_000_000_000,
        ..QemuTest::new("engine example runs twice with identical tables", ENGINE, identical)
    },
    QemuTest {
        boots: 2,
        horizon_ns: 20_000_000_000,
        ..QemuTest::simulated("engine example runs twice with identical tables", ENGINE, identical)
    },
    QemuTest {
        record: true,
        ..QemuTest::new("flight recorder of engine replayed equal", ENGINE, replayed)
    },
];

/// Both boots hold and are the same in every word of their consoles.
fn identical(boots: &[Observed]) -> Result<(), String> {
    let [first, second] = boots else { return Err("two boots are needed".into()) };
    first.holds()?;
    if first.table() != second.table() {
        return Err(format!("the tables differ:\n{}\n{}", first.table(), second.table()));
    }
    let differ = first.lines.iter().zip(&second.lines).find(|(a, b)| a != b);
    match differ {
        Some((a, b)) => Err(format!("the consoles differ:\n{a:?}\n{b:?}")),
        None if first.lines.len() != second.lines.len() => Err("one console is longer".into()),
        None => Ok(()),
    }
}

/// The core on the host takes the same decisions, to the last one.
fn replayed(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    boot.replays_equal()
}
