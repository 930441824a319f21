//! The headers for C say what the library in Rust does: the same functions, and the same numbers.

mod shapes;

use diapason::Workspace;
use diapason_abi::{Errno, MESSAGE_BYTES, PAGE, PRIORITIES};
use diapason_can::canlib;
use diapason_contract::tuned::MESSAGE_BYTES as MESSAGE_BYTES_OF_PIPES;
use diapason_contract::{ethernet, sensor, sink};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Functions that the headers declare and the library does not define: a program's own `main`, and
/// those of `library/*.c` and `lib/routines`.
const ELSEWHERE: [&str; 15] = [
    "main",
    "dia_format",
    "dia_format_list",
    "dia_logf",
    "dia_state_attach",
    "dia_state_write",
    "dia_state_read",
    "dia_state_writes",
    "strlen",
    "strcmp",
    "strncmp",
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
];

const HEADERS: [&str; 7] =
    ["diapason.h", "canlib.h", "tpipe.h", "sensor.h", "usb.h", "socket.h", "state.h"];

/// The kinds of arguments of functions, and last of what they return, by their names.
type Functions = BTreeMap<String, Vec<String>>;

fn folder() -> PathBuf {
    Workspace::find().unwrap().root().join("user/c")
}

fn header(name: &str) -> String {
    fs::read_to_string(folder().join("include").join(name)).unwrap()
}

/// Splits at commas that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut all) = (0, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth -= 1,
            ',' if depth == 0 => {
                all.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(text[start..].trim());
    all.retain(|part| !part.is_empty());
    all
}

/// Returns the kind of a type of Rust, as it is passed.
fn of_rust(kind: &str) -> String {
    let place = |inner: &str| format!("place of {}", of_rust(inner.trim()));
    if let Some(inner) = kind.strip_prefix("Place<'_,").and_then(|rest| rest.strip_suffix('>')) {
        return if inner.trim().starts_with('[') { "bytes".into() } else { place(inner) };
    }
    if let Some(inner) = kind.strip_prefix("Option<&").and_then(|rest| rest.strip_suffix('>')) {
        return place(inner.trim_start_matches("mut "));
    }
    let record = kind.trim_start_matches(['&', '*']).trim_start_matches("mut ");
    if shapes::is_record(record) {
        return if record == kind { kind.into() } else { place(record) };
    }
    match kind {
        "u64" | "usize" => "word",
        "i64" => "signed word",
        "u32" => "half",
        "i32" => "signed half",
        "bool" => "bool",
        "CText" | "*const c_void" | "*mut c_void" | "*const u8" | "*mut u8" => "bytes",
        "*mut u64" => return place("u64"),
        "Option<Body>" | "Option<TpipeReader>" | "Option<TpipeSource>" | "Option<TpipePassage>" => {
            "function"
        }
        "!" | "" => "nothing",
        _ => panic!("what is `{kind}` in C?"),
    }
    .into()
}

/// Returns the kind of a C type, with or without the name of an argument after it.
fn of_c(text: &str) -> String {
    if text.contains("(*") {
        return "function".into();
    }
    let name = text.trim_start_matches("const ").split([' ', '*']).next().unwrap_or_default();
    match shapes::of_name(name) {
        Some(shapes::CType::Function) => return "function".into(),
        Some(shapes::CType::Record(record)) if text.contains('*') => {
            return format!("place of {record}");
        }
        Some(shapes::CType::Record(record)) => return record,
        None => {}
    }
    let stars = text.matches('*').count();
    let words: Vec<&str> = text.split([' ', '*']).filter(|word| !word.is_empty()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| *word != "const").collect();
    let plain = match words[..] {
        ["uint64_t" | "size_t", ..] | ["unsigned", "long", ..] => "word",
        ["int64_t" | "long", ..] => "signed word",
        ["uint32_t", ..] | ["unsigned", "int", ..] => "half",
        ["int" | "canStatus" | "CanHandle", ..] => "signed half",
        ["bool", ..] => "bool",
        ["void", ..] if stars == 0 => "nothing",
        ["void" | "char", ..] => "bytes",
        [handle, ..] if handle.starts_with("dia_") => "word",
        _ => panic!("what is `{text}` in Rust?"),
    };
    match (plain, stars) {
        (plain, 0) | (plain @ "bytes", 1) => plain.into(),
        (plain, _) => format!("place of {plain}"),
    }
}

/// Returns the functions that Rust sources define for C.
fn defined() -> Functions {
    let mut all = Functions::new();
    for entry in fs::read_dir(folder().join("src")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        for rest in text.split("#[unsafe(no_mangle)]\n").skip(1) {
            let rest = rest.strip_prefix("extern \"C\" fn ").unwrap();
            let (name, rest) = rest.split_once('(').unwrap();
            let (whole, _) = rest.split_once('{').unwrap();
            let (arguments, returned) = whole.rsplit_once(')').unwrap();
            let returned = returned.trim().trim_start_matches("->").trim();
            let kind = |part: &&str| of_rust(part.split_once(':').unwrap().1.trim());
            let mut kinds: Vec<String> = parts(arguments).iter().map(kind).collect();
            kinds.push(of_rust(returned));
            all.insert(name.into(), kinds);
        }
    }
    all
}

/// Returns the statements of a header, without comments, lines of the preprocessor and attributes.
fn statements(name: &str) -> Vec<String> {
    let text = header(name);
    let code = text.split("/*").enumerate().map(|(index, part)| match index {
        0 => part,
        _ => part.split_once("*/").unwrap().1,
    });
    let code: String = code.collect();
    let lines: Vec<&str> = code.lines().filter(|line| !line.starts_with('#')).collect();
    let whole = lines.join(" ");
    let plain = whole.split(';').map(|part| part.split("__attribute__").next().unwrap().trim());
    plain.map(String::from).collect()
}

/// Splits the declaration of a function of C into its name and its kinds: those of the arguments,
/// and last that of the result.
fn function_of_c(declaration: &str) -> (String, Vec<String>) {
    let (head, arguments) = declaration.split_once('(').unwrap();
    let (_, name) = head.rsplit_once([' ', '*']).unwrap();
    let returned = &head[..head.len() - name.len()];
    let arguments = arguments.strip_suffix(')').unwrap();
    let arguments = if arguments == "void" { "" } else { arguments };
    let mut kinds: Vec<String> = parts(arguments).into_iter().map(of_c).collect();
    kinds.push(of_c(returned));
    (name.into(), kinds)
}

fn declared() -> Functions {
    let mut all = Functions::new();
    for statement in HEADERS.into_iter().flat_map(statements) {
        let statement = statement.trim_start_matches("extern \"C\" {").trim();
        if !statement.contains('(') || statement.starts_with("typedef") {
            continue;
        }
        let name = statement.split('(').next().and_then(|head| head.rsplit([' ', '*']).next());
        if !name.is_some_and(|name| ELSEWHERE.contains(&name)) {
            all.extend([function_of_c(statement)]);
        }
    }
    all
}

#[test]
fn every_function_is_declared_as_it_is_defined() {
    let (declared, defined) = (declared(), defined());
    assert!(declared.len() > 60, "{declared:#?}");
    assert_eq!(declared, defined);
}

/// The beginnings of names in C, and the numbers of each in Rust.
const NUMBERS: [(&str, &[(&str, i64)]); 8] = [
    ("canERR_", canlib::RESULTS),
    ("canMSG_", canlib::MESSAGE_FLAGS),
    ("canFDMSG_", canlib::FD_FLAGS),
    ("canOPEN_", canlib::OPEN_FLAGS),
    ("canSTAT_", canlib::STATE_FLAGS),
    ("canDRIVER_", canlib::DRIVERS),
    ("canIOCTL_", canlib::CONTROLS),
    ("can", canlib::BIT_RATES),
];

/// Returns the numbers of CANlib by their names in C.
fn can_numbers() -> BTreeMap<String, i64> {
    let named = |start: &str, name: &str| match (start, name) {
        ("canERR_", "OK") => "canOK".into(),
        ("canMSG_", "SW_OVERRUN") => "canMSGERR_SW_OVERRUN".into(),
        _ => format!("{start}{name}"),
    };
    let all = NUMBERS.iter().flat_map(|(start, list)| {
        list.iter().map(move |(name, number)| (named(start, name), *number))
    });
    all.collect()
}

/// Returns the name of an error in C: of `TimedOut`, `DIA_TIMED_OUT`.
fn screaming(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter.is_ascii_uppercase() {
        true => format!("_{letter}"),
        false => letter.to_ascii_uppercase().to_string(),
    });
    format!("DIA{}", letters.collect::<String>())
}

#[test]
fn every_number_of_canlib_is_in_its_header() {
    let text = header("canlib.h");
    let defined = text.lines().filter_map(|line| line.strip_prefix("#define can"));
    let names = defined.filter_map(|line| Some(format!("can{}", line.split_once(' ')?.0)));
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, can_numbers().into_keys().collect::<Vec<_>>());
}

/// Compiles a text in C with all warnings, which are errors.
#[track_caller]
fn compiles(text: &str) {
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-ffreestanding", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]);
    compiler.args(["-Wpedantic", "-x", "c", "-I"]).arg(folder().join("include")).arg("-");
    let mut child = compiler.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// A C compiler compares the numbers, and looks at the headers with all of its warnings.
#[test]
fn a_c_compiler_finds_the_numbers_of_rust_in_the_headers() {
    let errors = Errno::ALL.map(|errno| (screaming(&format!("{errno:?}")), -(errno as i64)));
    let sizes = [
        ("DIA_MESSAGE_BYTES", MESSAGE_BYTES as i64),
        ("DIA_PAGE", PAGE as i64),
        ("DIA_PRIORITIES", PRIORITIES as i64),
        ("DIA_OWNER_DIED", diapason_abi::call::OWNER_DIED as i64),
        ("TPIPE_PLACES", diapason_abi::pipe::PLACES as i64),
        ("TPIPE_MESSAGE_BYTES", MESSAGE_BYTES_OF_PIPES as i64),
        ("DIA_PACKET_BYTES", sensor::PACKET as i64),
        ("DIA_PACKET_OUTSIDE", sensor::OUTSIDE.into()),
        ("DIA_PACKET_LOST_BEFORE", sensor::LOST_BEFORE.into()),
        ("DIA_SOCKETS", ethernet::SOCKETS as i64),
        ("DIA_DATAGRAM_BYTES", ethernet::PAYLOAD_MAX as i64),
        ("sizeof(dia_packet)", size_of::<sensor::Packet>() as i64),
        ("DIA_PACKET_DONE", sink::DONE.into()),
        ("DIA_PACKET_FAILED", sink::FAILED.into()),
        ("DIA_PACKET_GONE", sink::GONE.into()),
        ("DIA_PACKET_NONSENSE", sink::NONSENSE.into()),
        ("sizeof(dia_packet_answer)", size_of::<sink::PacketAnswer>() as i64),
    ];
    let sizes = sizes.map(|(name, number)| (name.to_owned(), number));
    let mut text: String = HEADERS.map(|name| format!("#include <{name}>\n")).concat();
    for (name, number) in errors.into_iter().chain(sizes).chain(can_numbers()) {
        text += &format!("_Static_assert({name} == {number}, \"{name} is {number} in Rust\");\n");
    }
    for kind in ["unsigned long", "long", "void *"] {
        text += &format!("_Static_assert(sizeof({kind}) == 8, \"{kind}\");\n");
    }
    text += "_Static_assert(sizeof(dia_mutex) == 8, \"a handle is a word\");\n";
    compiles(&text);
}

#[test]
fn the_samples_in_c_of_pages_compile() {
    for page in [include_str!("../../docs/programs.md"), include_str!("../../docs/linux.md")] {
        let samples: Vec<&str> = page.split("```c\n").skip(1).collect();
        assert!(!samples.is_empty());
        let samples = samples.iter().filter_map(|rest| rest.split("```").next());
        // `diapason build` makes that header; the step `three programs` builds its sample.
        samples.filter(|sample| !sample.contains("<states.h>")).for_each(compiles);
    }
}
