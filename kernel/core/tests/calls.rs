//! Calls of no service: nothing, unknown numbers, logging, counters, giving up, slow reads.

use crate::support::lab::lab;
use crate::support::*;
use diapason_abi::call::MEASUREMENT;
use diapason_abi::layout;
use diapason_abi::record::Record;
use diapason_core::host::USER_BYTES;

#[test]
fn nothing_returns_nothing() {
    lab(|sys| assert_eq!(sys.ok(Call::Null, &[1, 2, 3, 4, 5]), 0));
}

#[test]
fn unknown_numbers_are_misuse() {
    let first = Call::ALL.len() as u64;
    for number in [first, first + 1, 255, 256, 1 << 32, u64::MAX] {
        lab(|sys| {
            let outcome = sys.act(|host| host.raw_call(number, [0; 5]));
            assert_eq!(outcome, Outcome::Faulted(FaultCause::BadCall, number));
        });
    }
}

#[test]
fn a_line_is_logged_whole_or_not_at_all() {
    for length in [0, 1, 111, 112] {
        lab(|sys| {
            let text: Vec<u8> = (0..length).map(|i| b'a' + (i % 26) as u8).collect();
            let at = sys.address(USER_BYTES - length);
            sys.poke(at, &text);
            assert_eq!(sys.ok(Call::Log, &[at, length]), 0);
            assert_eq!(sys.host.machine.lines, [(0, text)]);
        });
    }
    for length in [113, 4096, u64::MAX] {
        lab(|sys| {
            let at = sys.address(0);
            sys.misuses(FaultCause::BadArgument, Call::Log, &[at, length]);
            assert!(sys.host.machine.lines.is_empty());
        });
    }
    lab(|sys| {
        let at = sys.address(USER_BYTES - 1);
        sys.misuses(FaultCause::BadAddress, Call::Log, &[at, 2]);
    });
}

#[test]
fn a_measurement_is_a_record_of_who_made_it() {
    lab(|sys| {
        let at = sys.address(USER_BYTES - 80);
        // The process is the caller's for any words.
        let words: Vec<u8> =
            (0..10u64).flat_map(|word| (word << 56 | word).to_le_bytes()).collect();
        sys.poke(at, &words);
        assert_eq!(sys.ok(Call::Log, &[at, MEASUREMENT]), 0);
        let told: Vec<u64> = (0..10).map(|word| word << 56 | word).collect();
        let record = (Record::Measured, [&[0], &told[..]].concat());
        assert_eq!(sys.host.machine.records.last(), Some(&record));
        assert!(sys.host.machine.lines.is_empty());
    });
    lab(|sys| {
        let at = sys.address(USER_BYTES - 79);
        sys.misuses(FaultCause::BadAddress, Call::Log, &[at, MEASUREMENT]);
    });
    for length in [MEASUREMENT + 1, MEASUREMENT - 1, MEASUREMENT | 80] {
        lab(|sys| {
            let at = sys.address(0);
            sys.misuses(FaultCause::BadArgument, Call::Log, &[at, length]);
        });
    }
}

#[test]
fn counters_of_the_machine_are_for_those_who_may() {
    for which in [0, 1, 2, 4, 5, u64::MAX] {
        lab(|sys| sys.misuses(FaultCause::BadGrant, Call::Count, &[which, 0]));
        let granted = Plan::new().process("bench", 40).with(|p| p.counters = true);
        run(&granted, |sys| assert_eq!(sys.ok(Call::Count, &[which, 0]), 0));
    }
    lab(|sys| _ = sys.ok(Call::Count, &[3, 0]));
}

#[test]
fn giving_up_is_a_fault_at_the_given_address() {
    lab(|sys| {
        let outcome = sys.call(Call::Fail, &[0x1_0000_4321]);
        assert_eq!(outcome, Outcome::Faulted(FaultCause::Panic, 0x1_0000_4321));
    });
}

#[test]
fn a_slow_read_copies_in_one_piece() {
    lab(|sys| {
        let (from, to) = (sys.address(0x100), sys.address(0x2000));
        let bytes: Vec<u8> = (0..4096u32).map(|i| (i * 7) as u8).collect();
        sys.poke(from, &bytes);
        assert_eq!(sys.ok(Call::ReadSlow, &[to, from, 4096]), 0);
        assert_eq!(sys.peek(to, 4096), bytes);
        assert_eq!(sys.ok(Call::ReadSlow, &[to, from, 0]), 0);
    });
    for length in [4097, 1 << 16, u64::MAX] {
        lab(|sys| {
            let a = sys.address(0);
            sys.misuses(FaultCause::BadArgument, Call::ReadSlow, &[a, a, length]);
        });
    }
    for (to, from) in [(0, 0x100), (0x100, 0), (USER_BYTES - 1, 0), (0, USER_BYTES - 1)] {
        lab(|sys| {
            let base = layout::base(1);
            let of = |offset: u64| if offset == 0 { base } else { layout::base(0) + offset };
            sys.misuses(FaultCause::BadAddress, Call::ReadSlow, &[of(to), of(from), 2]);
        });
    }
}
