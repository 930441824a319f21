//! One client of the server: a socket that nobody waits for, and its dialogue.

use crate::pace::here;
use diapason_can::CanFrame;
use diapason_can::socketcand::{Dialogue, GREETING, Reaction};
use diapason_devices::can::Overheard;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes that are read at once.
const READ: usize = 4_096;
/// Reads at one meeting: a client that never stops talking must not keep the run there.
const READS: usize = 16;
/// A client that has left so many bytes unread is sent away.
const UNREAD_MAX: usize = 4 << 20;
/// Frames wait so long after an answer: python-can takes whatever it reads for the answer.
const PAUSE: Duration = Duration::from_millis(30);

pub(super) struct Client {
    stream: TcpStream,
    number: u64,
    dialogue: Dialogue,
    /// Frames that it sends and that found no room yet.
    frames: VecDeque<CanFrame>,
    /// Text that it has not taken yet.
    out: Vec<u8>,
    /// Text about frames, which waits for the end of the pause.
    told: Vec<u8>,
    pause: Option<Instant>,
    is_there: bool,
}

impl Client {
    /// Returns a new client of this number with its greeting on the way, unless it left at once.
    pub fn new(stream: TcpStream, number: u64) -> Option<Client> {
        stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).ok()?;
        Some(Client {
            stream,
            number,
            dialogue: Dialogue::default(),
            frames: VecDeque::new(),
            out: GREETING.into(),
            told: Vec::new(),
            pause: None,
            is_there: true,
        })
    }

    /// Returns the place of the bus that it has opened.
    pub fn bus(&self) -> Option<usize> {
        self.dialogue.bus()
    }

    /// Returns whether it is still connected.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// Takes in what it says. It is not heard while frames of its own wait.
    pub fn listen(&mut self, buses: &[String]) {
        let mut bytes = [0; READ];
        for _ in 0..READS {
            if !self.is_there || !self.frames.is_empty() {
                return;
            }
            let count = match self.stream.read(&mut bytes) {
                Ok(0) => return self.is_there = false,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.is_there = false,
            };
            let mut reactions = Vec::new();
            self.dialogue.hear(&bytes[..count], buses, &mut reactions);
            for reaction in reactions {
                match reaction {
                    Reaction::Send(frame) => self.frames.push_back(frame),
                    Reaction::Answer(text) => {
                        self.out.extend(text.bytes());
                        self.pause = Some(here() + PAUSE);
                    }
                    Reaction::Close(text) => {
                        self.out.extend(text.bytes());
                        self.speak();
                        self.is_there = false;
                    }
                }
            }
        }
    }

    /// Notes a frame of its bus, unless it sent it itself.
    pub fn tell(&mut self, heard: &Overheard) {
        if heard.by != Some(self.number) {
            let text = self.dialogue.tell(heard.sent.time, &heard.sent.frame);
            self.told.extend(text.into_iter().flat_map(String::into_bytes));
        }
    }

    /// Writes as much as the client takes.
    pub fn speak(&mut self) {
        if self.pause.is_none_or(|end| here() >= end) {
            self.pause = None;
            self.out.append(&mut self.told);
        }
        let mut written = 0;
        while written < self.out.len() {
            match self.stream.write(&self.out[written..]) {
                Ok(count @ 1..) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Ok(0) | Err(_) => {
                    self.is_there = false;
                    break;
                }
            }
        }
        self.out.drain(..written);
        self.is_there &= self.out.len() + self.told.len() <= UNREAD_MAX;
    }

    /// Takes the next frame that it sends, with its number.
    pub fn take(&mut self) -> Option<(u64, CanFrame)> {
        Some((self.number, self.frames.pop_front()?))
    }
}
