//! A TCP server at which tools of the host reach the CAN buses of a run: `--can-server`.
//!
//! It speaks the socketcand protocol ([`diapason_can::socketcand`]). Buses and sockets meet each
//! millisecond of the run. The run waits at each meeting for the clock of the host, so that it is
//! never faster than real time. Clients act at other times of the run when it is repeated.

mod client;

use crate::capture::CaptureRequest;
use crate::failure::Failure;
use crate::output::tell;
use crate::pace::Pace;
use client::Client;
use diapason_abi::Nanos;
use diapason_can::CanFrame;
use diapason_devices::can::{CanBus, Outside, Overheard};
use diapason_system::{System, UsbModel, UsbPlug};
use std::cell::RefCell;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;

/// From one meeting of a bus and its clients to the next.
const MEETING: Nanos = Nanos::from_millis(1);
/// Most clients at once.
const CLIENTS_MAX: usize = 32;

/// The socket that clients connect to, before the run begins.
#[derive(Debug)]
pub struct CanServer {
    listener: TcpListener,
}

impl CanServer {
    /// Opens the socket at `address`.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn open(address: SocketAddr) -> Result<CanServer, Failure> {
        let refused = |error| Failure::io(format!("serve CAN buses at {address}"), &error);
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(CanServer { listener })
    }

    /// Returns the address, with the port that the host chose for port 0.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves these buses, each with the number of its channel, for as long as they live.
    pub fn serve(self, buses: &[(usize, CanBus)]) {
        let names: Vec<String> = buses.iter().map(|(number, _)| format!("can{number}")).collect();
        if let Some(address) = self.address() {
            tell(&format!("CAN buses at {address}: {}", names.join(", ")));
        }
        let clients = Clients { listener: self.listener, names, clients: vec![], made: 0 };
        let room = Rc::new(RefCell::new(Room { clients, pace: Pace::default() }));
        for (place, (_, bus)) in buses.iter().enumerate() {
            bus.connect(MEETING, Box::new(Seat { room: Rc::clone(&room), place }));
        }
    }
}

/// Checks that a system has a bus that can be served, if `request` wants that.
///
/// # Errors
/// If it has none.
pub fn check(system: &System, request: &CaptureRequest) -> Result<(), Failure> {
    let has_bus = |plug: &UsbPlug| plug.model.is_can() && plug.channels > 0;
    if request.can_server.is_none() || system.usb.iter().any(has_bus) {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "error: `--can-server` has no bus to serve: `{}` plugs in no CAN interface\n\
         help: add a `[[usb]]` table with `model = \"{}\"`, or leave the option out",
        system.name,
        UsbModel::UsbCan.name()
    )))
}

/// The place where all buses of a run meet their clients.
struct Room {
    clients: Clients,
    pace: Pace,
}

/// One bus in the room.
struct Seat {
    room: Rc<RefCell<Room>>,
    place: usize,
}

impl Outside for Seat {
    fn meet(&mut self, now: Nanos, heard: &[Overheard], room: usize) -> Vec<(u64, CanFrame)> {
        let Room { clients, pace } = &mut *self.room.borrow_mut();
        pace.wait(now);
        clients.meet(self.place, heard, room)
    }
}

/// Everybody who is connected.
struct Clients {
    listener: TcpListener,
    names: Vec<String>,
    clients: Vec<Client>,
    /// The number of clients so far.
    made: u64,
}

impl Clients {
    /// Tells the clients of a bus what they wait for. Returns what they send, in turns.
    fn meet(&mut self, bus: usize, heard: &[Overheard], room: usize) -> Vec<(u64, CanFrame)> {
        while self.clients.len() < CLIENTS_MAX
            && let Ok((stream, _)) = self.listener.accept()
        {
            self.clients.extend(Client::new(stream, self.made));
            self.made += 1;
        }
        for client in &mut self.clients {
            client.listen(&self.names);
            if client.bus() == Some(bus) {
                heard.iter().for_each(|heard| client.tell(heard));
            }
            client.speak();
        }
        self.clients.retain(Client::is_there);
        let mut frames = Vec::new();
        loop {
            let before = frames.len();
            for client in self.clients.iter_mut().filter(|client| client.bus() == Some(bus)) {
                if frames.len() < room {
                    frames.extend(client.take());
                }
            }
            if frames.len() == before {
                return frames;
            }
        }
    }
}

#[cfg(test)]
mod tests;
