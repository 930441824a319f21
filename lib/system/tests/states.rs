//! The rules of `[[state]]`: what follows from one, and what cannot be one.

use crate::common::{built, refused};
use diapason_system::{StateSpec, System, parse};
use proptest::prelude::*;

/// A process `w` that writes in jobs on a VCPU of 5 ms, processes `r` and `s` on VCPUs of 20 ms and
/// 100 ms, and a process `x` without one.
const SYSTEM: &str = "[system]\nname = \"s\"
[[process]]\nname = \"w\"\npriority = 1\nvcpu = \"wv\"
[[process]]\nname = \"r\"\npriority = 1\nvcpu = \"rv\"
[[process]]\nname = \"s\"\npriority = 1\nvcpu = \"sv\"
[[process]]\nname = \"x\"\npriority = 1
[[vcpu]]\nname = \"wv\"\nbudget = \"1ms\"\nperiod = \"5ms\"\njob = \"500us\"
[[vcpu]]\nname = \"rv\"\nbudget = \"1ms\"\nperiod = \"20ms\"
[[vcpu]]\nname = \"sv\"\nbudget = \"1ms\"\nperiod = \"100ms\"
";
const SUPERVISOR: &str = "[[process]]\nname = \"supervisor\"\npriority = 63\n";
/// A state message, in which line 1 is the header, 2 the name, 3 its fields, 4 the writer, and 5
/// its readers.
const STATE: &str = "[[state]]\nname = \"wheel.speed\"\nfields = [\"time: u64\", \"turns: u32\", \
     \"gear: u16\", \"flags: [u8; 2]\"]\nwriter = \"w\"\nreaders = [\"r\"]\n";

fn system(state: &str) -> System {
    let text = SYSTEM.to_owned() + state;
    parse("f", &text).unwrap_or_else(|why| panic!("{why}"))
}

fn only(system: &System) -> &StateSpec {
    assert_eq!(system.states.len(), 1);
    &system.states[0]
}

/// One part of the description is another: this is wrong with it, here, and so it would be right.
#[track_caller]
fn bad([from, to]: [&str; 2], (line, column): (usize, usize), title: &str, help: &str) {
    assert!(STATE.contains(from), "{from}");
    let before = SYSTEM.lines().count();
    let text = SYSTEM.to_owned() + &STATE.replacen(from, to, 1);
    refused(&text, (before + line, column), title, help);
}

#[test]
fn a_message_is_a_segment_of_its_ends() {
    let said = system(STATE);
    let spelt_out = SYSTEM
        .replace("vcpu = \"wv\"\n", "vcpu = \"wv\"\nuses = [\"wheel.speed\"]\n")
        .replace("vcpu = \"rv\"\n", "vcpu = \"rv\"\nuses = [\"wheel.speed\"]\n")
        + "[[segment]]\nname = \"wheel.speed\"\nsize = \"4K\"\n";
    let spelt_out = parse("f", &spelt_out).unwrap();
    assert_eq!((&said.segments, &said.processes), (&spelt_out.segments, &spelt_out.processes));
    assert_eq!(built(&said).unwrap(), built(&spelt_out).unwrap());
    let state = only(&said);
    assert_eq!(
        (state.word(), state.bytes(), state.period_ns),
        ("wheel_speed".into(), 16, 5_000_000)
    );
    assert_eq!(state.readers[0].process, Some(1));
}

#[test]
fn the_slots_follow_from_the_periods() {
    // A read takes up to 40 ms. In that time eight writes begin, and one may be under way.
    let slots = |text: &str| only(&system(text)).slots;
    assert_eq!(slots(STATE), 10);
    assert_eq!(slots(&STATE.replace("[\"r\"]", "[\"r\", \"s\"]")), 42);
    assert_eq!(slots(&(STATE.to_owned() + "period = \"30ms\"\n")), 4);
    assert_eq!(slots(&(STATE.to_owned() + "slots = 11\n")), 11);
    // Several jobs in a period, or less than one.
    for (interval, period_ns, slots) in [("1ms", 1_000_000, 42), ("20ms", 20_000_000, 4)] {
        let job = format!("job = \"500us\"\ninterval = \"{interval}\"");
        let jobs = parse("f", &(SYSTEM.replace("job = \"500us\"", &job) + STATE)).unwrap();
        assert_eq!((only(&jobs).period_ns, only(&jobs).slots), (period_ns, slots));
    }
    let restarted =
        SYSTEM.replace("vcpu = \"wv\"", "vcpu = \"wv\"\nrestart = 3\nbackoff = \"1ms\"");
    let restarted = parse("f", &(restarted + SUPERVISOR + STATE)).unwrap();
    assert_eq!((only(&restarted).period_ns, only(&restarted).slots), (1_000_000, 42));
}

#[test]
fn the_segment_has_room_for_all_slots() {
    let large = STATE.replace("\"flags: [u8; 2]\"", "\"flags: [u8; 2]\", \"all: [u64; 500]\"");
    let system = system(&large);
    assert_eq!(only(&system).bytes(), 4_016);
    assert_eq!(system.segments[0].size, (16 + 10 * 4_016_u64).next_multiple_of(4_096));
}

#[test]
fn ends_on_two_cores_share_the_message() {
    let text = SYSTEM.replacen("name = \"s\"\n", "name = \"s\"\ncores = 2\n", 1);
    let text = text.replace("name = \"r\"\n", "name = \"r\"\ncore = 1\n") + STATE;
    let cores = diapason_system::parse_cores("f", &text).unwrap();
    assert_eq!(cores.len(), 2);
    // A store is seen there 1 us later.
    let window = |core: &System| only(core).readers[0].window_ns;
    assert_eq!(cores.iter().map(window).collect::<Vec<_>>(), [40_001_000; 2]);
    assert_eq!(cores.iter().map(|core| only(core).slots).collect::<Vec<_>>(), [11; 2]);
    assert_eq!(
        (only(&cores[0]).readers[0].process, only(&cores[1]).readers[0].process),
        (None, Some(0))
    );
    assert!(cores.iter().all(|core| core.segments[0].common));
}

#[test]
fn ends_that_are_missing_or_unknown_are_reported() {
    bad(
        ["writer = \"w\"\n", ""],
        (2, 8),
        "state message `wheel.speed` has no `writer`",
        "add `writer = \"…\"`: the `[[process]]` that writes it",
    );
    bad(
        ["readers = [\"r\"]\n", ""],
        (2, 8),
        "state message `wheel.speed` has no `readers`",
        "add `readers = [\"…\"]`: the processes that read it",
    );
    bad(
        ["writer = \"w\"", "writer = \"q\""],
        (4, 10),
        "no process named `q` is declared",
        "declare it: `[[process]]` with `name = \"q\"`",
    );
    bad(["[\"r\"]", "[\"rv\"]"], (5, 12), "`rv` is a VCPU, not a process", "did you mean `r`?");
    bad(
        ["[\"r\"]", "[\"r\", \"w\"]"],
        (5, 17),
        "`w` writes `wheel.speed`, and would read it",
        "leave it out of `readers`",
    );
}

#[test]
fn what_bounds_no_write_or_no_read_is_refused() {
    bad(
        ["[\"r\"]", "[\"r\", \"x\"]"],
        (5, 17),
        "nothing bounds how long `x` takes for a read of `wheel.speed`: it has no VCPU",
        "give `x` a Main VCPU: `vcpu = \"…\"` in its `[[process]]`",
    );
    bad(
        ["writer = \"w\"", "writer = \"x\""],
        (4, 10),
        "nothing says how often `wheel.speed` is written",
        "add `period = \"10ms\"`, the shortest time between two writes; or give `x` a `vcpu` with \
         a `job` that writes once: then the time between two jobs counts",
    );
    // A thread without jobs may write at every message that wakes it.
    bad(
        ["writer = \"w\"\nreaders = [\"r\"]", "writer = \"r\"\nreaders = [\"s\"]"],
        (4, 10),
        "nothing says how often `wheel.speed` is written",
        "add `period = \"10ms\"`, the shortest time between two writes; or give `r` a `vcpu` with \
         a `job` that writes once: then the time between two jobs counts",
    );
    bad(
        ["[\"r\"]\n", "[\"r\"]\nslots = 9\n"],
        (6, 9),
        "`wheel.speed` needs 10 slots, and has 9",
        "write `slots = 10`, or leave it out",
    );
    bad(
        ["[\"r\"]\n", "[\"r\"]\nperiod = \"20us\"\n"],
        (2, 8),
        "`wheel.speed` would need 2002 slots of 16 bytes",
        "write it less often (`period`), give its readers VCPUs with shorter periods, or make a \
         value smaller: 1000 slots and 1048576 bytes are the most",
    );
}

#[test]
fn another_process_cannot_have_the_segment() {
    let text = SYSTEM.replace(
        "name = \"x\"\npriority = 1",
        "name = \"x\"\npriority = 1\nuses = [\"wheel.speed\"]",
    );
    let title = "`x` uses `wheel.speed`, and is no reader of it";
    let help = "add `x` to its `readers`, and leave `wheel.speed` out of `uses`";
    refused(&(text + STATE), (18, 9), title, help);
}

#[test]
fn fields_are_numbers_without_gaps() {
    let number = "write `u8`, `u16`, `u32`, `u64`, `i8`, `i16`, `i32`, `i64`, `f32` or `f64`, or \
                  an array of one";
    let example = "write it as in `\"turns: u32\"` or `\"samples: [u16; 8]\"`";
    let letters = "write 1 to 31 characters of a-z, 0-9 and `_`, the first a letter";
    let keyword = "choose another: the word has a meaning in Rust or in C";
    for (to, title, help) in [
        ("turns: int", "`int` is no type of numbers", number),
        ("turns: bool", "`bool` is no type of numbers", number),
        ("turns u32", "`turns u32` is no field", example),
        ("turns: [u32]", "`[u32]` has no length", example),
        ("turns: [u32; 0]", "`[u32; 0]` is no array of 1 to 4096", example),
        ("Turns: u32", "a field cannot be called `Turns`", letters),
        ("loop: u32", "a field cannot be called `loop`", keyword),
        ("time: u32", "two fields `time`", "rename one of them"),
    ] {
        bad(["turns: u32", to], (3, 24), title, help);
    }
    bad(
        ["\"turns: u32\", \"gear: u16\"", "\"gear: u16\", \"turns: u32\""],
        (3, 37),
        "there would be 2 bytes of nothing before `turns`",
        "put fields with longer numbers first, or `\"gap: [u8; 2]\"` before this one",
    );
    bad(
        [", \"flags: [u8; 2]\"", ""],
        (3, 38),
        "there would be 2 bytes of nothing at the end of a value",
        "add the field `\"gap: [u8; 2]\"`",
    );
}

#[test]
fn names_are_words_of_programs() {
    bad(
        ["wheel.speed", "4wheels"],
        (2, 8),
        "programs cannot have a module `4wheels`",
        "write 1 to 31 characters of a-z, 0-9 and `_`, the first a letter",
    );
    let twice = SYSTEM.to_owned() + STATE + &STATE.replace("wheel.speed", "wheel-speed");
    let line = (SYSTEM.to_owned() + STATE).lines().count() + 2;
    let title = "`wheel-speed` and `wheel.speed` are one word in programs";
    refused(&twice, (line, 8), title, "rename one: `-` and `.` become `_`");
}

/// Texts that are fields, or nearly.
const FIELD: &str = "[a-z]{0,3}[:; ]{0,2}\\[?[uif][0-9]{1,2}(; ?[0-9]{1,20}\\])?";

proptest! {
    /// Any texts and numbers get an answer, and the archive of what is accepted can be built.
    #[test]
    fn any_message_gets_an_answer(
        fields in proptest::collection::vec(FIELD, 0..4),
        name in "[a-z0-9._-]{0,4}|loop",
        ends in proptest::collection::vec("[wrsxq]", 0..4),
        period in any::<u64>(),
        slots in any::<u16>(),
    ) {
        let quoted = |all: &[String]| {
            all.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(", ")
        };
        let text = format!(
            "{SYSTEM}[[state]]\nname = \"{name}\"\nfields = [{}]\nwriter = \"w\"\nreaders = [{}]\n\
             period = \"{period}ns\"\nslots = {slots}\n",
            quoted(&fields),
            quoted(&ends),
        );
        match parse("f", &text) {
            Ok(system) => prop_assert!(built(&system).is_ok()),
            Err(found) => {
                prop_assert!(!found.items().is_empty());
                prop_assert!(found.items().iter().all(|item| !item.help.is_empty()));
            }
        }
    }
}
