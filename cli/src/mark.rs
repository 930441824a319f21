//! Marks in programs: the stub that does nothing at the end of a work makes a call that the flight
//! record keeps.
//!
//! The stub stands in every program, in Rust and in C, so no program is compiled anew for it. The
//! call is `Null`, which does nothing. Its words are the name of the work and the time.

use diapason_abi::CallNumber;
use diapason_abi::recorder::{Entry, EntryKind};

/// The beginning of a program's header, as `user/rt` has it.
const MAGIC: &[u8] = b"DIAPROG1";
/// The words of the header that say where the stubs are that matter here.
const NOW: usize = 2;
const WORK: usize = 3;
/// Room that a stub has.
const STUB: usize = 16;

/// Makes the works of a program visible in the flight record; `None` if the file has no such stub.
pub fn mark(program: &mut [u8]) -> Option<()> {
    let header = program.windows(MAGIC.len()).position(|window| window == MAGIC)?;
    let word = |number: usize| {
        let at = header + MAGIC.len() + 4 * number;
        let bytes = program.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (now, work) = (word(NOW)?, word(WORK)?);
    let at = header.checked_add(usize::try_from(work).ok()?)?;
    let stub = program.get_mut(at..at.checked_add(STUB)?)?;
    if !is_empty(stub) {
        return None;
    }
    // The distance counts from the end of the call, which has five bytes.
    let distance = now.wrapping_sub(work.wrapping_add(5)).to_le_bytes();
    let mut code = [0; 13];
    code[0] = 0xe8; // call __dia_now: the time into rax, and rdi stays
    code[1..5].copy_from_slice(&distance);
    code[5..8].copy_from_slice(&[0x48, 0x89, 0xc6]); // mov rsi, rax
    code[8..10].copy_from_slice(&[0x31, 0xc0]); // xor eax, eax
    code[10..12].copy_from_slice(&[0x0f, 0x05]); // syscall
    code[12] = 0xc3; // ret
    stub[..code.len()].copy_from_slice(&code);
    Some(())
}

/// Returns whether a stub is one that only returns, with room behind it.
fn is_empty(stub: &[u8]) -> bool {
    stub.first() == Some(&0xc3) && stub[1..].iter().all(|byte| *byte == 0xcc)
}

/// Returns the work whose end an entry marks, and when that was.
pub fn marked(entry: &Entry) -> Option<(u64, u64)> {
    let is_mark = entry.kind == EntryKind::Quick
        && entry.detail == CallNumber::Null as u16
        && entry.arguments[0] != 0;
    is_mark.then_some((entry.arguments[0], entry.arguments[1]))
}

const _: () = assert!(CallNumber::Null as u64 == 0, "`xor` makes its number");

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a header at 64, `__dia_now` at 100 behind it, and `__dia_work` at 160.
    fn program() -> Vec<u8> {
        let mut bytes = vec![0; 64 + 160];
        bytes[64..72].copy_from_slice(MAGIC);
        bytes[72 + 4 * NOW] = 100;
        bytes[72 + 4 * WORK] = 160;
        bytes.push(0xc3);
        bytes.extend([0xcc; 15]);
        bytes
    }

    #[test]
    fn the_stub_calls_the_clock_and_the_kernel() {
        let mut bytes = program();
        assert_eq!(mark(&mut bytes), Some(()));
        let distance = (100i32 - 165).to_le_bytes();
        let stub = &bytes[64 + 160..];
        assert_eq!((stub[0], &stub[1..5]), (0xe8, &distance[..]));
        assert_eq!(stub[5..13], [0x48, 0x89, 0xc6, 0x31, 0xc0, 0x0f, 0x05, 0xc3]);
        assert_eq!(mark(&mut bytes), None, "it is marked already");
    }

    #[test]
    fn a_file_that_is_no_program_stays_as_it_is() {
        let whole = program();
        for length in [0, 7, 70, 90, 64 + 170] {
            let mut cut = whole[..length].to_vec();
            assert_eq!(mark(&mut cut), None, "{length}");
            assert_eq!(cut, whole[..length]);
        }
        let mut far = whole.clone();
        far[72 + 4 * WORK + 3] = 0xff;
        assert_eq!(mark(&mut far), None);
    }

    #[test]
    fn only_a_call_with_a_name_is_a_mark() {
        let entry = |number, words| Entry::quick(number, words, 0);
        assert_eq!(marked(&entry(0, [7, 99, 1, 2, 3])), Some((7, 99)));
        assert_eq!(marked(&entry(0, [0, 99, 0, 0, 0])), None);
        assert_eq!(marked(&entry(CallNumber::Log as u64, [7, 99, 0, 0, 0])), None);
    }
}
