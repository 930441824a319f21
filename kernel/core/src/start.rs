//! The registers that a thread begins with: the same on every machine.

use diapason_abi::layout;

/// First instruction, stack and argument registers of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadStart {
    /// Its first instruction. It lies in the process's window, though not always in its code.
    pub entry: u64,
    /// The thread's stack pointer: as after a call, so the return address would lie below.
    pub stack: u64,
    /// The first five argument registers, in the order of a function's.
    pub arguments: [u64; 5],
}

impl ThreadStart {
    /// Returns the start of the thread in `slot` of the process whose window begins at `window`.
    /// The first thread of a process begins its program, `program` with the words of the
    /// description; a thread that a program makes begins at the entry that the program names.
    #[must_use]
    #[inline(always)]
    pub fn of(
        window: u64,
        slot: u16,
        program: (u64, [u64; 4]),
        own: Option<(u64, u64)>,
    ) -> ThreadStart {
        let info = window + layout::INFO;
        let (entry, arguments) = match own {
            None => {
                let (entry, [a, b, c, d]) = program;
                (entry, [info, a, b, c, d])
            }
            Some((entry, argument)) => {
                // An address outside the window may not even be loadable; the window's end is never
                // code.
                let inside = entry.wrapping_sub(window) < layout::WINDOW;
                let entry = if inside { entry } else { window + layout::WINDOW - 1 };
                (entry, [argument, info, 0, 0, 0])
            }
        };
        ThreadStart { entry, stack: window + layout::stack_offset(slot) - 8, arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = layout::base(3);
    const PROGRAM: (u64, [u64; 4]) = (WINDOW + 0x40, [1, 2, 3, 4]);

    #[test]
    fn a_program_begins_with_the_words_of_its_description() {
        let info = WINDOW + layout::INFO;
        let stack = layout::stack_top(3, 0) - 8;
        let expected = ThreadStart { entry: PROGRAM.0, stack, arguments: [info, 1, 2, 3, 4] };
        assert_eq!(ThreadStart::of(WINDOW, 0, PROGRAM, None), expected);
    }

    #[test]
    fn a_thread_begins_in_the_window_of_its_process_whatever_was_named() {
        let inside = [WINDOW, WINDOW + 7, WINDOW + layout::WINDOW - 1];
        let outside = [0, WINDOW - 1, WINDOW + layout::WINDOW, 0x8000_0000_0000, u64::MAX];
        for entry in inside {
            let start = ThreadStart::of(WINDOW, 2, PROGRAM, Some((entry, 9)));
            assert_eq!((start.entry, start.arguments[0]), (entry, 9));
            assert_eq!(start.stack, layout::stack_top(3, 2) - 8);
        }
        for entry in outside {
            let start = ThreadStart::of(WINDOW, 2, PROGRAM, Some((entry, 9)));
            assert_eq!(start.entry, WINDOW + layout::WINDOW - 1);
        }
    }
}
