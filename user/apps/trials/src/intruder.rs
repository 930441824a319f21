//! A driver that uses its device to reach what it was not granted.
//!
//! The device is `edu` of QEMU, which copies memory as it is told and sends one message. Argument 0
//! makes this the driver: it takes one step after the other, and a new life goes on with the next
//! step. The other arguments are the places of its own interrupt and of the owner's in the table of
//! interrupts. Argument 1 makes it the owner of memory and of an interrupt that the driver attacks,
//! which says at the end what became of them.

#![no_std]
#![no_main]

use diapason_rt::event::Event;
use diapason_rt::memory::{DmaSegment, Registers};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

/// Registers of the device, by offset, and where its own memory is.
const SEND: usize = 0x60;
const RECEIVED: usize = 0x64;
const FROM: usize = 0x80;
const TO: usize = 0x88;
const COUNT: usize = 0x90;
const COMMAND: usize = 0x98;
const BUFFER: u64 = 0x4_0000;
/// The commands: copy into its own memory, and out of it.
const IN: u64 = 1;
const OUT: u64 = 3;
/// A copy takes 100 ms of the device's time.
const COPY: Nanos = Nanos::from_millis(150);
/// Address and data of its message, in its configuration.
const MESSAGE_TO: usize = 0x44;
const MESSAGE_DATA: usize = 0x4c;

/// The kernel is linked there.
const KERNEL: u64 = 0x20_0000;
/// An entry of the table of interrupts that nobody has.
const NOBODYS: u64 = 120;

const WORD: u32 = 0x1234_5678;
const SECRET: u32 = 0x5ec2_e7ed;
const SEEN: Nanos = Nanos::from_millis(2_900);

/// Words of the driver's own memory: the number of the next step, and the address of the memory
/// that it attacks, which the owner tells it.
const STEP: usize = 0;
const ATTACKED: usize = 8;

/// Returns where messages are sent to that name an entry of the table of interrupts.
fn naming(entry: u64) -> u32 {
    0xfee0_0010 | (entry as u32) << 5
}

fn main(Arguments([role, own, owners, _]): Arguments) {
    let done = if role == 0 { intrude(own, owners) } else { keep() };
    if let Err(errno) = done {
        log!("failed: {errno:?}");
    }
}

/// The device and the driver's own memory. The owner of the attacked memory has it, too, so that it
/// keeps the number of the next step.
struct Copier {
    device: Registers,
    configuration: Registers,
    own: DmaSegment,
}

impl Copier {
    fn copy(&self, from: u64, to: u64, bytes: u64, command: u64) {
        self.device.write64(FROM, from);
        self.device.write64(TO, to);
        self.device.write64(COUNT, bytes);
        self.device.write64(COMMAND, command);
        time::sleep(COPY);
    }

    /// Aims the device's message at an entry of the table of interrupts, and sends it.
    fn aim(&self, entry: u32) {
        self.configuration.write32(MESSAGE_TO, entry);
        self.configuration.write32(MESSAGE_DATA, 0);
        self.send();
    }

    /// Memory of its own goes into the device and comes back elsewhere.
    fn within(&self) {
        self.own.write32(16, WORD);
        self.copy(self.own.bus_address(16), BUFFER, 4, IN);
        self.copy(BUFFER, self.own.bus_address(32), 4, OUT);
        let same = self.own.read32(32) == WORD;
        log!("{}", if same { "copied its own memory" } else { "could not copy its own memory" });
    }

    fn send(&self) {
        self.device.write32(SEND, 1);
        time::sleep(COPY);
        self.device.write32(RECEIVED, 1);
    }
}

fn intrude(own_entry: u64, owners_entry: u64) -> Result<(), Errno> {
    let (own, device) = (DmaSegment::attach("own")?, Registers::map("copier")?);
    let copier = Copier { device, configuration: Registers::map("configuration")?, own };
    let interrupt = Event::message("copier", 0)?;
    loop {
        let step = copier.own.read32(STEP);
        copier.own.write32(STEP, step + 1);
        let secret = copier.own.read64(ATTACKED);
        match step {
            0 => {
                copier.within();
                copier.send();
                log!("its own interrupt: {:?}", interrupt.wait(Nanos::ZERO));
            }
            1 => copier.copy(BUFFER, secret, 4, OUT),
            2 => copier.copy(KERNEL, BUFFER, 64, IN),
            3 => {
                copier.within();
                copier.copy(BUFFER, naming(NOBODYS).into(), 4, OUT);
            }
            4 => copier.aim(naming(owners_entry)),
            5 => {
                copier.aim(naming(own_entry));
                log!("its own interrupt: {:?}", interrupt.wait(Nanos::ZERO));
            }
            _ => return Ok(()),
        }
        log!("step {step}: nothing ended it");
    }
}

fn keep() -> Result<(), Errno> {
    let told = DmaSegment::attach("own")?;
    let secret = DmaSegment::attach("secret")?;
    let interrupt = Event::message("xhci", 0)?;
    secret.write32(0, SECRET);
    told.write64(ATTACKED, secret.bus_address(0));
    time::sleep_until(SEEN);
    let kept = secret.read32(0) == SECRET;
    log!("{}", if kept { "the memory is as it was" } else { "the memory was overwritten" });
    log!("forged interrupts: {}", interrupt.wait(Nanos::ZERO).unwrap_or(0));
    Ok(())
}
