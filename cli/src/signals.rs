//! `diapason signals`: the signals in a CAN log, as a DBC file names them.

use crate::duration::seconds;
use crate::failure::Failure;
use crate::failure::HOLDS;
use crate::input::Input;
use crate::logs;
use crate::output::say;
use crate::table::{Align, TextTable};
use diapason_can::candump::{self, LineContent, LogLine};
use diapason_can::dbc::{Dbc, DbcMessage, Decimal, Reading, Value};
use diapason_can::{AnyFrame, Id};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version of the format of `--json`.
const FORMAT: u32 = 1;

/// The request to `signals`.
#[derive(Clone, Debug, clap::Args)]
pub struct SignalsRequest {
    /// The log, such as `--candump`, `--asc` and `--blf` write.
    pub log: PathBuf,
    #[arg(long, value_name = "FILE")]
    pub dbc: PathBuf,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Reads the log and prints what its frames say.
///
/// # Errors
/// If one of the files cannot be used: which line, and what to do.
pub fn signals(request: &SignalsRequest) -> Result<u8, Failure> {
    let dbc = Dbc::parse(&read(Input::Dbc, &request.dbc)?)
        .map_err(|error| refused(&request.dbc, &error))?;
    let log = logs::text(bytes(Input::Log, &request.log)?)
        .map_err(|error| refused(&request.log, &error))?;
    let said = decode(&dbc, &log).map_err(|error| refused(&request.log, &error))?;
    let text = if request.json { format!("{:#}", said.to_json()) } else { said.render() };
    say(text.trim_end());
    Ok(HOLDS)
}

pub(crate) fn refused(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Input(format!("error: {}, {error}", path.display()))
}

/// Returns a file as text. DBC files are often written in Latin-1, where `°` is no UTF-8.
pub(crate) fn read(input: Input, path: &Path) -> Result<String, Failure> {
    Ok(String::from_utf8(bytes(input, path)?)
        .unwrap_or_else(|other| other.into_bytes().into_iter().map(char::from).collect()))
}

fn bytes(input: Input, path: &Path) -> Result<Vec<u8>, Failure> {
    input.bytes(path).map_err(|error| input.refused(path, &error))
}

/// One frame that the file knows.
struct Known<'a> {
    record: LogLine<'a>,
    message: &'a DbcMessage,
    readings: Vec<Reading<'a>>,
}

/// The content of a log.
struct Said<'a> {
    known: Vec<Known<'a>>,
    /// Frames of each identifier that the file does not know: extended, identifier.
    unknown: BTreeMap<(bool, u32), u64>,
    errors: u64,
}

fn decode<'a>(dbc: &'a Dbc, log: &'a str) -> Result<Said<'a>, String> {
    let messages: BTreeMap<(bool, u32), &DbcMessage> =
        dbc.messages.iter().map(|message| (key(message.id), message)).collect();
    let mut said = Said { known: Vec::new(), unknown: BTreeMap::new(), errors: 0 };
    for (line, text) in (1..).zip(log.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let record = candump::parse(text).map_err(|error| format!("line {line}: {error}"))?;
        match record.report {
            LineContent::Error { .. } => said.errors += 1,
            LineContent::Frame(frame) => said.frame(&messages, record, &frame),
        }
    }
    Ok(said)
}

fn key(id: Id) -> (bool, u32) {
    match id {
        Id::Standard(id) => (false, id.as_raw().into()),
        Id::Extended(id) => (true, id.as_raw()),
    }
}

/// Returns an identifier as candump writes it.
fn shown((extended, id): (bool, u32)) -> String {
    if extended { format!("{id:08X}") } else { format!("{id:03X}") }
}

impl<'a> Said<'a> {
    fn frame(
        &mut self,
        messages: &BTreeMap<(bool, u32), &'a DbcMessage>,
        record: LogLine<'a>,
        frame: &AnyFrame,
    ) {
        match messages.get(&key(frame.id())) {
            Some(message) => {
                let readings = message.decode(frame.bytes());
                self.known.push(Known { record, message, readings });
            }
            None => *self.unknown.entry(key(frame.id())).or_insert(0) += 1,
        }
    }

    fn render(&self) -> String {
        let mut table = TextTable::new(&[
            ("time", Align::Right),
            ("bus", Align::Left),
            ("message", Align::Left),
            ("signal", Align::Left),
            ("value", Align::Right),
            ("unit", Align::Left),
            ("meaning", Align::Left),
        ]);
        for Known { record, message, readings } in &self.known {
            let (time, bus) = (seconds(record.time.0), record.interface.to_string());
            let mut head = vec![time, bus, message.name.clone()];
            for reading in readings {
                let (name, unit) = (reading.signal.name.clone(), reading.signal.unit.clone());
                let meaning = reading.label.unwrap_or_default().to_string();
                let mut row = std::mem::replace(&mut head, vec![String::new(); 3]);
                row.extend([name, value(reading), unit, meaning]);
                table.row(row);
            }
            if readings.is_empty() {
                table.row(head);
            }
        }
        format!("{}\n{}", table.render(), self.totals())
    }

    fn totals(&self) -> String {
        let count = |number: u64, one: &str| match number {
            1 => format!("1 {one}"),
            _ => format!("{number} {one}s"),
        };
        let mut text = format!("{} read\n", count(self.known.len() as u64, "frame"));
        if self.errors > 0 {
            text += &format!("{} ignored\n", count(self.errors, "error report"));
        }
        if !self.unknown.is_empty() {
            let frames: u64 = self.unknown.values().sum();
            let ids: Vec<String> = self.unknown.keys().map(|id| shown(*id)).collect();
            let frames = count(frames, "frame");
            text += &format!("{frames} of no known message: {}\n", ids.join(" "));
        }
        text
    }

    fn to_json(&self) -> Json {
        let known = self.known.iter().map(|known| {
            let signals: Vec<Json> = known.readings.iter().map(reading).collect();
            json!({"time_ns": known.record.time.0, "bus": known.record.interface,
                   "message": known.message.name, "signals": signals})
        });
        let unknown =
            self.unknown.iter().map(|(id, frames)| json!({"id": shown(*id), "frames": frames}));
        json!({"format": FORMAT, "result": "signals",
               "frames": known.collect::<Vec<Json>>(), "unknown": unknown.collect::<Vec<Json>>(),
               "errors": self.errors})
    }
}

/// Returns a value as text: exact, or as short as a floating-point number can be.
fn value(reading: &Reading<'_>) -> String {
    let signal = reading.signal;
    match reading.value {
        Value::Exact(value) => value.to_string(),
        Value::Single(bits) => scaled(f32::from_bits(bits).into(), signal.scale, signal.offset),
        Value::Double(bits) => scaled(f64::from_bits(bits), signal.scale, signal.offset),
    }
}

fn scaled(number: f64, scale: Decimal, offset: Decimal) -> String {
    let float = |decimal: Decimal| decimal.to_string().parse::<f64>().unwrap_or(f64::NAN);
    written(number * float(scale) + float(offset))
}

/// Returns a number as a person writes it: with an exponent if it has more than 15 digits before
/// the point, or begins more than 5 behind it. Its digits are the fewest that give the same number.
fn written(number: f64) -> String {
    match number.abs() {
        usual if usual == 0.0 || (1e-6..1e15).contains(&usual) => number.to_string(),
        other if other.is_finite() => format!("{number:e}"),
        _ => number.to_string(),
    }
}

fn reading(reading: &Reading<'_>) -> Json {
    let signal = reading.signal;
    // As text, so that no reader makes a binary fraction of it.
    json!({"name": signal.name, "value": value(reading), "unit": signal.unit,
           "meaning": reading.label})
}

#[cfg(test)]
mod tests {
    use super::*;

    const DBC: &str = "BO_ 256 Engine: 8 ECU\n\
        SG_ Speed : 7|16@0+ (0.01,0) [0|655.35] \"km/h\" X\n\
        SG_ Gear : 16|8@1+ (1,0) [0|5] \"\" X\n\
        SG_ Torque : 32|32@1- (2,1) [0|0] \"Nm\" X\n\
        VAL_ 256 Gear 0 \"neutral\" 1 \"first\" ;\n\
        SIG_VALTYPE_ 256 Torque : 1;\n";
    const LOG: &str = "(0000000001.000002) can0 100#1234010000000040\n\n\
        (0000000001.500000) can1 100#0001\n\
        (0000000002.000000) can0 12345678#01\n\
        (0000000002.000000) can0 20000080#0000000000000000\n";

    #[test]
    fn signals_beyond_the_eighth_byte_are_in_frames_of_can_fd() {
        let dbc = "BO_ 256 Long: 12 ECU\n SG_ Last : 88|8@1+ (1,0) [0|0] \"\" X\n";
        let dbc = Dbc::parse(dbc).unwrap();
        let said = decode(&dbc, "(1.000000) can0 100##5000000000000000000000007\n").unwrap();
        assert_eq!(said.known.len(), 1);
        assert_eq!(value(&said.known[0].readings[0]), "7");
    }

    #[test]
    fn a_log_becomes_a_table() {
        let dbc = Dbc::parse(DBC).unwrap();
        let expected = "       \
        time  bus   message  signal  value  unit  meaning
-----------  ----  -------  ------  -----  ----  -------
1.000002000  can0  Engine   Speed   46.60  km/h
                            Gear        1        first
                            Torque      5  Nm
1.500000000  can1  Engine   Speed    0.01  km/h

2 frames read
1 error report ignored
1 frame of no known message: 12345678
";
        assert_eq!(decode(&dbc, LOG).unwrap().render(), expected.replace("46.60", " 46.6"));
    }

    #[test]
    fn no_number_is_longer_than_a_person_writes_it() {
        let written = [0.0, -0.1, 123_456_789.25, 1e15, 5e-324, f64::MAX, f64::NAN].map(written);
        let expected =
            ["0", "-0.1", "123456789.25", "1e15", "5e-324", "1.7976931348623157e308", "NaN"];
        assert_eq!(written, expected);
        let dbc = "BO_ 256 M: 8 E\n SG_ D : 0|64@1- (1,0) [0|0] \"\" X\nSIG_VALTYPE_ 256 D : 2;\n";
        let dbc = Dbc::parse(dbc).unwrap();
        let table = decode(&dbc, "(1.000000) can0 100#FFFFFFFFFFFFEF7F\n").unwrap().render();
        assert!(table.contains("1.7976931348623157e308"), "{table}");
        assert!(table.ends_with("\n1 frame read\n"), "{table}");
    }

    #[test]
    fn the_same_for_programs() {
        let dbc = Dbc::parse(DBC).unwrap();
        let json = decode(&dbc, LOG).unwrap().to_json();
        assert_eq!(json["frames"][0]["signals"][0]["value"], "46.6");
        assert_eq!(json["frames"][0]["signals"][1]["meaning"], "first");
        assert_eq!(json["unknown"][0]["id"], "12345678");
        assert_eq!(crate::formats::schema::wrong_output(&json), Vec::<String>::new());
    }

    #[test]
    fn a_broken_line_of_a_log_is_named() {
        let dbc = Dbc::parse(DBC).unwrap();
        let refused = decode(&dbc, "(1.0) can0 100#00\n(2.0) can0 100#0\n").err().unwrap();
        assert_eq!(refused, "line 2: column 16: data are hexadecimal digits in pairs");
    }
}
