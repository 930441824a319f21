//! Rules that can only be seen in the linked kernel.
//!
//! Kernel and programs share the ordinary target, whose red zone and floating-point registers the
//! kernel must not use. Interrupts are off in ring 0 and entries save the vector registers that the
//! compiler uses, so neither would break by itself; these lints keep it from depending on that.

use diapason::tools::OBJDUMP;
use std::path::Path;
use std::process::Command;

/// The vector registers that the kernel may use. `entry.s` keeps those of a thread that is
/// interrupted, and the long way back from a call clears them.
const OWN_VECTORS: [&str; 4] = ["xmm0", "xmm1", "xmm2", "xmm3"];
/// The line before the code that leaves memory before a thread runs.
const BOOT_SECTION: &str = "Disassembly of section .boot.text:";
/// Disassembles the kernel and looks at every instruction.
pub fn check(kernel: &Path) -> Result<(), String> {
    let problems = lint(&disassemble(kernel)?);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Returns the kernel's instructions, in the words of `objdump`.
pub(super) fn disassemble(kernel: &Path) -> Result<String, String> {
    let output = Command::new(OBJDUMP.program)
        .args(["-d", "--no-show-raw-insn"])
        .arg(kernel)
        .output()
        .map_err(|error| format!("cannot start objdump: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// One instruction of a disassembly.
#[derive(Clone, Copy)]
pub(super) struct Instruction<'a> {
    pub(super) name: &'a str,
    pub(super) operands: &'a str,
}

/// Returns the problems of a disassembly: per function and kind, the first place and how many more.
fn lint(disassembly: &str) -> Vec<String> {
    let mut problems: Vec<(&str, Kind, String, usize)> = Vec::new();
    let (mut function, mut seen) = ("", false);
    for line in disassembly.lines() {
        if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once('<')) {
            function = name.1;
        } else if let Some((address, instruction)) = parse(line) {
            seen = true;
            let Some((kind, text)) = judge(function, instruction) else { continue };
            match problems.iter_mut().find(|known| known.0 == function && known.1 == kind) {
                Some(known) => known.3 += 1,
                None => problems.push((function, kind, format!("{address}: {text}"), 0)),
            }
        }
    }
    if !seen {
        return vec!["the disassembly shows no instruction: is this the kernel?".into()];
    }
    let lines = problems.into_iter().map(|(function, _, text, more)| match more {
        0 => format!("{function} at {text}"),
        _ => format!("{function} at {text} (and {more} more)"),
    });
    lines
        .chain(uncleared(disassembly))
        .chain(foreign_vectors(disassembly))
        .chain(dear_instructions(disassembly))
        .collect()
}

/// The frequent ways, by the beginnings of their functions' names, with the dear instructions that
/// each may contain. The list may only get shorter.
const FREQUENT: [(&str, &[&str]); 5] = [
    ("syscall_entry", &[]),
    ("after_call", &[]),
    ("quick_", &[]),
    // A thread that changes takes the time, its address space, and maybe the timer.
    ("short_", &["rdtsc", "cr3", "wrmsr"]),
    // Another process begins with a clean x87 unit. Only a thread that was interrupted has an
    // image, and only one that used selectors has them cleared.
    ("continue_thread", &["fninit", "fxrstor64", "selector"]),
];

/// Dear instructions of the frequent ways that these may not contain: each takes tens of cycles
/// and counts as one.
fn dear_instructions(disassembly: &str) -> Vec<String> {
    let (mut found, mut allowed, mut function) = (Vec::new(), None, "");
    for line in disassembly.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|l| l.split_once('<')) {
            let handler = name.rsplit_once("calls").map_or(name, |(_, rest)| rest);
            let handler = handler.trim_start_matches(|c: char| c.is_ascii_digit());
            function = name;
            allowed = FREQUENT.iter().find(|(begin, _)| handler.starts_with(begin));
        } else if let (Some((_, allowed)), Some((address, _))) = (allowed, parse(line))
            && let Some(dear) = dear(line)
            && !allowed.contains(&dear)
        {
            found.push(format!("{function} at {address}: `{dear}` is dear, and this is frequent"));
        }
    }
    found
}

/// Returns the name of the dear instruction in a line of a disassembly, if it is one.
fn dear(line: &str) -> Option<&str> {
    const DEAR: [&str; 10] = [
        "fxsave", "fxrstor", "xsave", "xrstor", "fninit", "fnclex", "rdtsc", "rdmsr", "wrmsr",
        "invlpg",
    ];
    let (_, Instruction { name, operands }) = parse(line)?;
    let to = operands.rsplit(',').next().unwrap_or_default();
    if DEAR.iter().any(|start| name.starts_with(start)) {
        return Some(name);
    }
    if line.contains("\trep") {
        return Some("rep");
    }
    match to {
        "%cr3" => Some("cr3"),
        "%ds" | "%es" | "%fs" | "%gs" if name.starts_with("mov") => Some("selector"),
        _ => None,
    }
}

/// Functions that use vector registers which nobody keeps for the interrupted thread. Assembly is
/// exempt, because that is where threads' registers are kept and cleared.
fn foreign_vectors(disassembly: &str) -> Vec<String> {
    let (mut found, mut function, mut stays) = (Vec::new(), "", false);
    for line in disassembly.lines() {
        if line.starts_with("Disassembly of section") {
            stays = line != BOOT_SECTION;
        } else if let Some((_, name)) = line.strip_suffix(">:").and_then(|l| l.split_once('<')) {
            function = name;
        } else if let Some((address, instruction)) = parse(line)
            && stays
            && is_compiled(function)
            && let Some(register) = foreign_vector(instruction)
        {
            found.push(format!("{function} at {address}: nobody keeps {register} for it"));
        }
    }
    found
}

/// Returns whether this is a function of Rust code.
fn is_compiled(function: &str) -> bool {
    function.starts_with("_R") || function.starts_with("on_") || function == "any_call"
}

/// Returns the first vector or x87 register of an instruction that is not [`OWN_VECTORS`].
fn foreign_vector<'a>(instruction: Instruction<'a>) -> Option<&'a str> {
    let parts = instruction.operands.split(|c: char| !c.is_ascii_alphanumeric());
    let vector = |part: &&str| ["xmm", "ymm", "zmm", "mm", "st"].contains(&letters(part));
    parts.filter(vector).find(|part| !OWN_VECTORS.contains(part))
}

/// Returns the part of a register's name before its number.
fn letters(register: &str) -> &str {
    register.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Registers that a quick handler clears itself if it writes to them: the way out does not.
const OWN_TO_CLEAR: [&str; 2] = ["r9", "r10"];

/// Quick handlers that leave something in such a register.
fn uncleared(disassembly: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in disassembly.split("\n\n") {
        let mut lines = part.lines().skip_while(|line| !line.ends_with(">:"));
        let Some((_, function)) = lines.next().and_then(|line| line.split_once('<')) else {
            continue;
        };
        let function = function.trim_end_matches(">:");
        if !is_short_path(function) {
            continue;
        }
        let instructions: Vec<Instruction<'_>> = lines.filter_map(parse).map(|(_, i)| i).collect();
        for register in OWN_TO_CLEAR {
            let clears = format!("%{register}d,%{register}d");
            let cleared = |i: &Instruction<'_>| i.name == "xor" && i.operands == clears;
            if instructions.iter().any(|i| writes(*i, register))
                && !instructions.iter().any(cleared)
            {
                found.push(format!("{function} leaves something in {register}: let it clear that"));
            }
        }
    }
    found
}

/// Returns whether this register, or a part of it, is the instruction's destination.
fn writes(instruction: Instruction<'_>, register: &str) -> bool {
    let reads = ["cmp", "test", "push", "bt"].iter().any(|name| instruction.name.starts_with(name));
    let last = instruction.operands.rsplit([',', ' ']).next().and_then(|op| op.strip_prefix('%'));
    let part = last.and_then(|last| last.strip_prefix(register));
    !reads && part.is_some_and(|part| ["", "d", "w", "b"].contains(&part))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    RedZone,
    FloatingPoint,
    Vector,
}

/// Calls completed on the short path return with the caller's vector registers as they are.
fn is_short_path(function: &str) -> bool {
    function == "syscall_entry" || function.contains("calls") && function.contains("quick_")
}

/// `  200010:\tmov    %rax,-0x8(%rsp)` in its parts.
pub(super) fn parse(line: &str) -> Option<(&str, Instruction<'_>)> {
    let (address, text) = line.trim_start().split_once(":\t")?;
    let mut text = text.trim();
    while let Some(rest) = ["lock ", "rep ", "repz ", "bnd ", "notrack "]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
    {
        text = rest.trim_start();
    }
    let (name, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Some((address, Instruction { name, operands: operands.trim() }))
}

fn judge(function: &str, instruction: Instruction<'_>) -> Option<(Kind, String)> {
    let Instruction { name, operands } = instruction;
    if uses_red_zone(instruction) {
        let text = format!("`{name} {operands}` uses the red zone below the stack pointer");
        return Some((Kind::RedZone, text));
    }
    if is_floating_point(instruction) {
        let text = format!("`{name}` is floating-point arithmetic: use integers");
        return Some((Kind::FloatingPoint, text));
    }
    if is_short_path(function) && operands.contains("%xmm") {
        let text =
            format!("`{name} {operands}` on the short path, which clears no vector register");
        return Some((Kind::Vector, text));
    }
    None
}

/// Any access below the stack pointer; computing an address there is none.
fn uses_red_zone(instruction: Instruction<'_>) -> bool {
    let stack = instruction.operands.match_indices("(%rsp");
    !instruction.name.starts_with("lea")
        && stack.into_iter().any(|(at, _)| {
            let before = &instruction.operands[..at];
            let start = before.rfind([',', ' ', '*', ':']).map_or(0, |comma| comma + 1);
            before[start..].starts_with("-0x")
        })
}

/// Arithmetic or conversion in floating point, of SSE, AVX or x87. Moves are none.
fn is_floating_point(instruction: Instruction<'_>) -> bool {
    const ARITHMETIC: [&str; 13] = [
        "add", "sub", "mul", "div", "sqrt", "min", "max", "rcp", "rsqrt", "hadd", "hsub", "round",
        "cmp",
    ];
    const X87: [&str; 12] = [
        "fld", "fst", "fild", "fist", "fadd", "fsub", "fmul", "fdiv", "fcom", "fucom", "fsqrt",
        "fabs",
    ];
    /// Control words are state, not arithmetic.
    const X87_STATE: [&str; 3] = ["fldcw", "fstcw", "fldenv"];
    let name = instruction.name.strip_prefix('v').unwrap_or(instruction.name);
    let vector = ["%xmm", "%ymm", "%zmm"].iter().any(|file| instruction.operands.contains(file));
    let stem = ["ss", "sd", "ps", "pd"].iter().find_map(|kind| name.strip_suffix(kind));
    let arithmetic = stem.is_some_and(|stem| {
        ARITHMETIC.contains(&stem) || stem.contains("comi") || stem.starts_with("fm")
    });
    let x87 = X87.iter().any(|start| name.starts_with(start)) && !X87_STATE.contains(&name);
    vector && (arithmetic || name.starts_with("cvt")) || x87
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lint_one(instruction: &str) -> usize {
        lint(&format!("0000000000200000 <f>:\n  200010:\t{instruction}\n")).len()
    }

    #[test]
    fn the_red_zone_is_off_limits() {
        assert_eq!(lint_one("mov    %rax,-0x8(%rsp)"), 1);
        assert_eq!(lint_one("lock incl -0x80(%rsp,%rax,1)"), 1);
        assert_eq!(lint_one("mov    0x8(%rsp),%rax"), 0);
        assert_eq!(lint_one("lea    -0x8(%rsp),%rax"), 0);
        assert_eq!(lint_one("mov    -0x8(%rbp),%rax"), 0);
        assert_eq!(lint_one("mov    -0x8(%rbp),%rsp"), 0);
    }

    #[test]
    fn floating_point_arithmetic_is_found_and_moves_are_not() {
        for bad in [
            "addsd  %xmm1,%xmm0",
            "vmulps (%rax),%ymm1,%ymm2",
            "cvtsi2sd %rax,%xmm0",
            "ucomisd %xmm1,%xmm0",
            "cmpsd  $0x1,%xmm1,%xmm0",
            "fldl   0x8(%rsp)",
            "vfmadd213ss %xmm0,%xmm1,%xmm2",
        ] {
            assert_eq!(lint_one(bad), 1, "{bad}");
        }
        for good in [
            "movaps %xmm0,0x10(%rsp)",
            "xorps  %xmm0,%xmm0",
            "paddq  %xmm1,%xmm0",
            "cmpsl  %es:(%rdi),%ds:(%rsi)",
            "fxsave64 (%rdi)",
            "fldcw  (%rdi)",
            "fninit",
            "sub    $0x20,%rsp",
        ] {
            assert_eq!(lint_one(good), 0, "{good}");
        }
    }

    #[test]
    fn vector_registers_are_off_limits_on_the_short_path_only() {
        let lint_in = |function: &str| {
            lint(&format!("0000000000200000 <{function}>:\n  200010:\txorps  %xmm0,%xmm0\n")).len()
        };
        assert_eq!(lint_in("_ZN15diapason_kernel5calls10quick_lock17h0E"), 1);
        assert_eq!(lint_in("syscall_entry"), 1);
        assert_eq!(lint_in("_ZN15diapason_kernel5calls9slow_lock17h0E"), 0);
    }

    #[test]
    fn what_a_quick_handler_leaves_is_found() {
        let lint_of = |function: &str, code: &[&str]| {
            let code: String = code.iter().map(|code| format!("  200010:\t{code}\n")).collect();
            uncleared(&format!("0000000000200000 <{function}>:\n{code}\n")).len()
        };
        let quick = "_RN15diapason_kernel5calls9quick_try";
        assert_eq!(lint_of(quick, &["mov    (%rax),%r9d", "ret"]), 1);
        assert_eq!(lint_of(quick, &["lea    (%rsi,%rsi,2),%r10", "mov %rdx,%r9", "ret"]), 2);
        assert_eq!(lint_of(quick, &["mov    (%rax),%r9d", "xor    %r9d,%r9d", "ret"]), 0);
        assert_eq!(lint_of(quick, &["cmp    %rax,%r9", "mov    %r9,(%rax,%r10,8)", "ret"]), 0);
        assert_eq!(lint_of("_RN15diapason_kernel5calls8any_call", &["mov (%rax),%r9d"]), 0);
    }

    #[test]
    fn vector_registers_that_nobody_keeps_are_found() {
        let lint_in = |section: &str, function: &str, code: &str| {
            foreign_vectors(&format!(
                "Disassembly of section {section}:\n\n0000000000200000 <{function}>:\n  \
                 200010:\t{code}\n"
            ))
            .len()
        };
        let store = "movups %xmm4,0x10(%rsi)";
        assert_eq!(lint_in(".text", "_RNvCs_6kernel5enter", store), 1);
        assert_eq!(lint_in(".text", "on_trap", "movups (%rsi),%xmm15"), 1);
        assert_eq!(lint_in(".text", "on_trap", "movq   %mm0,(%rsi)"), 1);
        assert_eq!(lint_in(".text", "on_trap", "movups (%rsi),%xmm3"), 0);
        assert_eq!(lint_in(".text", "continue_thread", "xorps  %xmm4,%xmm4"), 0);
        assert_eq!(lint_in(".boot.text", "_RNvCs_6kernel4boot", store), 0);
    }

    #[test]
    fn dear_instructions_are_found_in_frequent_ways() {
        let lint_in = |function: &str, code: &str| {
            dear_instructions(&format!("0000000000200000 <{function}>:\n  200010:\t{code}\n")).len()
        };
        let quick = "_RNvNtCs_15diapason_kernel5calls10quick_lock";
        let short = "_RNvNtCs_15diapason_kernel5calls11short_yield";
        for code in ["rdtsc", "rep movsq %ds:(%rsi),%es:(%rdi)", "mov    %rax,%cr3"] {
            assert_eq!(lint_in(quick, code), 1, "{code}");
        }
        assert_eq!(lint_in(short, "rdtsc"), 0);
        assert_eq!(lint_in(short, "fxrstor64 -0x2b0(%rdx)"), 1);
        assert_eq!(lint_in("after_call", "mov    %ecx,%gs"), 1);
        assert_eq!(lint_in("after_call", "mov    %gs:0x8,%rsp"), 0);
        assert_eq!(lint_in("continue_thread", "mov    %ecx,%gs"), 0);
        assert_eq!(lint_in("any_call", "rdtsc"), 0);
    }

    #[test]
    fn a_function_is_named_once_for_each_kind() {
        let push = "  200010:\tmov    %rax,-0x8(%rsp)\n";
        let text =
            format!("0000000000200000 <f>:\n{push}{push}{push}0000000000200020 <g>:\n{push}");
        let said = lint(&text);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("f at 200010: ") && said[0].ends_with("(and 2 more)"));
    }

    #[test]
    fn an_empty_disassembly_does_not_pass() {
        assert_eq!(lint("").len(), 1);
    }
}
