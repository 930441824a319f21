//! The worked examples of the papers, to the digit.

use super::Row;
use diapason_abi::Nanos;
use diapason_pipe::tuned::little;

/// Bytes of a message of the interface, and what the papers count in a kilobyte.
const MESSAGE: u64 = 64;

/// Returns the period that Little's law gives in four examples.
pub fn rows() -> Vec<Row> {
    let second = Nanos::from_secs(1);
    let examples = [
        ("128-bytes-at-512-kbit/s", 2.0, little(128 * 8, 512_000, second)),
        ("4-KB-at-2.25-Mbit/s", 14.0, little(4_096 * 8, 2_250_000, second)),
        ("128-frames-at-2752/s", 46.0, little(128 * MESSAGE, 2_752 * MESSAGE, second)),
        ("128-frames-at-3073/s", 41.0, little(128 * MESSAGE, 3_073 * MESSAGE, second)),
    ];
    let row = |(id, paper, ours): (&str, f64, Nanos)| {
        // The papers cut to whole milliseconds.
        let whole = (ours.0 / 1_000_000) as f64;
        Row::numbers(&format!("little.{id}"), "ms", Some(paper), whole)
            .holds((whole - paper).abs() < 1e-9)
            .note(format!(
                "T = B/λ is {:.3} ms, cut; it sizes no buffer: docs/pipes.md",
                ours.0 as f64 / 1e6
            ))
    };
    examples.into_iter().map(row).collect()
}
