//! The socketcand protocol: how tools of other hosts reach CAN buses over TCP.
//!
//! ```text
//! < hi >                                  the server greets
//! < open can0 >           < ok >          the client chooses a bus
//! < rawmode >             < ok >          it hears every frame from now on
//! < send 123 2 DE AD >                    it sends a frame
//! < sendrtr 123 4 >                       it sends a remote frame
//! < frame 123 0.002500 DEAD >             the server tells a frame, at the time of the bus
//! < rtr 123 0.002500 4 >                  the server tells a remote frame
//! < subscribe 0 0 123 >                   before `rawmode`, the client chooses identifiers
//! < echo >                < echo >        either side may see that the other is there
//! ```
//! The protocol has no words for frames of CAN FD. A client is told once that there was one.
//!
//! A [`Dialogue`] is the server's side of one connection. It has no socket and no clock.

use crate::fd::AnyFrame;
use crate::frame::{BYTES_MAX, CanFrame, extended, standard};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use diapason_abi::Nanos;
use embedded_can::Id;

/// The greeting of a new client.
pub const GREETING: &str = "< hi >";
/// Longest command in bytes.
pub const COMMAND_MAX: usize = 256;
/// Most identifiers that a client subscribes to.
pub const SUBSCRIPTIONS_MAX: usize = 2_048;

const OK: &str = "< ok >";

/// One reaction to what a client said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The client gets this answer.
    Answer(String),
    /// The client sends this frame on its bus.
    Send(CanFrame),
    /// The client gets this answer, and the connection ends.
    Close(String),
}

/// The frames that a client wants to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hears {
    All,
    /// Frames with these identifiers.
    Only(Vec<Id>),
}

/// The server's side of one connection.
#[derive(Clone, Debug)]
pub struct Dialogue {
    /// The bytes of a command that has not ended.
    rest: Vec<u8>,
    bus: Option<usize>,
    hears: Hears,
    /// The client was told that there are frames of CAN FD.
    warned: bool,
    closed: bool,
}

impl Default for Dialogue {
    fn default() -> Dialogue {
        let hears = Hears::Only(Vec::new());
        Dialogue { rest: Vec::new(), bus: None, hears, warned: false, closed: false }
    }
}

impl Dialogue {
    /// Returns the place of the open bus in the list of buses.
    #[must_use]
    pub const fn bus(&self) -> Option<usize> {
        self.bus
    }

    /// Takes bytes of the client in, and adds the reactions to them to `to`. `buses` are the names
    /// of the buses.
    pub fn hear(&mut self, bytes: &[u8], buses: &[String], to: &mut Vec<Reaction>) {
        for byte in bytes {
            if self.closed {
                return;
            }
            match (byte, self.rest.is_empty()) {
                (b'<', true) => self.rest.push(b'<'),
                (b'<', false) => self.close("a command ends with a closing bracket", to),
                (byte, true) if byte.is_ascii_whitespace() => {}
                (_, true) => self.close("a command begins with an opening bracket", to),
                (b'>', false) => {
                    let command = core::mem::take(&mut self.rest);
                    let words = String::from_utf8_lossy(command.get(1..).unwrap_or_default());
                    let words: Vec<&str> = words.split_ascii_whitespace().collect();
                    self.obey(&words, buses, to);
                }
                (_, false) if self.rest.len() >= COMMAND_MAX => {
                    self.close("the command is too long", to);
                }
                (byte, false) => self.rest.push(*byte),
            }
        }
    }

    /// Returns the words for a frame that ended on the open bus at `time`, if the client wants it.
    /// Of frames of CAN FD it tells the first that it cannot tell them.
    #[must_use]
    pub fn tell(&mut self, time: Nanos, frame: &AnyFrame) -> Option<String> {
        let wanted = match &self.hears {
            Hears::All => true,
            Hears::Only(ids) => ids.contains(&frame.id()),
        };
        if !wanted || self.bus.is_none() {
            return None;
        }
        let Some(frame) = frame.classic() else {
            let first = !core::mem::replace(&mut self.warned, true);
            return first.then(|| error("this protocol cannot tell the frames of CAN FD here"));
        };
        Some(told(time, &frame))
    }

    fn close(&mut self, why: &str, to: &mut Vec<Reaction>) {
        self.closed = true;
        to.push(Reaction::Close(error(why)));
    }

    fn obey(&mut self, words: &[&str], buses: &[String], to: &mut Vec<Reaction>) {
        let answer = match (words, self.bus) {
            (["echo"], _) => Ok(Some("< echo >")),
            (["open", name], None) => match buses.iter().position(|bus| bus == name) {
                Some(bus) => {
                    self.bus = Some(bus);
                    Ok(Some(OK))
                }
                None => return self.close(&format!("there is no bus {name}"), to),
            },
            (_, None) => Err("open a bus first"),
            (["rawmode"], _) => {
                self.hears = Hears::All;
                Ok(Some(OK))
            }
            (["bcmmode"], _) => {
                self.hears = Hears::Only(Vec::new());
                Ok(Some(OK))
            }
            (["send", rest @ ..], _) => sent(rest).map(|frame| {
                to.push(Reaction::Send(frame));
                None
            }),
            (["sendrtr", rest @ ..], _) => remote(rest).map(|frame| {
                to.push(Reaction::Send(frame));
                None
            }),
            (["subscribe", rest @ ..], _) => self.subscribe(rest).map(|()| None),
            (["unsubscribe", id], _) => identifier(id).map(|id| {
                if let Hears::Only(ids) = &mut self.hears {
                    ids.retain(|other| *other != id);
                }
                None
            }),
            (["open", ..], Some(_)) => Err("a bus is open already"),
            _ => Err("unknown command"),
        };
        match answer {
            Ok(answer) => to.extend(answer.map(|text| Reaction::Answer(text.to_string()))),
            Err(why) => to.push(Reaction::Answer(error(why))),
        }
    }

    fn subscribe(&mut self, words: &[&str]) -> Result<(), &'static str> {
        let [seconds, micros, id] = words else { return Err("subscribe 0 0 ID is expected") };
        if [seconds, micros].iter().any(|word| word.parse::<u64>() != Ok(0)) {
            return Err("an interval must be 0 0: every frame is told");
        }
        let id = identifier(id)?;
        let Hears::Only(ids) = &mut self.hears else {
            return Err("raw mode hears every frame already");
        };
        if ids.len() == SUBSCRIPTIONS_MAX {
            return Err("too many subscriptions");
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
        Ok(())
    }
}

fn error(why: &str) -> String {
    format!("< error {why} >")
}

/// Returns a frame as the server tells it: time in microseconds, data without spaces.
fn told(time: Nanos, frame: &CanFrame) -> String {
    let (seconds, micros) = (time.0 / 1_000_000_000, time.0 / 1_000 % 1_000_000);
    let id = match frame.is_extended() {
        true => format!("{:08X}", frame.raw_id()),
        false => format!("{:03X}", frame.raw_id()),
    };
    if frame.is_remote() {
        return format!("< rtr {id} {seconds}.{micros:06} {} >", frame.code());
    }
    let data: String = frame.bytes().iter().map(|byte| format!("{byte:02X}")).collect();
    format!("< frame {id} {seconds}.{micros:06} {data} >")
}

/// Returns an identifier: eight digits have 29 bits, up to three have 11.
fn identifier(word: &str) -> Result<Id, &'static str> {
    let raw = hex(word).ok_or("an identifier has up to 3 hexadecimal digits, or 8");
    match word.len() {
        1..=3 => standard(raw?).map_err(|_| "an identifier of 3 digits is at most 7FF"),
        8 => extended(raw?).map_err(|_| "an identifier of 8 digits is at most 1FFFFFFF"),
        _ => Err("an identifier has up to 3 hexadecimal digits, or 8"),
    }
}

fn hex(word: &str) -> Option<u32> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits { u32::from_str_radix(word, 16).ok() } else { None }
}

/// Returns the bytes that a length says, at most eight.
fn length(word: &str) -> Result<usize, &'static str> {
    let length = if word.len() == 1 { word.parse::<usize>().ok() } else { None };
    length.filter(|length| *length <= BYTES_MAX).ok_or("a length is a digit 0 to 8")
}

fn sent(words: &[&str]) -> Result<CanFrame, &'static str> {
    let [id, len, data @ ..] = words else { return Err("send ID LENGTH BYTES is expected") };
    let (id, length) = (identifier(id)?, length(len)?);
    if data.len() != length {
        return Err("there must be as many bytes as the length says");
    }
    let mut bytes = [0; BYTES_MAX];
    for (byte, word) in bytes.iter_mut().zip(data) {
        let value = hex(word).filter(|_| word.len() <= 2);
        *byte =
            value.and_then(|value| u8::try_from(value).ok()).ok_or("a byte has 1 or 2 digits")?;
    }
    CanFrame::data(id, &bytes[..length]).map_err(|_| "a frame has at most 8 bytes")
}

fn remote(words: &[&str]) -> Result<CanFrame, &'static str> {
    let [id, len] = words else { return Err("sendrtr ID LENGTH is expected") };
    CanFrame::remote(identifier(id)?, length(len)?).map_err(|_| "a length is a digit 0 to 8")
}
