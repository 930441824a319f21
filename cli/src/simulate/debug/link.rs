//! The connection to GDB: one client, packets in both directions, acknowledged until GDB asks for
//! none.

use super::packet::{FromGdb, GdbRequest, PACKET_MAX, framed, hex, take};
use crate::failure::Failure;
use crate::interrupt;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Wall time after which a wait looks whether a signal came.
const PATIENCE: Duration = Duration::from_millis(100);

/// The socket at which GDB may connect.
pub struct Door(TcpListener);

impl Door {
    /// Opens a socket at `address`, where GDB may connect.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn open(address: SocketAddr) -> Result<Door, Failure> {
        let refused = |error| Failure::io(format!("wait for GDB at {address}"), &error);
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(Door(listener))
    }

    /// Returns the address, with the port that the host chose for port 0.
    ///
    /// # Errors
    /// If the host does not know it.
    pub fn address(&self) -> Result<SocketAddr, Failure> {
        self.0.local_addr().map_err(|error| Failure::io("wait for GDB", &error))
    }

    /// Waits for GDB. Returns `None` if a signal came first.
    ///
    /// # Errors
    /// If the connection cannot be made.
    pub fn wait(self) -> Result<Option<GdbLink>, Failure> {
        let failed = |error| Failure::io("wait for GDB", &error);
        loop {
            match self.0.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(failed)?;
                    stream.set_nodelay(true).map_err(failed)?;
                    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
                    return Ok(Some(GdbLink { stream, bytes: Vec::new(), acknowledges: true }));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if interrupt::came() {
                        return Ok(None);
                    }
                    std::thread::sleep(PATIENCE);
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// The connection to a GDB that has come.
pub struct GdbLink {
    stream: TcpStream,
    bytes: Vec<u8>,
    acknowledges: bool,
}

impl GdbLink {
    /// Returns the next request. Returns `None` if GDB is gone, or a signal came.
    pub fn request(&mut self) -> Option<GdbRequest> {
        loop {
            match take(&mut self.bytes) {
                Some(FromGdb::Packet(packet)) => {
                    if self.acknowledges {
                        self.write(b"+")?;
                    }
                    return Some(GdbRequest::parse(&packet));
                }
                Some(FromGdb::Damaged) => self.write(b"-")?,
                Some(FromGdb::TooLong) => return None,
                // It stands already.
                Some(FromGdb::Interrupt) => {}
                None => self.read()?,
            }
        }
    }

    /// Returns whether GDB wants a running system to stop; `None` if GDB is gone.
    pub fn interrupts(&mut self) -> Option<bool> {
        self.stream.set_nonblocking(true).ok()?;
        let read = self.read_some();
        self.stream.set_nonblocking(false).ok()?;
        read?;
        Some(take(&mut self.bytes) == Some(FromGdb::Interrupt))
    }

    fn read(&mut self) -> Option<()> {
        if interrupt::came() {
            return None;
        }
        self.read_some()
    }

    /// Reads what is there; `None` if nothing more will come.
    fn read_some(&mut self) -> Option<()> {
        let mut more = [0; PACKET_MAX];
        match self.stream.read(&mut more) {
            Ok(0) => None,
            Ok(length) => {
                self.bytes.extend(more.get(..length)?);
                Some(())
            }
            Err(error) => {
                let later = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
                later.contains(&error.kind()).then_some(())
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).ok()
    }

    /// Sends a packet. If GDB is gone, the next request says so.
    pub fn send(&mut self, text: &str) {
        let _ = self.write(&framed(text));
    }

    /// Sends text that GDB prints.
    pub fn print(&mut self, text: &str) {
        self.send(&format!("O{}", hex(format!("{text}\n").as_bytes())));
    }

    /// Stops acknowledging packets, after this one.
    pub fn stop_acknowledging(&mut self) {
        self.send("OK");
        self.acknowledges = false;
    }
}
