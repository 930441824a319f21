//! Structures and types of functions that C and Rust share, field by field.

use super::{HEADERS, folder, function_of_c, of_c, of_rust, parts, statements};
use diapason_contract::ethernet::PAYLOAD_MAX;
use diapason_contract::sensor::PACKET;
use std::collections::BTreeMap;
use std::fs;

/// The meaning of a name of a type in C.
pub enum CType {
    /// A structure, and its name in Rust.
    Record(String),
    Function,
}

/// The structures, and the types of functions, by their names in Rust. The first three are the
/// library's, the others have names of C that begin like their headers.
const RECORDS: [&str; 8] = [
    "Datagram",
    "Packet",
    "PacketAnswer",
    "TpipeQos",
    "TpipeTerms",
    "TpipeFrame",
    "TpipeMessage",
    "TpipeCounts",
];
const FUNCTIONS: [&str; 3] = ["TpipeReader", "TpipeSource", "TpipePassage"];

/// The sources in Rust that have them.
const SOURCES: [&str; 4] = [
    "src/socket.rs",
    "src/tuned.rs",
    "../../lib/contract/src/sensor.rs",
    "../../lib/contract/src/sink.rs",
];

/// The names of lengths of arrays. The numbers of C are compared elsewhere.
const LENGTHS: [(&str, usize); 4] = [
    ("DIA_PACKET_BYTES", PACKET),
    ("PACKET", PACKET),
    ("DIA_DATAGRAM_BYTES", PAYLOAD_MAX as usize),
    ("PAYLOAD_MAX as usize", PAYLOAD_MAX as usize),
];

/// Returns whether this is the name of a structure in Rust.
pub fn is_record(name: &str) -> bool {
    RECORDS.contains(&name)
}

/// Returns what a type of C is, if it is a structure or a function: `tpipe_qos` is `TpipeQos`.
pub fn of_name(name: &str) -> Option<CType> {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_ascii_uppercase() + rest
    });
    let name: String = words.collect();
    let name = name.strip_prefix("Dia").unwrap_or(&name);
    if FUNCTIONS.contains(&name) {
        return Some(CType::Function);
    }
    is_record(name).then(|| CType::Record(name.into()))
}

/// Returns the length of an array, which is a number or has a name.
fn length(text: &str) -> usize {
    let named = LENGTHS.iter().find(|(name, _)| *name == text);
    named.map_or_else(|| text.parse().unwrap(), |(_, length)| *length)
}

/// Returns a field of Rust as its name and kind.
fn field_of_rust(field: &str) -> (String, String) {
    let (name, kind) = field.trim_start_matches("pub ").split_once(':').unwrap();
    let bytes = kind.trim().strip_prefix("[u8;").and_then(|rest| rest.strip_suffix(']'));
    let kind = bytes
        .map_or_else(|| of_rust(kind.trim()), |bytes| format!("{} bytes", length(bytes.trim())));
    (name.into(), kind)
}

/// Returns a field of C as its name and kind.
fn field_of_c(field: &str) -> (String, String) {
    let (kind, name) = field.split_once(' ').unwrap();
    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((name, bytes)) => {
            assert_eq!(kind, "uint8_t");
            (name.into(), format!("{} bytes", length(bytes)))
        }
        None => (name.into(), of_c(kind)),
    }
}

type Fields = Vec<(String, String)>;

#[test]
fn every_structure_has_the_same_fields_in_both_languages() {
    let mut rust = BTreeMap::<String, Fields>::new();
    for source in SOURCES {
        let text = fs::read_to_string(folder().join(source)).unwrap();
        for record in RECORDS {
            let Some((_, rest)) = text.split_once(&format!("struct {record} {{")) else { continue };
            let (body, _) = rest.split_once('}').unwrap();
            let lines = body.lines().map(str::trim).filter(|line| !line.starts_with("//"));
            let body = lines.collect::<Vec<_>>().join(" ");
            rust.insert(record.into(), parts(&body).into_iter().map(field_of_rust).collect());
        }
    }
    let whole = HEADERS.map(|name| statements(name).join(";")).join(";");
    let mut c = BTreeMap::<String, Fields>::new();
    for rest in whole.split("typedef struct {").skip(1) {
        let (body, rest) = rest.split_once('}').unwrap();
        let name = rest.split(';').next().unwrap().trim();
        if let Some(CType::Record(record)) = of_name(name) {
            let fields = body.split(';').map(str::trim).filter(|field| !field.is_empty());
            c.insert(record, fields.map(field_of_c).collect());
        }
    }
    assert_eq!(c.len(), RECORDS.len());
    assert_eq!(c, rust);
}

#[test]
fn every_type_of_a_function_is_the_same_in_both_languages() {
    let text = fs::read_to_string(folder().join("src/tuned.rs")).unwrap();
    let of_rust_type = |name: &str| {
        let (_, rest) = text.split_once(&format!("type {name} = extern \"C\" fn(")).unwrap();
        let (arguments, rest) = rest.split_once(')').unwrap();
        let returned = rest.split(';').next().unwrap().trim().trim_start_matches("->").trim();
        let mut kinds: Vec<String> = parts(arguments).into_iter().map(of_rust).collect();
        kinds.push(of_rust(returned));
        kinds
    };
    let statements = statements("tpipe.h").into_iter();
    let types = statements.filter_map(|text| Some(text.strip_prefix("typedef ")?.to_owned()));
    let functions = types.filter(|text| text.contains('(')).map(|text| function_of_c(&text));
    let functions: Vec<_> = functions.collect();
    assert_eq!(functions.len(), FUNCTIONS.len());
    for ((name, kinds), rust) in functions.into_iter().zip(FUNCTIONS) {
        assert!(matches!(of_name(&name), Some(CType::Function)));
        assert_eq!(kinds, of_rust_type(rust), "{name}");
    }
}
