//! Capability registers and the list of extended capabilities.

use crate::config::{Config, Protocol};
use crate::debug;
use diapason_abi::Nanos;
use diapason_usb::register::extended;

/// Length of the capability registers.
pub const OPERATIONAL: u64 = 0x80;
/// Where the runtime registers begin.
pub const RUNTIME: u64 = 0x1480;
/// Where the doorbells begin.
pub const DOORBELLS: u64 = 0x2500;
/// Where the extended capabilities begin.
pub const EXTENDED: u64 = 0x2900;
const VERSION: u32 = 0x0110;
/// Supported protocol: "USB ".
const NAME: u32 = 0x2042_5355;

const FIRMWARE_OWNS: u32 = 1 << 16;
const SYSTEM_OWNS: u32 = 1 << 24;
/// Enables and events of system management interrupts.
const SMI_ENABLES: u32 = 0xe011;
const SMI_EVENTS: u32 = 0xe000_0000;

/// Returns the capability registers, word by word.
pub(crate) fn capability(config: &Config, word: u64) -> u32 {
    let ports = config.protocols().count() as u32;
    let scratchpads = u32::from(config.scratchpads);
    match word {
        0 => VERSION << 16 | OPERATIONAL as u32,
        1 => ports << 24 | u32::from(config.interrupters) << 8 | u32::from(config.slots),
        2 => {
            (scratchpads & 0x1f) << 27
                | (scratchpads >> 5) << 21
                | u32::from(config.segments_log2) << 4
                | u32::from(config.threshold)
        }
        4 => {
            let contexts = u32::from(config.large_contexts) << 2;
            let power = u32::from(config.port_power) << 3;
            (EXTENDED as u32 / 4) << 16 | power | contexts | 1
        }
        5 => DOORBELLS as u32,
        6 => RUNTIME as u32,
        // Frame ids may be contiguous.
        7 => 1 << 2,
        _ => 0,
    }
}

/// The extended capabilities: hand-over, then one protocol for each group of ports.
#[derive(Clone, Debug)]
pub(crate) struct Extended {
    words: Vec<u32>,
    /// When the firmware lets go.
    pub release: Nanos,
}

impl Extended {
    /// Returns the capabilities of a controller that was switched on.
    pub fn new(config: &Config) -> Extended {
        let owner = if config.firmware { FIRMWARE_OWNS } else { 0 };
        let enables = if config.firmware { SMI_ENABLES } else { 0 };
        let mut words = vec![u32::from(extended::LEGACY) | owner, enables, 0, 0];
        let mut first = 1;
        for group in &config.groups {
            let major = if group.protocol == Protocol::Usb3 { 3 } else { 2 };
            words.push(major << 24 | u32::from(extended::PROTOCOL));
            words.extend([NAME, u32::from(group.ports) << 8 | first, 0]);
            first += u32::from(group.ports);
        }
        let entries = words.len() / 4;
        let followed = if config.debug.is_some() { entries } else { entries - 1 };
        for entry in words.chunks_exact_mut(4).take(followed) {
            entry[0] |= 4 << 8;
        }
        Extended { words, release: Nanos::FOREVER }
    }

    /// Returns how far a word is behind the last of them, where the debug capability stands.
    pub fn beyond(&self, word: u64) -> Option<u64> {
        word.checked_sub(self.words.len() as u64).filter(|&word| word < debug::WORDS)
    }

    /// Reads a word; 0 where there is none.
    pub fn read(&self, word: u64) -> u32 {
        self.words.get(word as usize).copied().unwrap_or(0)
    }

    /// Writes a word, as far as software may.
    pub fn write(&mut self, word: u64, value: u32, now: Nanos, config: &Config) {
        match word {
            0 => {
                self.words[0] = self.words[0] & !SYSTEM_OWNS | value & SYSTEM_OWNS;
                if self.words[0] & FIRMWARE_OWNS != 0 && value & SYSTEM_OWNS != 0 {
                    self.release = now + config.times.handover;
                } else if value & FIRMWARE_OWNS == 0 {
                    // Software may take it by force.
                    self.let_go();
                }
            }
            1 => {
                let events = self.words[1] & SMI_EVENTS & !value;
                self.words[1] = value & SMI_ENABLES | events;
            }
            _ => {}
        }
    }

    /// Lets the firmware give the controller up.
    pub fn let_go(&mut self) {
        self.words[0] &= !FIRMWARE_OWNS;
        self.release = Nanos::FOREVER;
    }
}
