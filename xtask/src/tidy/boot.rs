//! Checks that the code and data which only boot uses leave memory before the first thread runs.
//!
//! `kernel/x86_64/kernel.ld` divides it by the names of modules, which nobody could keep right by
//! hand: the compiler decides what is inlined where. Two rules, over every reference the linker
//! resolved:
//!
//! - nothing that stays refers to what leaves;
//! - nothing stays that only boot reaches, but for the one function that lets boot leave.

use diapason::image::Image;
use diapason::linkage::Linkage;
use std::ops::Range;
use std::path::Path;

/// Linker symbols around what leaves; code that stays needs them to let it leave.
const START: &str = "__boot_start";
const END: &str = "__boot_end";
/// The end of what stays only on a machine with a screen, and begins where boot ends.
const SCREEN_END: &str = "__screen_end";
/// In the names of the functions that look whether there is a screen before they call its code.
const LOOKING: [&str; 2] = ["7console8announce", "5fatal4halt"];
/// The end of the code that stays, which begins where boot ends or later.
const TEXT: (&str, &str) = ("__text_start", "__text_end");
/// In the name of the function that boot goes on with.
const HANDOVER: &str = "8handover";

/// Looks at the kernel at `path`.
pub fn check(path: &Path) -> Result<(), String> {
    let image = Image::read(path).map_err(|failure| failure.to_string())?;
    let problems = problems(&Linkage::read(&image));
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Returns the addresses that only boot uses.
pub(super) fn range(linkage: &Linkage) -> Option<Range<u64>> {
    between(linkage, (START, END))
}

fn between(linkage: &Linkage, (start, end): (&str, &str)) -> Option<Range<u64>> {
    let range = linkage.symbol(start)?..linkage.symbol(end)?;
    (!range.is_empty()).then_some(range)
}

fn problems(linkage: &Linkage) -> Vec<String> {
    let (Some(boot), Some(text)) = (range(linkage), between(linkage, TEXT)) else {
        return vec!["the kernel has no part for boot: is this the kernel?".into()];
    };
    if !linkage.references.iter().any(|reference| text.contains(&reference.from)) {
        return vec!["the kernel was linked without --emit-relocs: nothing can be seen".into()];
    }
    let mut problems = into_boot(linkage, &boot);
    problems.extend(into_screen(linkage, &boot));
    problems.extend(left_behind(linkage, &boot, &text));
    problems
}

/// References from what stays to what leaves.
fn into_boot(linkage: &Linkage, boot: &Range<u64>) -> Vec<String> {
    let name = |address| match linkage.function_at(address) {
        Some(function) => linkage.functions[function].name.as_str(),
        None => "something without a name",
    };
    let bad = linkage.references.iter().filter(|reference| {
        !boot.contains(&reference.from)
            && boot.contains(&reference.to)
            && ![START, END].contains(&reference.symbol.as_str())
    });
    let text = |reference: &diapason::linkage::Reference| {
        let (from, to) = (reference.from, reference.to);
        format!(
            "{} at {from:#x} refers to {} at {to:#x}, which leaves memory with boot: take it \
             from the boot sections of kernel.ld, or the reference away",
            name(from),
            name(to)
        )
    };
    bad.map(text).collect()
}

/// References to the screen's code or constants from what stays on every machine, but for those of
/// functions that look first.
fn into_screen(linkage: &Linkage, boot: &Range<u64>) -> Vec<String> {
    let Some(screen) = between(linkage, (END, SCREEN_END)) else { return Vec::new() };
    let name = |address| {
        linkage.function_at(address).map_or("", |part| linkage.functions[part].name.as_str())
    };
    let looks = |address| LOOKING.iter().any(|known| name(address).contains(known));
    let bad = linkage.references.iter().filter(|reference| {
        let stays = !boot.contains(&reference.from) && !screen.contains(&reference.from);
        let named = [END, SCREEN_END].contains(&reference.symbol.as_str());
        stays && screen.contains(&reference.to) && !named && !looks(reference.from)
    });
    let text = |reference: &diapason::linkage::Reference| {
        let (from, to) = (name(reference.from), name(reference.to));
        format!(
            "{from} at {:#x} refers to {to}, which leaves memory on a machine without a screen: \
             let one of the functions that look call it",
            reference.from
        )
    };
    bad.map(text).collect()
}

/// Functions that stay although only boot reaches them.
fn left_behind(linkage: &Linkage, boot: &Range<u64>, text: &Range<u64>) -> Vec<String> {
    let functions = &linkage.functions;
    let mut reached: Vec<bool> =
        functions.iter().map(|function| function.name.contains(HANDOVER)).collect();
    let mut edges = vec![Vec::new(); functions.len()];
    for reference in linkage.references.iter().filter(|r| !boot.contains(&r.from)) {
        let Some(to) = linkage.function_at(reference.to) else { continue };
        match linkage.function_at(reference.from) {
            Some(from) => edges[from].push(to),
            // Assembly is where the kernel is entered. A constant that holds the place of a whole
            // function may be called; one inside a function is a jump of that function's own.
            None if text.contains(&reference.from) => reached[to] = true,
            None => reached[to] |= functions[to].at.start == reference.to,
        }
    }
    let mut open: Vec<usize> = (0..functions.len()).filter(|index| reached[*index]).collect();
    while let Some(from) = open.pop() {
        for &to in &edges[from] {
            if !std::mem::replace(&mut reached[to], true) {
                open.push(to);
            }
        }
    }
    let stays = functions
        .iter()
        .zip(&reached)
        .filter(|(function, reached)| !**reached && text.contains(&function.at.start));
    let line = |(function, _): (&diapason::linkage::Part, &bool)| {
        let bytes = function.at.end - function.at.start;
        format!(
            "{} ({bytes} bytes) is only reached by boot: name it in the boot sections of kernel.ld",
            function.name
        )
    };
    stays.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason::linkage::{Part, Reference};

    /// Boot at 0x1000, what stays at 0x2000 with assembly up to 0x2100, constants at 0x3000.
    fn kernel(references: &[(u64, u64, &str)]) -> Linkage {
        let part = |name: &str, start| Part { name: name.into(), at: start..start + 0x100 };
        let symbols = [(START, 0x1000), (END, 0x2000), (TEXT.0, 0x2000), (TEXT.1, 0x3000)];
        let mut linkage = Linkage {
            functions: vec![
                part("main", 0x1000),
                part("6kernel8handover5begin", 0x2100),
                part("on_trap", 0x2200),
                part("helper", 0x2300),
            ],
            symbols: symbols.map(|(name, at)| (name.into(), at)).into(),
            references: Vec::new(),
        };
        // Boot hands over; the assembly enters; the hand-over lets boot leave.
        let usual = [(0x1010, 0x2100, "begin"), (0x2010, 0x2200, ""), (0x2110, 0x1000, START)];
        linkage.references = usual
            .iter()
            .chain(references)
            .map(|&(from, to, symbol)| Reference { from, to, symbol: symbol.into() })
            .collect();
        linkage
    }

    #[test]
    fn what_stays_must_be_reached_by_what_stays() {
        assert_eq!(problems(&kernel(&[(0x2210, 0x2300, "")])), Vec::<String>::new());
        assert_eq!(problems(&kernel(&[(0x2110, 0x2300, "")])), Vec::<String>::new());
        for by_nobody_or_boot in [&[][..], &[(0x1020, 0x2300, "helper")], &[(0x2310, 0x2300, "")]] {
            let said = problems(&kernel(by_nobody_or_boot));
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with("helper (256 bytes) is only reached by boot"));
        }
    }

    #[test]
    fn a_constant_may_hold_a_function_but_a_jump_table_does_not_keep_one() {
        assert_eq!(problems(&kernel(&[(0x3000, 0x2300, "")])), Vec::<String>::new());
        assert_eq!(problems(&kernel(&[(0x3000, 0x2304, "")])).len(), 1);
    }

    #[test]
    fn nothing_that_stays_refers_to_boot() {
        for from in [0x2010, 0x2220, 0x3000] {
            let said = problems(&kernel(&[(0x2210, 0x2300, ""), (from, 0x1040, "main")]));
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains("refers to main at 0x1040"), "{said:?}");
        }
    }

    #[test]
    fn only_functions_that_look_refer_to_the_screen() {
        let with_screen = |references: &[(u64, u64, &str)]| {
            let mut linkage = kernel(references);
            // The screen's code ends boot's room, and two functions that stay call it.
            linkage.symbols.retain(|(name, _)| name != END);
            linkage.symbols.push((END.into(), 0x1800));
            linkage.symbols.push((SCREEN_END.into(), 0x2000));
            linkage.functions.push(Part { name: "6screen4note".into(), at: 0x1900..0x1a00 });
            linkage
                .functions
                .push(Part { name: "6kernel7console8announce".into(), at: 0x2400..0x2500 });
            linkage.functions.sort_by_key(|part| part.at.start);
            problems(&linkage)
        };
        let reached = (0x2210, 0x2300, "");
        let looking = [reached, (0x2210, 0x2400, ""), (0x2410, 0x1900, "note")];
        assert_eq!(with_screen(&looking), Vec::<String>::new());
        let said = with_screen(&[&looking[..], &[(0x2310, 0x1900, "note")]].concat());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("helper at 0x2310 refers to 6screen4note"), "{said:?}");
        // A constant that stays does not look.
        assert_eq!(with_screen(&[&looking[..], &[(0x3010, 0x1900, "")]].concat()).len(), 1);
        // Boot may call it.
        let boot = with_screen(&[&looking[..], &[(0x1020, 0x1900, "note")]].concat());
        assert_eq!(boot, Vec::<String>::new());
    }

    #[test]
    fn a_file_that_shows_nothing_does_not_pass() {
        assert_eq!(problems(&Linkage::default()).len(), 1);
        let mut blind = kernel(&[(0x2210, 0x2300, "")]);
        blind.references.clear();
        assert_eq!(problems(&blind).len(), 1);
    }
}
