//! Captures of a run: USB transfers and CAN frames in files that Wireshark reads, CAN frames as
//! candump writes them.
//!
//! | file | topic |
//! |---|---|
//! | `output` | one file, written as the run goes on |
//! | `simulated` | transfers as the model of a controller tells them |
//! | `redirected` | transfers as the devices behind QEMU are asked and answer |

mod output;
mod redirected;
mod simulated;

pub use redirected::Redirection;
pub use simulated::event;

use crate::Failure;
use diapason_abi::Nanos;
use diapason_can::candump::{Record, Report};
use diapason_capture::pcap::{self, Link};
use diapason_capture::{Order, can, usb};
use diapason_devices::can::CanBus;
use output::Output;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What tools of the host get of a run: captures, and a server for clients.
#[derive(Clone, PartialEq, Eq, Debug, Default, clap::Args)]
pub struct Request {
    /// Capture USB transfers and CAN frames for Wireshark, into this folder.
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Write CAN frames as candump does, a file for each bus, into this folder.
    #[arg(long, value_name = "DIR")]
    pub candump: Option<PathBuf>,
    /// Serve the CAN buses at this address, such as 127.0.0.1:29536, to clients of socketcand; the
    /// run is then no faster than real time.
    #[arg(long, value_name = "ADDR:PORT")]
    pub can_server: Option<SocketAddr>,
}

impl Request {
    /// Returns whether a capture is wanted.
    #[must_use]
    pub fn is_some(&self) -> bool {
        self.pcap.is_some() || self.candump.is_some()
    }
}

/// The CAN frames of one bus.
struct Frames {
    bus: CanBus,
    name: String,
    pcap: Option<Output>,
    log: Option<Output>,
}

/// The files of one run.
pub struct Captures {
    usb: Vec<(Output, Order<Vec<u8>>)>,
    can: Vec<Frames>,
}

impl Captures {
    /// Empty files for the transfers of so many controllers and for the frames of these buses, each
    /// with the number of its channel. They are recorded from now on.
    ///
    /// # Errors
    /// If a folder or a file cannot be made.
    pub fn begin(
        request: &Request,
        controllers: usize,
        buses: &[(usize, CanBus)],
    ) -> Result<Captures, Failure> {
        let mut captures = Captures { usb: Vec::new(), can: Vec::new() };
        if let Some(folder) = &request.pcap {
            for number in 0..controllers {
                let file = create(folder, &format!("usb{number}.pcap"), Some(Link::Usb))?;
                captures.usb.push((file, Order::default()));
            }
        }
        for (number, bus) in buses {
            let name = format!("can{number}");
            let pcap = request.pcap.as_ref();
            let pcap = pcap.map(|folder| create(folder, &format!("{name}.pcap"), Some(Link::Can)));
            let log = request.candump.as_ref();
            let log = log.map(|folder| create(folder, &format!("{name}.log"), None));
            let (pcap, log) = (pcap.transpose()?, log.transpose()?);
            bus.record(usize::MAX);
            captures.can.push(Frames { bus: bus.clone(), name, pcap, log });
        }
        Ok(captures)
    }

    /// A transfer of a controller began or ended.
    pub fn usb(&mut self, controller: usize, event: &usb::Event<'_>) {
        if let Some((_, order)) = self.usb.get_mut(controller) {
            order.push(event.time, pcap::packet(event.time, &event.bytes()));
        }
    }

    /// No transfer of this controller before this time will be told any more.
    pub fn settle(&mut self, controller: usize, time: Nanos) {
        if let Some((file, order)) = self.usb.get_mut(controller) {
            order.before(time).iter().for_each(|packet| file.put(packet));
        }
    }

    /// Writes the frames that went over the buses since the last call.
    pub fn frames(&mut self) {
        for frames in &mut self.can {
            for sent in frames.bus.take_record() {
                let report = Report::Frame(sent.frame);
                if let Some(pcap) = &mut frames.pcap {
                    pcap.put(&pcap::packet(sent.time, &can::bytes(&report)));
                }
                if let Some(log) = &mut frames.log {
                    // candump's own tools take any fraction of a second for microseconds.
                    let time = Nanos(sent.time.0 / 1_000 * 1_000);
                    let record = Record { time, interface: &frames.name, report };
                    log.put(format!("{record}\n").as_bytes());
                }
            }
        }
    }

    /// The end of the run; the files are complete.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.frames();
        for (mut file, mut order) in self.usb {
            order.rest().iter().for_each(|packet| file.put(packet));
            file.finish()?;
        }
        let frames = self.can.into_iter().flat_map(|frames| [frames.pcap, frames.log]);
        frames.flatten().try_for_each(Output::finish)
    }
}

fn create(folder: &Path, name: &str, link: Option<Link>) -> Result<Output, Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::io(format!("make the folder {}", folder.display()), &error))?;
    let mut file = Output::create(&folder.join(name))?;
    if let Some(link) = link {
        file.put(&pcap::header(link));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_can::candump;
    use std::fs;

    #[test]
    fn every_frame_of_a_bus_is_in_both_files() {
        let folder = std::env::temp_dir().join(format!("captures-{}", std::process::id()));
        let bus = CanBus::busy(2).unwrap();
        let (pcap, candump) = (Some(folder.clone()), Some(folder.clone()));
        let request = Request { pcap, candump, ..Request::default() };
        let mut captures = Captures::begin(&request, 1, &[(3, bus.clone())]).unwrap();
        bus.advance(Nanos::from_millis(20));
        captures.frames();
        bus.advance(Nanos::from_millis(40));
        captures.finish().unwrap();
        let log = fs::read_to_string(folder.join("can3.log")).unwrap();
        let records: Vec<Record<'_>> = log.lines().map(|l| candump::parse(l).unwrap()).collect();
        assert!(records.len() > 40 && records.iter().all(|record| record.interface == "can3"));
        assert!(records.windows(2).all(|pair| pair[0].time < pair[1].time));
        assert!(records.iter().all(|record| record.time.0.is_multiple_of(1_000)));
        let length = |name: &str| fs::metadata(folder.join(name)).unwrap().len();
        assert_eq!(length("can3.pcap"), 24 + 32 * records.len() as u64);
        assert_eq!(length("usb0.pcap"), 24);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told() {
        let file = std::env::temp_dir().join(format!("no-folder-{}", std::process::id()));
        fs::write(&file, "").unwrap();
        let request = Request { pcap: Some(file.join("below")), ..Request::default() };
        let refused = Captures::begin(&request, 1, &[]).err().unwrap();
        assert_eq!(refused.exit_code(), 4);
        fs::remove_file(&file).unwrap();
    }
}
