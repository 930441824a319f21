//! The message buffers of a TouCAN, and its hidden buffer for a frame that waits for a lock.

use crate::can::CanPlug;
use diapason_abi::Nanos;
use diapason_can::CanFrame;
use diapason_can::bus::Ticket;
use diapason_can::toucan::{BUFFERS, WORDS, code, code_of, id_words, pack, unpack};

const STANDARD: u16 = 1 << 3;

/// A frame was put into this buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored(pub usize);

#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    words: [u16; WORDS],
    /// The request on the bus that its frame is.
    request: Option<Ticket>,
}

impl Buffer {
    fn code(&self) -> u8 {
        code_of(&self.words)
    }

    fn set_code(&mut self, code: u8) {
        self.words[0] = self.words[0] & !0xf0 | u16::from(code) << 4;
    }

    fn stamp(&mut self, timer: u16) {
        self.words[0] = self.words[0] & 0xff | timer & 0xff00;
        if self.words[1] & STANDARD == 0 {
            self.words[2] = timer;
        }
    }

    fn sends(&self) -> bool {
        matches!(self.code(), code::SEND | code::SEND_THEN_ANSWER)
    }

    fn receives(&self) -> bool {
        matches!(self.code(), code::EMPTY | code::FULL | code::OVERRUN)
    }

    /// Returns whether a frame is for this buffer under this mask.
    fn matches(&self, [mask_high, mask_low]: [u16; 2], frame: &CanFrame) -> bool {
        let (high, low) = id_words(frame.id(), false);
        let extended = self.words[1] & STANDARD != 0;
        if extended != frame.is_extended() {
            return false;
        }
        // The bit of remote frames and of the format is no part of the identifier.
        let differs = (self.words[1] ^ high) & mask_high & !(1 << 4 | STANDARD);
        let differs_low = (self.words[2] ^ low) & mask_low & !1;
        differs & 0xffe0 == 0 && (!extended || differs == 0 && differs_low == 0)
    }
}

/// The sixteen buffers, and what waits for a lock.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    all: [Buffer; BUFFERS],
    /// The buffer that its driver reads.
    locked: Option<usize>,
    /// A frame for that buffer, and the timer when the frame began.
    waits: Option<(CanFrame, u16)>,
}

impl Buffers {
    /// The module was reset: nothing is active. Other words keep their content.
    pub fn stop(&mut self) {
        for buffer in &mut self.all {
            buffer.set_code(code::INACTIVE);
            buffer.request = None;
        }
        (self.locked, self.waits) = (None, None);
    }

    /// The module leaves the bus; buffers that wait to send wait on.
    pub fn pause(&mut self) {
        self.all.iter_mut().for_each(|buffer| buffer.request = None);
    }

    /// The module is on the bus again.
    pub fn resume(&mut self, plug: &CanPlug, now: Nanos) {
        for buffer in self.all.iter_mut().filter(|buffer| buffer.sends()) {
            buffer.request = unpack(&buffer.words).and_then(|it| plug.send(now, it, false).ok());
        }
    }

    /// Returns a word of a buffer.
    pub fn word(&self, buffer: usize, word: usize) -> u16 {
        self.all[buffer].words[word]
    }

    /// Reading the first word of a receive buffer locks it, and frees the one that was locked.
    pub fn lock_for(&mut self, buffer: usize, word: usize) -> Option<Stored> {
        if word != 0 || !self.all[buffer].receives() || self.locked == Some(buffer) {
            return None;
        }
        let stored = self.unlock();
        self.locked = Some(buffer);
        stored
    }

    /// Frees the locked buffer. A frame that waits for it is stored.
    pub fn unlock(&mut self) -> Option<Stored> {
        let buffer = self.locked.take()?;
        let (frame, begun) = self.waits.take()?;
        self.all[buffer].receives().then(|| self.store(buffer, &frame, begun))
    }

    /// Writes a word. Returns whether that changes an active buffer in a way that silicon does not
    /// define.
    pub fn write(
        &mut self,
        plug: Option<&CanPlug>,
        now: Nanos,
        number: usize,
        word: usize,
        value: u16,
    ) -> bool {
        let buffer = &mut self.all[number];
        if word != 0 {
            let changes = buffer.words[word] != value;
            buffer.words[word] = value;
            return changes && buffer.request.is_some();
        }
        if let (Some(plug), Some(ticket)) = (plug, buffer.request.take()) {
            plug.withdraw(now, ticket);
        }
        buffer.words[0] = value & 0xff;
        if self.locked == Some(number) {
            (self.locked, self.waits) = (None, None);
        }
        if let (Some(plug), true) = (plug, buffer.sends()) {
            buffer.request = unpack(&buffer.words).and_then(|it| plug.send(now, it, false).ok());
        }
        false
    }

    /// A frame of the module is through, which began at `begun`. Returns its buffer, unless that
    /// was changed meanwhile.
    pub fn sent(&mut self, ticket: Ticket, begun: u16) -> Option<usize> {
        let number = self.all.iter().position(|buffer| buffer.request == Some(ticket))?;
        let buffer = &mut self.all[number];
        buffer.request = None;
        let remote = unpack(&buffer.words).is_some_and(|frame| frame.is_remote());
        buffer.set_code(match buffer.code() {
            code::SEND if remote => code::EMPTY,
            code::SEND => code::IDLE,
            _ => code::ANSWER,
        });
        buffer.stamp(begun);
        Some(number)
    }

    /// The bus has given a request up.
    pub fn dropped(&mut self, ticket: Ticket) {
        let mut buffers = self.all.iter_mut();
        if let Some(buffer) = buffers.find(|buffer| buffer.request == Some(ticket)) {
            buffer.request = None;
        }
    }

    /// A remote frame came: the buffer that answers it, answers.
    pub fn answer(&mut self, plug: &CanPlug, now: Nanos, masks: &[[u16; 2]; 3], asked: &CanFrame) {
        let answers = |(number, buffer): &(usize, &mut Buffer)| {
            buffer.code() == code::ANSWER && buffer.matches(mask(masks, *number), asked)
        };
        if let Some((_, buffer)) = self.all.iter_mut().enumerate().find(answers) {
            buffer.set_code(code::SEND_THEN_ANSWER);
            buffer.request = unpack(&buffer.words).and_then(|it| plug.send(now, it, false).ok());
        }
    }

    /// A data frame is through. It is for the lowest buffer that matches; the module's own frames
    /// only fill empty ones.
    pub fn receive(
        &mut self,
        masks: &[[u16; 2]; 3],
        frame: &CanFrame,
        begun: u16,
        own: bool,
    ) -> Option<Stored> {
        let takes = |(number, buffer): &(usize, &Buffer)| {
            let waits = if own { buffer.code() == code::EMPTY } else { buffer.receives() };
            waits && buffer.matches(mask(masks, *number), frame)
        };
        let (number, _) = self.all.iter().enumerate().find(takes)?;
        if self.locked == Some(number) {
            self.waits = Some((*frame, begun));
            return None;
        }
        Some(self.store(number, frame, begun))
    }

    fn store(&mut self, number: usize, frame: &CanFrame, begun: u16) -> Stored {
        let buffer = &mut self.all[number];
        let next = if buffer.code() == code::EMPTY { code::FULL } else { code::OVERRUN };
        let spare = buffer.words[WORDS - 1];
        buffer.words = pack(next, frame);
        buffer.words[WORDS - 1] = spare;
        buffer.stamp(begun);
        Stored(number)
    }
}

/// Returns the mask of a buffer.
fn mask(masks: &[[u16; 2]; 3], number: usize) -> [u16; 2] {
    let [most, fourteen, fifteen] = *masks;
    match number {
        14 => fourteen,
        15 => fifteen,
        _ => most,
    }
}
