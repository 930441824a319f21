//! The deepest stack that the kernel can need, from the frames and the calls of its linked code.
//!
//! The kernel has one stack of fixed size for each core. A guard page below it turns an overflow
//! into a fault, and a fault of the kernel is its end. So the depth is shown before anything runs:
//! the frame of a function is the sum of everything that it pushes or takes anywhere in its code,
//! and it is on the stack while any function runs whose address it names. Both are upper bounds.

use super::{binary, boot};
use diapason::image::Image;
use diapason::linkage::Linkage;
use std::path::Path;

/// The linker's symbols around the page below the stack, and at the end of the stack.
const GUARD: &str = "KERNEL_STACK_GUARD";
const TOP: &str = "KERNEL_STACK_TOP";
const GUARD_BYTES: u64 = 4_096;
/// Bytes that the assembly around an entry and around a fault in the copy of a program's memory
/// puts on the stack: three words of a call, and seven words with their alignment and one register
/// of the fault.
const ENTRY_BYTES: u64 = 24 + 80;
/// The share of the stack that may be used, in percent.
const USED_PERCENT: u64 = 75;

/// Checks every way into the kernel at `path`, and prints the deepest ones: of boot, and of what
/// stays.
pub fn check(path: &Path) -> Result<(), String> {
    let image = Image::read(path).map_err(|failure| failure.to_string())?;
    let linkage = Linkage::read(&image);
    let (Some(guard), Some(top), Some(boot)) =
        (linkage.symbol(GUARD), linkage.symbol(TOP), boot::range(&linkage))
    else {
        return Err("the kernel has no stack with a guard: is this the kernel?".into());
    };
    let stack = top.saturating_sub(guard + GUARD_BYTES);
    let most = stack * USED_PERCENT / 100;
    let code = Code::of(&linkage, &binary::disassemble(path)?)?;
    let leaves = |function: usize| boot.contains(&linkage.functions[function].at.start);
    for (part, in_boot) in [("boot", true), ("an entry", false)] {
        let deepest = code.deepest(|function| leaves(function) == in_boot)?;
        let bytes = deepest.bytes + ENTRY_BYTES;
        println!("{part} takes {bytes} of {stack} bytes of stack, {}", code.largest(&deepest));
        if deepest.way.is_empty() || bytes > most {
            return Err(format!("{part} may take {bytes} bytes, {most} are allowed"));
        }
    }
    Ok(())
}

/// The bytes of stack that an instruction takes.
#[derive(PartialEq, Eq, Debug)]
enum Taken {
    Bytes(u64),
    /// As much as a register says.
    Unknown,
}

fn taken(instruction: binary::Instruction<'_>) -> Option<Taken> {
    let binary::Instruction { name, operands } = instruction;
    if name.starts_with("push") {
        return Some(Taken::Bytes(8));
    }
    let to = operands.strip_suffix(",%rsp")?;
    let number = to.strip_prefix("$0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    match (name.get(..3)?, number) {
        // A subtraction of -128 gives back, in fewer bytes than an addition of 128.
        ("sub", Some(bytes)) if bytes > i64::MAX as u64 => None,
        ("sub", Some(bytes)) => Some(Taken::Bytes(bytes)),
        // Minus a power of two: the alignment may take all of it but one byte.
        ("and", Some(mask)) => Some(Taken::Bytes(mask.wrapping_neg())),
        ("add", Some(bytes)) if bytes > i64::MAX as u64 => Some(Taken::Bytes(bytes.wrapping_neg())),
        ("add", Some(_)) => None,
        ("lea" | "mov", _) if to.contains("(%rbp)") || to == "%rbp" => None,
        _ => Some(Taken::Unknown),
    }
}

/// Returns the address that an instruction calls, if it says it.
fn called(instruction: binary::Instruction<'_>) -> Option<u64> {
    let target = instruction.operands.split_whitespace().next()?;
    let calls = instruction.name.starts_with("call");
    calls.then(|| u64::from_str_radix(target, 16).ok()).flatten()
}

/// Returns whether an instruction calls the address in a register or on the stack. It is one that
/// the function names, if it names any.
fn calls_unknown(instruction: binary::Instruction<'_>) -> bool {
    let target = instruction.operands.strip_prefix('*');
    instruction.name.starts_with("call") && target.is_some_and(|at| !at.contains("(%rip)"))
}

/// The functions of an image by their index in its linkage.
struct Code<'a> {
    linkage: &'a Linkage,
    /// The bytes of stack of each, with its return address.
    frames: Vec<u64>,
    /// The functions that may run while it is on the stack.
    calls: Vec<Vec<usize>>,
}

/// A way through the calls, and its bytes of stack.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Way {
    bytes: u64,
    way: Vec<usize>,
}

impl<'a> Code<'a> {
    /// Reads the frames from the disassembly, and the calls from it and from the references that
    /// the linker resolved. A call within one section leaves no reference.
    fn of(linkage: &'a Linkage, disassembly: &str) -> Result<Code<'a>, String> {
        let count = linkage.functions.len();
        let mut code = Code { linkage, frames: vec![8; count], calls: vec![Vec::new(); count] };
        for reference in &linkage.references {
            let ends = (linkage.function_at(reference.from), linkage.function_at(reference.to));
            if let (Some(from), Some(to)) = ends
                && from != to
            {
                code.calls[from].push(to);
            }
        }
        let mut seen = false;
        for (address, instruction) in disassembly.lines().filter_map(binary::parse) {
            let address = u64::from_str_radix(address.trim(), 16);
            let function = address.ok().and_then(|address| linkage.function_at(address));
            let Some(function) = function else { continue };
            seen = true;
            code.add(function, instruction)?;
        }
        if seen { Ok(code) } else { Err("the disassembly shows no function".into()) }
    }

    /// Counts one more instruction of a function.
    fn add(&mut self, function: usize, instruction: binary::Instruction<'_>) -> Result<(), String> {
        match taken(instruction) {
            Some(Taken::Bytes(bytes)) => self.frames[function] += bytes,
            Some(Taken::Unknown) => return Err(self.unknown(function, instruction)),
            None => {}
        }
        if let Some(to) = called(instruction).and_then(|to| self.linkage.function_at(to)) {
            self.calls[function].push(to);
        } else if calls_unknown(instruction) && self.calls[function].is_empty() {
            return Err(self.unknown(function, instruction));
        }
        Ok(())
    }

    fn unknown(&self, function: usize, instruction: binary::Instruction<'_>) -> String {
        let name = &self.linkage.functions[function].name;
        let binary::Instruction { name: what, operands } = instruction;
        format!("{name}: `{what} {operands}` is not understood, so it has no depth")
    }

    /// Returns the names of the functions with the largest frames of a way.
    fn largest(&self, way: &Way) -> String {
        const SHOWN: usize = 4;
        let mut largest = way.way.clone();
        largest.sort_by_key(|function| std::cmp::Reverse(self.frames[*function]));
        largest.truncate(SHOWN);
        let shown =
            |at: &usize| format!("{} in {}", self.frames[*at], self.linkage.functions[*at].name);
        let shown: Vec<String> = largest.iter().map(shown).collect();
        format!("through {} functions: {}", way.way.len(), shown.join(", "))
    }

    /// Returns the deepest way that begins with a function that is `wanted`.
    fn deepest(&self, wanted: impl Fn(usize) -> bool) -> Result<Way, String> {
        let mut known = vec![None; self.frames.len()];
        let mut deepest = Way::default();
        for function in (0..self.frames.len()).filter(|function| wanted(*function)) {
            let way = self.below(function, &mut Vec::new(), &mut known)?;
            if way.bytes > deepest.bytes {
                deepest = way;
            }
        }
        Ok(deepest)
    }

    /// Returns the deepest way that begins with `function`, below those that are `open`.
    fn below(
        &self,
        function: usize,
        open: &mut Vec<usize>,
        known: &mut Vec<Option<Way>>,
    ) -> Result<Way, String> {
        if let Some(way) = &known[function] {
            return Ok(way.clone());
        }
        if let Some(at) = open.iter().position(|other| *other == function) {
            let names = open[at..].iter().map(|at| self.linkage.functions[*at].name.as_str());
            let names: Vec<&str> = names.collect();
            return Err(format!("{} may call itself: its depth has no end", names.join(" > ")));
        }
        open.push(function);
        let mut deepest = Way::default();
        for next in &self.calls[function] {
            let way = self.below(*next, open, known)?;
            if way.bytes > deepest.bytes {
                deepest = way;
            }
        }
        open.pop();
        deepest.bytes += self.frames[function];
        deepest.way.insert(0, function);
        known[function] = Some(deepest.clone());
        Ok(deepest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason::linkage::{Part, Reference};

    /// Three functions of 16 bytes each, and calls between them.
    fn linked(calls: &[(u64, u64)]) -> Linkage {
        let functions = ["a", "b", "c"].into_iter().zip(0..);
        let part = |(name, at): (&str, u64)| Part { name: name.into(), at: at * 16..at * 16 + 16 };
        let reference = |&(from, to): &(u64, u64)| Reference {
            from: from * 16 + 4,
            to: to * 16,
            symbol: String::new(),
        };
        Linkage {
            functions: functions.map(part).collect(),
            symbols: Vec::new(),
            references: calls.iter().map(reference).collect(),
        }
    }

    const CODE: &str = "  0:\tpush   %rbx\n  1:\tsub    $0x20,%rsp\n  4:\tcall   10 <b>\n  \
                        9:\tadd    $0x20,%rsp\n  10:\tpush   %rbp\n  \
                        12:\tmov    %rsp,%rbp\n  14:\tand    $0xfffffffffffffff0,%rsp\n  \
                        20:\tsub    $0x100,%rsp\n  24:\tmov    %rbp,%rsp\n";

    #[test]
    fn frames_of_a_way_add_up() {
        let linkage = linked(&[(0, 1), (0, 2), (1, 2)]);
        let code = Code::of(&linkage, CODE).unwrap();
        assert_eq!(code.frames, [8 + 8 + 0x20, 8 + 8 + 16, 8 + 0x100]);
        let deepest = code.deepest(|_| true).unwrap();
        assert_eq!(deepest, Way { bytes: 48 + 32 + 264, way: vec![0, 1, 2] });
    }

    #[test]
    fn a_circle_of_calls_has_no_depth() {
        let deepest = |calls: &[(u64, u64)], code: &str| {
            let linkage = linked(calls);
            Code::of(&linkage, code).unwrap().deepest(|_| true).map(|way| way.bytes)
        };
        let wrong = deepest(&[(0, 1), (1, 2), (2, 1)], CODE).unwrap_err();
        assert_eq!(wrong, "b > c may call itself: its depth has no end");
        assert_eq!(deepest(&[(0, 2)], "  4:\tjmp    8 <a+0x8>\n"), Ok(16));
        assert!(deepest(&[], "  24:\tcall   20 <c>\n").is_err());
    }

    #[test]
    fn code_that_is_not_understood_is_named() {
        let of = |code: &str| {
            let linkage = linked(&[(1, 2)]);
            Code::of(&linkage, &format!("  0:\t{code}\n")).map(|code| code.frames[0])
        };
        for code in ["sub    %rax,%rsp", "lea    (%rsp,%rax,1),%rsp", "call   *%rax"] {
            assert!(of(code).unwrap_err().contains("not understood"), "{code}");
        }
        assert_eq!(of("sub    $0xffffffffffffff80,%rsp"), Ok(8));
        assert_eq!(of("add    $0xffffffffffffff80,%rsp"), Ok(8 + 128));
    }
}
