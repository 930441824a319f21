//! The kernel is not reached by what a loader or a program leaves in the processor.
//!
//! Most of it cannot be tried from a program: no loader of ours leaves a bit of CR4 on, nothing
//! runs 32-bit code, and no program can raise a non-maskable interrupt. The debugger can do the
//! first and the last, and lets the kernel read its own registers.

use super::{Debugged, Failure, Path, Workspace};
use diapason::metal::Built;

/// All bits of CR4 that the kernel may set: PAE, MCE, PGE, OSFXSR, OSXMMEXCPT, UMIP, SMEP, SMAP.
const CR4_OURS: u64 = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 20 | 1 << 21;
/// Bits of which each would give programs something that nobody saves or counts: PCE, FSGSBASE,
/// OSXSAVE.
const CR4_LEFT: u64 = 1 << 8 | 1 << 16 | 1 << 18;
/// CSTAR and the three registers of SYSENTER.
const NOWHERE: [u32; 4] = [0xc000_0083, 0x174, 0x175, 0x176];
/// The register of the entry of system calls, which is somewhere: it shows that the reading works.
const LSTAR: u32 = 0xc000_0082;
/// The flag that lets string instructions go downward.
const DIRECTION: u64 = 1 << 10;
/// The instruction `rdmsr`, as the number that its two bytes are.
const RDMSR: u32 = 0x320f;

/// Leaves bits of CR4 on before the kernel's first instruction, turns the direction of strings in
/// a program and raises a non-maskable interrupt, and looks at the registers in the kernel.
pub fn check(workspace: &Workspace, system: &Path, built: &Built) -> Result<(), String> {
    let text = |failure: Failure| failure.to_string();
    let debugged = Debugged::prepare(workspace, system, built.clone()).map_err(text)?;
    let said = debugged.ask(workspace, &commands(debugged.entries().map_err(text)?))?;
    let value = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" is 0x"));
        let number = line.and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let console = debugged.folder.path().join(super::CONSOLE);
        let console = std::fs::read_to_string(console).unwrap_or_default();
        number.ok_or_else(|| {
            format!("gdb did not say what {name} is, but:\n{said}and the console:\n{console}")
        })
    };
    let found = |name: &str, as_it_must: bool| match (value(name)?, as_it_must) {
        (_, true) => Ok(()),
        (wrong, false) => Err(format!("{name} is {wrong:#x}")),
    };
    found("the loader's CR4", value("the loader's CR4")? & CR4_LEFT == CR4_LEFT)?;
    found("CR4", value("CR4")? & !CR4_OURS == 0)?;
    found("a program's direction", value("a program's direction")? == DIRECTION)?;
    found("the kernel's direction", value("the kernel's direction")? == 0)?;
    found(&register(LSTAR), value(&register(LSTAR))? != 0)?;
    NOWHERE.iter().try_for_each(|number| found(&register(*number), value(&register(*number))? == 0))
}

/// The name of a model-specific register in what is said.
fn register(number: u32) -> String {
    format!("register {number:#x}")
}

/// Returns the commands for GDB. It says each value as `NAME is 0xHEX`.
fn commands([kernel, program]: [u64; 2]) -> String {
    let say = |name: &str, what: &str| {
        format!("printf \"{name} is \"\noutput/x {what}\nprintf \"\\n\"\n")
    };
    let stop = |place: &str| format!("hbreak *{place}\ncontinue\n");
    let mut text = String::from("set language c\n");
    text += &stop(&format!("{kernel:#x}"));
    text += &format!("set $cr4 = {CR4_LEFT:#x}ul\n{}", say("the loader's CR4", "$cr4"));
    text += &stop(&format!("{program:#x}"));
    text += &say("CR4", "$cr4");
    text += &format!("set $eflags = $eflags | {DIRECTION:#x}\n");
    text += &say("a program's direction", &format!("$eflags & {DIRECTION:#x}"));
    text += &format!("monitor nmi\n{}", stop("(unsigned long) on_kernel_fault"));
    text += &say("the kernel's direction", &format!("$eflags & {DIRECTION:#x}"));
    // The kernel ends here: its next instruction may be another one.
    text += &format!("set $place = $pc\nset *(unsigned short *) $place = {RDMSR:#x}\n");
    for number in [LSTAR].into_iter().chain(NOWHERE) {
        text += &format!("set $pc = $place\nset $rcx = {number:#x}\nstepi\n");
        text += &say(&register(number), "($rdx << 32) | ($rax & 0xffffffff)");
    }
    text
}
