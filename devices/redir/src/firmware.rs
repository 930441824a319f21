//! Firmware that does not wait for USB devices.
//!
//! SeaBIOS gives devices 100 ms to appear at each port, and asks again and again. With an
//! instruction in a nanosecond, that takes the emulator several seconds of each boot. Where nothing
//! is booted from USB, it need not wait, and devices are plugged in when it is done.

use crate::server::quoted;
use diapason_abi::Nanos;
use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

/// When firmware that waits for nobody is done: it takes 25 ms of the guest's time.
pub const DONE: Nanos = Nanos::from_millis(50);
/// The name of SeaBIOS for how many milliseconds it waits, as 32 bits.
const PATIENCE: &str = "etc/usb-time-sigatt";
/// The file that holds it, in the folder of a run.
const FILE: &str = "firmware-patience.bin";

/// Returns whether this is what QEMU warns of because of these options: names that are not its
/// user's own.
pub(crate) fn is_expected(complaint: &str) -> bool {
    complaint.contains(PATIENCE) && complaint.contains("should be prefixed")
}

/// Returns QEMU's options for firmware that does not wait. A file in `folder` belongs to them.
///
/// # Errors
/// If that cannot be written.
pub fn without_patience(folder: &Path) -> io::Result<[OsString; 2]> {
    let file = folder.join(FILE);
    fs::write(&file, 0_u32.to_le_bytes())?;
    let mut option = OsString::from(format!("name={PATIENCE},file="));
    option.push(quoted(&file.canonicalize()?));
    Ok(["-fw_cfg".into(), option])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_warning_of_this_option_is_expected() {
        let warning = |name: &str| {
            format!(
                "qemu-system-x86_64: -fw_cfg name={name},file=a: warning: externally provided \
                 fw_cfg item names should be prefixed with \"opt/\"\n"
            )
        };
        assert!(is_expected(&warning(PATIENCE)));
        assert!(!is_expected(&warning("etc/other")));
        assert!(!is_expected(&format!(
            "qemu-system-x86_64: -fw_cfg name={PATIENCE}: no such file"
        )));
    }
}
