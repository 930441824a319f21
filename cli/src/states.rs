//! The typed ends of state messages, which programs in Rust and in C include.
//!
//! Every command that compiles programs writes them beside the description, in the folder
//! `generated`: a module for Rust and a header for C. Each has a type and functions for every
//! `[[state]]`.

use crate::failure::Failure;
use diapason_system::{StateField, StateSpec, System};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder beside a description that these files are in.
pub const FOLDER: &str = "generated";
/// Both files, and the first line of each.
const FILES: [(&str, &str); 2] = [
    ("states.rs", "// `diapason build` writes this file: change the description instead."),
    ("states.h", "/* `diapason build` writes this file: change the description instead. */"),
];

/// Returns the folder of the files for a description.
#[must_use]
pub fn folder(description: &Path) -> PathBuf {
    description.parent().unwrap_or(Path::new("")).join(FOLDER)
}

/// Writes the files for a description, or removes those of state messages that it does not have any
/// more. Files that say the same already stay as they are.
///
/// # Errors
/// If a file cannot be written, or two hosts mean different things by one name.
pub fn write(description: &Path, systems: &[&System]) -> Result<(), Failure> {
    let states = all(systems).map_err(Failure::Input)?;
    let folder = folder(description);
    for ((name, first), text) in FILES.into_iter().zip([rust(&states), header(&states)]) {
        let path = folder.join(name);
        let before = fs::read_to_string(&path).unwrap_or_default();
        let failed = |does: &str, error: &std::io::Error| {
            Failure::io(format!("{does} {}", path.display()), error)
        };
        if states.is_empty() {
            if before.starts_with(first) {
                fs::remove_file(&path).map_err(|error| failed("remove", &error))?;
            }
        } else if before != format!("{first}\n{text}") {
            fs::create_dir_all(&folder).map_err(|error| failed("make the folder of", &error))?;
            let whole = format!("{first}\n{text}");
            fs::write(&path, whole).map_err(|error| failed("write", &error))?;
        }
    }
    Ok(())
}

/// Returns the state messages of all systems, each once.
fn all<'a>(systems: &[&'a System]) -> Result<Vec<&'a StateSpec>, String> {
    let mut found: Vec<&StateSpec> = Vec::new();
    for state in systems.iter().flat_map(|system| &system.states) {
        let same = |other: &&&StateSpec| other.word() == state.word();
        let Some(other) = found.iter().find(same) else {
            found.push(state);
            continue;
        };
        let key =
            |state: &StateSpec| (state.number, state.fields.clone(), state.slots, state.period_ns);
        if key(state) != key(other) {
            return Err(format!(
                "error: two hosts have a state message `{}`, and it is not the same\nhelp: rename \
                 one, or give both the same fields, slots, \
                 period and place in the description",
                state.name
            ));
        }
    }
    Ok(found)
}

/// Returns who writes and reads a message.
fn ends(state: &StateSpec) -> String {
    let readers: Vec<&str> = state.readers.iter().map(|reader| reader.name.as_str()).collect();
    format!("`{}` writes it; read by {}", state.writer, readers.join(", "))
}

fn rust(states: &[&StateSpec]) -> String {
    let head = "\n#![allow(dead_code, reason = \"a program has one end\")]\n";
    states.iter().fold(head.to_owned(), |text, state| text + &module(state))
}

fn module(state: &StateSpec) -> String {
    let field = |field: &StateField| {
        let number = field.number.rust;
        let kind = field.length.map_or(number.into(), |length| format!("[{number}; {length}]"));
        format!("            pub {}: {kind},\n", field.name)
    };
    let fields: String = state.fields.iter().map(field).collect();
    let StateSpec { name, number, slots, period_ns, .. } = state;
    format!(
        "
/// The state message `{name}`: {ends}.
pub mod {word} {{
    use diapason_rt::state::{{self, StateSource, StateWatch}};
    use diapason_rt::{{Errno, Nanos}};

    /// No read meets as many writes.
    pub const SLOTS: usize = {slots};

    state::plain! {{
        /// A value of `{name}`.
        #[derive(Debug, PartialEq)]
        pub struct Value {{
{fields}        }}
    }}

    /// The end of `{writer}`.
    pub type Writer = StateSource<Value, SLOTS>;
    /// The end of a reader.
    pub type Reader = StateWatch<Value, SLOTS>;

    /// Returns the end that writes.
    ///
    /// # Errors
    /// None in `{writer}`. A process without an end of the message ends.
    pub fn writer() -> Result<Writer, Errno> {{
        StateSource::attach(\"{name}\", {number}, Nanos({period_ns}))
    }}

    /// Returns an end that reads.
    ///
    /// # Errors
    /// None in a reader. A process without an end of the message ends.
    pub fn reader() -> Result<Reader, Errno> {{
        StateWatch::attach(\"{name}\", {number})
    }}
}}
",
        ends = ends(state),
        word = state.word(),
        writer = state.writer,
    )
}

fn header(states: &[&StateSpec]) -> String {
    let head = "#ifndef STATES_H\n#define STATES_H\n\n#include <state.h>\n";
    let parts: String = states.iter().map(|state| part(state)).collect();
    format!("{head}{parts}\n#endif\n")
}

fn part(state: &StateSpec) -> String {
    let field = |field: &StateField| {
        let length = field.length.map_or(String::new(), |length| format!("[{length}]"));
        format!("    {} {}{length};\n", field.number.c, field.name)
    };
    let fields: String = state.fields.iter().map(field).collect();
    let StateSpec { name, number, slots, period_ns, .. } = state;
    format!(
        "
/* The state message `{name}`: {ends}. */
typedef struct {{
{fields}}} {word}_value;

_Static_assert(sizeof({word}_value) == {bytes}, \"as large as in Rust\");

/* The end of `{writer}`, and that of a reader. */
typedef struct {{ dia_state state; }} {word}_writer;
typedef struct {{ dia_state state; }} {word}_reader;

static inline int {word}_writer_open({word}_writer *writer)
{{
    return dia_state_attach(\"{name}\", {number}, {slots}, {bytes}, {period_ns},
                            writer ? &writer->state : NULL);
}}

static inline int {word}_write({word}_writer *writer, const {word}_value *value)
{{
    return dia_state_write(writer ? &writer->state : NULL, value);
}}

static inline int {word}_reader_open({word}_reader *reader)
{{
    return dia_state_attach(\"{name}\", {number}, {slots}, {bytes}, 0,
                            reader ? &reader->state : NULL);
}}

/* Reads the newest value. DIA_OVERTAKEN contradicts the description, and the value is zero. */
static inline int {word}_read({word}_reader *reader, {word}_value *value)
{{
    return dia_state_read(reader ? &reader->state : NULL, value);
}}

/* Returns the number of writes up to now: 0 before the first one. */
static inline uint64_t {word}_writes(const {word}_reader *reader)
{{
    return dia_state_writes(reader ? &reader->state : NULL);
}}
",
        ends = ends(state),
        word = state.word(),
        bytes = state.bytes(),
        writer = state.writer,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_system::parse;

    const SYSTEM: &str = include_str!("../templates/state/system.toml");

    #[test]
    fn both_languages_have_the_same_value() {
        let system = parse("system.toml", SYSTEM).unwrap();
        let state = &system.states[0];
        let (module, part) = (module(state), part(state));
        for line in [
            "pub mod speed {",
            "pub time_ns: u64,",
            "pub const SLOTS: usize = 42;",
            "(\"speed\", 0, Nanos(5000000))",
        ] {
            assert!(module.contains(line), "{line}\n{module}");
        }
        for line in ["    uint64_t time_ns;", "} speed_value;", "(\"speed\", 0, 42, 16, 5000000,"] {
            assert!(part.contains(line), "{line}\n{part}");
        }
    }

    #[test]
    fn files_are_written_once_and_removed_with_the_last_message() {
        let folder = std::env::temp_dir().join(format!("diapason-states-{}", std::process::id()));
        let description = folder.join("system.toml");
        let with = parse("system.toml", SYSTEM).unwrap();
        write(&description, &[&with]).unwrap();
        let path = folder.join(FOLDER).join("states.h");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(FILES[1].1), "{text}");
        let (head, rest) = SYSTEM.split_once("[[state]]").unwrap();
        let (_, rest) = rest.split_once("\n\n").unwrap();
        let without = parse("system.toml", &(head.to_owned() + rest)).unwrap();
        write(&description, &[&without]).unwrap();
        assert!(!path.exists());
        // A file of somebody else's stays.
        fs::write(&path, "/* mine */").unwrap();
        write(&description, &[&without]).unwrap();
        assert!(path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn one_name_is_one_message() {
        let one = parse("a.toml", SYSTEM).unwrap();
        let other = SYSTEM.replace("turns: u32", "turned: u32");
        let other = parse("b.toml", &other).unwrap();
        assert_eq!(all(&[&one, &one]).unwrap().len(), 1);
        assert!(all(&[&one, &other]).unwrap_err().contains("help: rename one"));
    }
}
