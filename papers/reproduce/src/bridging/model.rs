//! The model of the paper: equations 2 to 5, the guard band, and the sums of its components.

use crate::Row;
use diapason_tsn::{LinkRate, wire_bytes};

/// A bus as equation 2 sees it.
struct Medium {
    /// Nanoseconds in which the host prepares a request.
    h: f64,
    /// Bytes that the protocol adds to a packet.
    p: f64,
    /// Nanoseconds that one bit takes.
    alpha: f64,
    /// Bits that stuffing adds at worst.
    stuffing: f64,
    /// Cost of synchronisation for each bit.
    gamma: f64,
}

/// High-speed USB 2 with the printed time of a bit, and with that of 480 Mbit/s.
const USB2: Medium = Medium { h: 5.0, p: 55.0, alpha: 2.08, stuffing: 3.17, gamma: 1.17 };
const USB2_EXACT: Medium = Medium { alpha: 1_000.0 / 480.0, ..USB2 };
const USB3: Medium = Medium { h: 5.0, p: 48.0, alpha: 0.2, stuffing: 0.0, gamma: 1.0 };
const TSN: Medium = Medium { h: 304.0, p: 42.0, alpha: 1.0, stuffing: 0.0, gamma: 1.0 };

impl Medium {
    /// Returns the part of equation 2 that does not depend on the message, in ns.
    fn constant(&self) -> f64 {
        self.h + 8.0 * self.alpha * self.p
    }

    /// Equation 2, in ns.
    fn transfer(&self, bytes: f64) -> f64 {
        let bits = (self.stuffing + 8.0 * self.gamma * bytes).floor();
        self.constant() + self.alpha * bits
    }
}

/// Bytes of a packet of the sensor.
const PACKET: f64 = 512.0;
/// The longest components that the paper measured, in us: Linux's read of the sensor and program,
/// which both buses share.
const LINUX: [f64; 2] = [354.45, 3.32];
const LINUX_TSN: [f64; 3] = [199.518, 28.679, 125.0];
const LINUX_USB: [f64; 2] = [64.662, 78.664];
const QUEST_USB: [f64; 5] = [38.03, 0.0225, 55.238, 46.038, 125.0];

/// Returns the rows of the model.
pub fn rows() -> Vec<Row> {
    let micros = |medium: &Medium| medium.transfer(PACKET) / 1_000.0;
    let (usb3, tsn) = (micros(&USB3), micros(&TSN));
    let sum = |parts: &[f64]| parts.iter().sum::<f64>();
    let guard = wire_bytes(1_500, true).map_or(0, |bytes| LinkRate::GIGABIT.time_ns(bytes));
    let row = |id: &str, unit, paper: f64, ours: f64, digits: f64| {
        let scale = 10_f64.powf(digits);
        let same = ((paper - ours) * scale).abs() < 0.5 + 1e-6;
        Row::numbers(id, unit, Some(paper), ours).holds(same)
    };
    let exact = USB2_EXACT.constant();
    let mixed = "erratum: 921.7 takes 2.0833 ns a bit, the factor behind it 2.08";
    vec![
        row("model.usb3", "us", 0.901, usb3, 3.0).note("equation 4 for 512 bytes"),
        row("model.tsn", "us", 4.736, tsn, 3.0).note("equation 5 for 512 bytes"),
        row("model.usb2.constant", "ns", 921.7, exact, 1.0).note(mixed),
        Row::numbers("model.usb2.constant-2.08", "ns", Some(921.7), USB2.constant())
            .note("equation 3 with 2.08 ns a bit in both places"),
        Row::numbers("model.usb2", "us", None, micros(&USB2_EXACT))
            .note("equation 3 for 512 bytes at 480 Mbit/s; the paper gives no value"),
        row("model.linux-tsn", "us", 715.703, sum(&LINUX) + sum(&LINUX_TSN) + tsn, 3.0)
            .note("the sum of the printed components, one missed window among them"),
        row("model.linux-usb", "us", 501.997, sum(&LINUX) + sum(&LINUX_USB) + usb3, 3.0)
            .note("the sum of the printed components"),
        row("model.quest-usb", "us", 265.23, sum(&QUEST_USB) + usb3, 2.0)
            .note("the sum of the printed components, one missed period among them"),
        row("model.guard", "us", 12.3, guard as f64 / 1_000.0, 1.0)
            .note("1,542 bytes at 1 Gbit/s; erratum: the text also prints 12.344"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_the_papers_to_the_digit() {
        let rows = rows();
        assert!(rows.iter().all(|row| row.holds != Some(false)), "{rows:?}");
        assert_eq!(rows.iter().filter(|row| row.holds.is_some()).count(), 7);
        assert!((USB2.constant() - 920.2).abs() < 0.01);
    }
}
