//! The sentences of the screen.
//!
//! Each is a named constant. The linker script of the kernel can so tell them from the constants
//! that stay on a machine without a screen.

use diapason_abi::archive::{Absence, Refusal};

const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let (mut bytes, mut at) = ([0; N], 0);
    while at < N {
        bytes[at] = text.as_bytes()[at];
        at += 1;
    }
    bytes
}

macro_rules! words {
    ($($name:ident = $text:literal;)*) => {
        $(pub static $name: [u8; $text.len()] = bytes($text);)*
    };
}

words! {
    HEX = "0x";
    SECONDS = " s";
    MILLISECONDS = " ms";
    TITLE = "DIAPASON  ";
    UNPROVED = "  UNPROVED: the plan does not hold";
    NAMELESS = "a system without names: the image was cut short or changed";
    STARTING = "Starting ...";
    RUNNING = "RUNNING. This screen changes when the run ends.";
    HOLDS = "HOLDS: every promise was kept.";
    NOTHING = "ENDED. The description promises nothing that this run could break.";
    BROKEN = "BROKEN: ";
    FINDING = " finding, said below.";
    FINDINGS = " findings, said below.";
    UNPROVED_END = "ENDED, UNPROVED. Nothing that this screen checks was broken.";
    NOT_JUDGED = "NOT JUDGED HERE. Nothing that this screen checks was broken.";
    HOW_TO_JUDGE = "VCPUs, devices and pipes are judged by: diapason decode, on the serial port.";
    STOPPED = "NOTHING STARTS.";
    BUG = "STOPPED: the kernel or the hardware failed.";
    SUPERVISOR = "The process that supervises the others faulted.";
    NO_END = "The final tables did not come.";
    BOOKS = "The books do not balance: the times of threads are not the time of the run.";
    IDLE = ", idle ";
    PERCENT = " %, ";
    ENTRIES = " kernel entries, ";
    JOBS = " jobs";
    SKIPPED = " skipped, longest response ";
    MISSED = "Deadlines missed by ";
    FAULTS = "Faults of ";
    MAY_NOT = ", which may not fault";
    REFUSED = "Program refused, of process ";
    ABSENT = "Device is absent: ";
    BECAUSE = ": ";
    MEMORY = "Memory: ";
    PROCESSORS = "Processors: ";
    UNIT_MIB = " MiB";
    NEEDED = " needed, ";
    FOUND = " found";
    LOST = "Records that found no room on the console: ";
    LINES_LOST = "Lines lost of process ";
    PANIC = "Panic in line ";
    IN_FILE = ", file ";
    EXCEPTION = "Exception ";
    AT = " at ";
    ADDRESS = ", address ";
    HARDWARE = "Broken hardware: bank ";
    STATUS = ", status ";
    CORE_STOPPED = "Stopped: core ";
    MORE = "... and more, without room here";
    NUMBER = "#";
}

/// The number and the text of each kind of an enumeration, with a zero behind it.
macro_rules! table {
    ($name:ident, $kind:ty) => {
        pub static $name: [u8; {
            let (mut length, mut at) = (0, 0);
            while at < <$kind>::ALL.len() {
                length += <$kind>::ALL[at].text().len() + 2;
                at += 1;
            }
            length
        }] = {
            let mut bytes = [0; $name.len()];
            let (mut to, mut at) = (0, 0);
            while at < <$kind>::ALL.len() {
                let text = <$kind>::ALL[at].text().as_bytes();
                bytes[to] = <$kind>::ALL[at] as u8;
                let mut from = 0;
                while from < text.len() {
                    bytes[to + 1 + from] = text[from];
                    from += 1;
                }
                to += text.len() + 2;
                at += 1;
            }
            bytes
        };
    };
}

table!(REFUSALS, Refusal);
table!(ABSENCES, Absence);

/// Returns the text of a number in a table; empty if it has none.
#[inline(never)]
pub fn text(table: &'static [u8], number: u64) -> &'static [u8] {
    let mut rest = table;
    while let Some((first, text)) = rest.split_first() {
        let length = text.iter().take_while(|byte| **byte != 0).count();
        if u64::from(*first) == number {
            return text.get(..length).unwrap_or(text);
        }
        rest = text.get(length + 1..).unwrap_or(&[]);
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_words() {
        for refusal in Refusal::ALL {
            assert_eq!(text(&REFUSALS, *refusal as u64), refusal.text().as_bytes());
        }
        for absence in Absence::ALL {
            assert_eq!(text(&ABSENCES, *absence as u64), absence.text().as_bytes());
        }
        assert_eq!(text(&REFUSALS, 0), b"");
        assert_eq!(text(&REFUSALS, 250), b"");
    }
}
