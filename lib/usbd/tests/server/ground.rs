//! A machine for the server: the model of a controller, memory, pipes and mailboxes by name, all in
//! one thread of the test.

use diapason_abi::{Errno, MESSAGE_BYTES, Nanos};
use diapason_devices::UsbDevice;
use diapason_pipe::measured::{Measurement, Reported, Words};
use diapason_pipe::{Reader, Ring, Writer};
use diapason_state::Plain;
use diapason_usb::xhci::{Dma, Mmio};
use diapason_usbd::platform::{Guarded, MessagePort, Platform, Wakes};
use diapason_xhc::{Config, Denied, Memory, Xhc};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

const BASE: u64 = 0x8_0000_0000;
const BYTES: usize = 16 << 20;
/// Memory of a name.
const PIECE: usize = 2 << 20;
/// The place of its first byte. Places of 64 KiB cross borders of 64 KiB, as those of a kernel may.
const FIRST: usize = 44 << 10;

/// Memory that denies everything outside of it.
struct Ram(Vec<u8>);

fn range(address: u64, length: usize) -> Result<std::ops::Range<usize>, Denied> {
    let start = address.checked_sub(BASE).ok_or(Denied)? as usize;
    let end = start.checked_add(length).ok_or(Denied)?;
    if end <= BYTES { Ok(start..end) } else { Err(Denied) }
}

impl Memory for Ram {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied> {
        bytes.copy_from_slice(&self.0[range(address, bytes.len())?]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        self.0[range(address, bytes.len())?].copy_from_slice(bytes);
        Ok(())
    }
}

struct Inside {
    xhc: Xhc,
    ram: Ram,
    now: Nanos,
    pieces: Vec<String>,
    /// Ends of pipes that nobody has opened yet.
    ends: BTreeMap<String, Box<dyn Any>>,
    mail: BTreeMap<String, VecDeque<Vec<u8>>>,
    lines: Vec<String>,
    said: Vec<Measurement>,
}

thread_local! {
    static INSIDE: RefCell<Option<Inside>> = const { RefCell::new(None) };
}

fn with<R>(act: impl FnOnce(&mut Inside) -> R) -> R {
    INSIDE.with_borrow_mut(|inside| act(inside.as_mut().expect("a machine was set up")))
}

/// Sets up a machine without devices.
pub fn set_up(config: Config) -> Ground {
    let inside = Inside {
        xhc: Xhc::new(config),
        ram: Ram(vec![0; BYTES]),
        now: Nanos::ZERO,
        pieces: Vec::new(),
        ends: BTreeMap::new(),
        mail: BTreeMap::new(),
        lines: Vec::new(),
        said: Vec::new(),
    };
    INSIDE.set(Some(inside));
    CHAMBERS.set(0);
    FORBIDDEN.set(None);
    Ground
}

/// The platform of the machine of this thread.
pub struct Ground;

/// The registers of its controller.
#[derive(Clone)]
pub struct Bar;

impl Mmio for Bar {
    fn length(&self) -> u64 {
        diapason_xhc::WINDOW
    }

    fn read32(&mut self, offset: u64) -> u32 {
        with(|inside| inside.xhc.read(offset, inside.now))
    }

    fn write32(&mut self, offset: u64, value: u32) {
        with(|inside| inside.xhc.write(offset, value, inside.now, &mut inside.ram));
    }
}

/// A piece of its memory.
#[derive(Clone, Copy)]
pub struct Piece(usize);

impl Piece {
    fn at(self, offset: u64) -> usize {
        self.0 * PIECE + FIRST + offset as usize
    }
}

impl Dma for Piece {
    fn base(&self) -> u64 {
        BASE + self.at(0) as u64
    }

    fn length(&self) -> u64 {
        (PIECE - FIRST) as u64
    }

    fn load(&self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.read(offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn store(&mut self, offset: u64, value: u32) {
        self.write(offset, &value.to_le_bytes());
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        let at = self.at(offset);
        with(|inside| bytes.copy_from_slice(&inside.ram.0[at..at + bytes.len()]));
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let at = self.at(offset);
        with(|inside| inside.ram.0[at..at + bytes.len()].copy_from_slice(bytes));
    }
}

/// A lock of a machine with one thread: entering it twice is a deadlock.
pub struct Chamber<T> {
    /// The lock's number among those of the machine, from 1: that of the branch in it.
    number: u16,
    value: RefCell<T>,
}

thread_local! {
    static CHAMBERS: Cell<u16> = const { Cell::new(0) };
    static FORBIDDEN: Cell<Option<u16>> = const { Cell::new(None) };
}

/// From now on nobody enters this branch, or everybody may enter every branch again.
pub fn forbid(branch: Option<u16>) {
    FORBIDDEN.set(branch);
}

impl<T> Guarded<T> for Chamber<T> {
    fn new(value: T) -> Chamber<T> {
        CHAMBERS.set(CHAMBERS.get() + 1);
        Chamber { number: CHAMBERS.get(), value: RefCell::new(value) }
    }

    fn open(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn enter<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        assert_ne!(FORBIDDEN.get(), Some(self.number), "a thread enters another's branch");
        act(&mut self.value.try_borrow_mut().expect("no thread enters a room that it is in"))
    }
}

/// A mailbox by its name.
pub struct Letters(String);

impl MessagePort for Letters {
    fn receive(&mut self, into: &mut [u8; MESSAGE_BYTES]) -> Option<usize> {
        let letter = with(|inside| inside.mail.entry(self.0.clone()).or_default().pop_front())?;
        into[..letter.len()].copy_from_slice(&letter);
        Some(letter.len())
    }

    fn send(&mut self, message: &[u8]) {
        post(&self.0, message);
    }
}

/// Puts a message into a mailbox.
pub fn post(name: &str, message: &[u8]) {
    with(|inside| inside.mail.entry(name.into()).or_default().push_back(message.into()));
}

/// Returns an end of a pipe. The first who opens one leaves the other end for the second.
fn end<T: Plain, const N: usize, E: 'static, O: 'static>(
    name: &str,
    pick: impl FnOnce(Writer<'static, T, N>, Reader<'static, T, N>) -> (E, O),
) -> E {
    let (wanted, key) =
        (std::any::type_name::<E>(), format!("{name} {}", std::any::type_name::<E>()));
    if let Some(end) = with(|inside| inside.ends.remove(&key)) {
        return *end.downcast().unwrap_or_else(|_| panic!("{name} is no {wanted}"));
    }
    let (end, other) = {
        let (writer, reader) = Box::leak(Box::new(Ring::new())).split();
        pick(writer, reader)
    };
    let key = format!("{name} {}", std::any::type_name::<O>());
    with(|inside| inside.ends.insert(key, Box::new(other)));
    end
}

impl Platform for Ground {
    type Registers = Bar;
    type Memory = Piece;
    type Mailbox = Letters;
    type Guarded<T: Send + 'static> = Chamber<T>;

    fn registers(&self, _: &str) -> Result<Bar, Errno> {
        Ok(Bar)
    }

    fn memory(&self, name: &str) -> Result<Piece, Errno> {
        with(|inside| {
            let known = inside.pieces.iter().position(|known| known == name);
            let number = known.unwrap_or_else(|| {
                inside.pieces.push(name.into());
                inside.pieces.len() - 1
            });
            ((number + 1) * PIECE <= BYTES).then_some(Piece(number)).ok_or(Errno::Exhausted)
        })
    }

    fn writer<T: Plain, const N: usize>(&self, name: &str) -> Result<Writer<'static, T, N>, Errno> {
        Ok(end(name, |writer, reader| (writer, reader)))
    }

    fn reader<T: Plain, const N: usize>(&self, name: &str) -> Result<Reader<'static, T, N>, Errno> {
        Ok(end(name, |writer, reader| (reader, writer)))
    }

    fn mailbox(&self, name: &str, _: Wakes) -> Result<Letters, Errno> {
        Ok(Letters(name.into()))
    }

    fn log(line: fmt::Arguments<'_>) {
        with(|inside| inside.lines.push(line.to_string()));
    }

    fn measured(words: &Words) {
        with(|inside| inside.said.extend(Reported::of(words).map(|reported| reported.said)));
    }

    fn heap_used() -> usize {
        0
    }
}

/// Returns the reports of the server since the last call.
pub fn take_reports() -> Vec<Measurement> {
    with(|inside| std::mem::take(&mut inside.said))
}

/// Returns the lines that the server has logged since the last call.
pub fn take_lines() -> Vec<String> {
    with(|inside| std::mem::take(&mut inside.lines))
}

/// Returns the time of the machine.
pub fn now() -> Nanos {
    with(|inside| inside.now)
}

/// Returns when something happens on a bus next.
pub fn next_event() -> Nanos {
    with(|inside| inside.xhc.next_event())
}

/// Lets time pass until then, and returns the interrupters that interrupt.
pub fn advance(to: Nanos) -> Vec<u16> {
    with(|inside| {
        inside.now = inside.now.max(to);
        inside.xhc.advance(inside.now, &mut inside.ram);
        inside.xhc.take_interrupts().into_iter().map(|interrupt| interrupt.vector).collect()
    })
}

/// Plugs a device into a port.
pub fn attach(port: u8, device: Box<dyn UsbDevice>) {
    with(|inside| inside.xhc.attach(port, device, inside.now, &mut inside.ram));
}

/// Unplugs the device at `port`.
pub fn detach(port: u8) {
    with(|inside| inside.xhc.detach(port, inside.now, &mut inside.ram));
}
