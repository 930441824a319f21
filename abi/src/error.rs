//! Error codes of system calls.
//!
//! An error is something a correct program must expect: time ran out, a peer deleted the object.
//! A *misuse* (a wild pointer, a handle that was never given out, a grant the manifest does not
//! hold) is not an error code: it ends the process, see [`crate::fault`].

/// Why a well-formed call did not do what it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Errno {
    /// The deadline passed first.
    TimedOut = 1,
    /// The call would have had to wait and was told not to.
    WouldBlock = 2,
    /// The object was deleted, before the call or while it waited.
    Gone = 3,
    /// Waiting would close a cycle of owners: the caller (or the chain behind it) waits for itself.
    Deadlock = 4,
    /// The caller does not hold the mutex.
    NotOwner = 5,
    /// A counter is at its limit, or the mailbox is full.
    Full = 6,
    /// The process has used up its pool of this kind of object.
    Exhausted = 7,
    /// Another thread already waits here, or the thing is in use.
    Busy = 8,
    /// The core cannot keep that promise besides those it has made.
    Overload = 9,
    /// The machine does not have the device, or not so that it can be used.
    Absent = 10,
}

impl Errno {
    /// All codes, for tables and tests.
    pub const ALL: [Errno; 10] = [
        Errno::TimedOut,
        Errno::WouldBlock,
        Errno::Gone,
        Errno::Deadlock,
        Errno::NotOwner,
        Errno::Full,
        Errno::Exhausted,
        Errno::Busy,
        Errno::Overload,
        Errno::Absent,
    ];
}

/// Returns the register that carries a call's outcome: errors are small negative numbers.
#[must_use]
pub const fn encode_result(result: Result<u64, Errno>) -> u64 {
    match result {
        Ok(value) => value,
        Err(errno) => (errno as u64).wrapping_neg(),
    }
}

/// Returns the inverse of [`encode_result`]. Unknown negative numbers read as [`Errno::Gone`].
pub const fn decode_result(register: u64) -> Result<u64, Errno> {
    if (register as i64) >= 0 {
        return Ok(register);
    }
    Err(match register.wrapping_neg() {
        1 => Errno::TimedOut,
        2 => Errno::WouldBlock,
        4 => Errno::Deadlock,
        5 => Errno::NotOwner,
        6 => Errno::Full,
        7 => Errno::Exhausted,
        8 => Errno::Busy,
        9 => Errno::Overload,
        10 => Errno::Absent,
        _ => Errno::Gone,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_survive_the_register() {
        for errno in Errno::ALL {
            assert_eq!(decode_result(encode_result(Err(errno))), Err(errno));
        }
        assert_eq!(decode_result(encode_result(Ok(42))), Ok(42));
    }
}
