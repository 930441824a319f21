//! Functions that firmware left accessing memory are stopped when the first program runs, an
//! adapter that it left asleep is awake, and the interrupt controllers of old PCs are masked, with
//! numbers behind those of exceptions.
//!
//! The debugger plays the firmware: it writes the configuration of PCI through its two ports before
//! the kernel's first instruction.

use super::{Debugged, Failure, Workspace};
use diapason::metal::Built;

/// A system with an adapter that its driver uses, and nothing else of PCI.
const SYSTEM: &str = "examples/udp.toml";
/// Where QEMU's firmware puts the configuration memory of PCI.
const MEMORY: u64 = 0xb000_0000;
/// The adapter's vendor and product, and where the state of its power is.
const ADAPTER: u32 = 0x10d3_8086;
const POWER: u64 = 0xcc;
const ASLEEP: u32 = 3;
/// The bit by which a function may access memory.
const BUS_MASTER: u32 = 4;

/// Leaves an adapter asleep and lets all functions access memory. Nothing of it is left, and the
/// system goes on although an old interrupt controller raises its lines.
pub fn check(workspace: &Workspace, _: &std::path::Path, built: &Built) -> Result<(), String> {
    let text = |failure: Failure| failure.to_string();
    let system = workspace.root().join(SYSTEM);
    let debugged = Debugged::prepare(workspace, &system, built.clone()).map_err(text)?;
    let said = debugged.ask(workspace, &commands(debugged.entries().map_err(text)?))?;
    let value = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" is "));
        let number = line.and_then(|number| number.parse::<u64>().ok());
        number.ok_or_else(|| format!("gdb did not say what {name} is, but:\n{said}"))
    };
    let found = |name: &str, is_right: fn(u64) -> bool| match value(name)? {
        right if is_right(right) => Ok(()),
        wrong => Err(format!("{name} is {wrong}; gdb said:\n{said}")),
    };
    found("sleep before", |state| state == u64::from(ASLEEP))?;
    found("sleep after", |state| state == 0)?;
    found("functions before", |count| count >= 3)?;
    found("functions after", |count| count == 0)?;
    found("adapter's address", |address| address != 0)?;
    let left = |number: usize, base: &str| {
        let mut words =
            said.lines().filter_map(|line| line.strip_prefix(&format!("pic{number}: ")));
        let is_so = |line: &str| line.contains("imr=ff") && line.contains(base);
        match words.any(is_so) {
            true => Ok(()),
            false => {
                Err(format!("old interrupt controller {number} is not as it should be:\n{said}"))
            }
        }
    };
    left(0, "irq_base=20")?;
    left(1, "irq_base=28")
}

/// Returns the commands for GDB. It says each value as `NAME is NUMBER`.
fn commands([kernel, program]: [u64; 2]) -> String {
    let stop = |place: u64| format!("hbreak *{place:#x}\ncontinue\n");
    let word = |offset: u64| format!("*(unsigned int *)({MEMORY:#x} + $place + {offset:#x})");
    let say = |name: &str, what: &str| format!("printf \"{name} is %lu\\n\", {what}\n");
    let identity = word(0);
    // Every function of the first bus: its place in the configuration memory, in `$place`.
    let each = |what: &str| {
        format!(
            "set $place = 0\nwhile $place < 0x100000\nif {identity} != 0xffffffff\n{what}end\n\
             set $place = $place + 0x1000\nend\n"
        )
    };
    let is_bridge = format!("({} >> 24) == 6", word(8));
    let masters = format!("({} & {BUS_MASTER}) != 0", word(4));
    let count = |name: &str| {
        let counted = format!("if !({is_bridge}) && {masters}\nset $n = $n + 1\nend\n");
        format!("set $n = 0\n{}{}", each(&counted), say(name, "$n"))
    };
    // The ports take bits 8 to 23 of what the memory has from bit 12 on.
    let write = |offset: u64, value: &str| {
        format!(
            "eval \"monitor o /w 0xcf8 %#x\", 0x80000000 + ($place >> 4) + {offset:#x}\n\
             eval \"monitor o /w 0xcfc %#x\", {value}\n"
        )
    };
    let find = each(&format!("if {identity} == {ADAPTER:#x}\nset $adapter = $place\nend\n"));
    let mut text = String::from("set language c\nset $adapter = 0\n");
    text += &stop(kernel);
    text += &each(&write(4, &format!("({} & 0xffff) | {BUS_MASTER}", word(4))));
    text += &count("functions before");
    text += &find;
    text += "set $place = $adapter\n";
    text += &write(POWER, &ASLEEP.to_string());
    text += &say("sleep before", &format!("{} & 3", word(POWER)));
    text += &stop(program);
    text += &count("functions after");
    text += "set $place = $adapter\n";
    text += &say("sleep after", &format!("{} & 3", word(POWER)));
    text += &say("adapter's address", &format!("{} & ~0xf", word(0x10)));
    text + "monitor info pic\n"
}
