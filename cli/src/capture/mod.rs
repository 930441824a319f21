//! Captures of a run: USB transfers and CAN frames in files that Wireshark reads, CAN frames as
//! candump and Vector's tools write them.
//!
//! | file | topic |
//! |---|---|
//! | `frames` | the frames of one CAN bus, in every format |
//! | `output` | one file, written as the run goes on |
//! | `simulated` | transfers as the model of a controller tells them |
//! | `redirected` | transfers as the devices behind QEMU are asked and answer |

mod frames;
mod output;
mod redirected;
mod simulated;

pub use redirected::Redirection;
pub use simulated::event;

use crate::failure::Failure;
use diapason_abi::Nanos;
use diapason_capture::pcap::{self, LinkType};
use diapason_capture::{ReorderBuffer, usb};
use diapason_devices::can::CanBus;
use diapason_sim::FrameTap;
use frames::Frames;
use output::Output;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The wishes of tools of the host: captures of a run, and a server for clients.
#[derive(Clone, PartialEq, Eq, Debug, Default, clap::Args)]
pub struct CaptureRequest {
    /// Capture USB transfers and CAN frames for Wireshark, into this folder.
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Write CAN frames as candump does, a file for each bus, into this folder.
    #[arg(long, value_name = "DIR")]
    pub candump: Option<PathBuf>,
    /// Write CAN frames as ASC, the text format of Vector's tools, into this folder.
    #[arg(long, value_name = "DIR")]
    pub asc: Option<PathBuf>,
    /// Write CAN frames as BLF, the binary format of Vector's tools, into this folder.
    #[arg(long, value_name = "DIR")]
    pub blf: Option<PathBuf>,
    /// Serve the CAN buses at this address, such as 127.0.0.1:29536, to clients of socketcand; the
    /// run is then no faster than real time.
    #[arg(long, value_name = "ADDR:PORT")]
    pub can_server: Option<SocketAddr>,
}

impl CaptureRequest {
    /// Returns the same captures in a folder of this name within each folder.
    #[must_use]
    pub fn within(self, name: &str) -> CaptureRequest {
        let CaptureRequest { pcap, candump, asc, blf, can_server } = self;
        let [pcap, candump, asc, blf] =
            [pcap, candump, asc, blf].map(|folder| folder.map(|folder| folder.join(name)));
        CaptureRequest { pcap, candump, asc, blf, can_server }
    }

    /// Returns whether a capture is wanted.
    #[must_use]
    pub fn is_some(&self) -> bool {
        [&self.pcap, &self.candump, &self.asc, &self.blf].into_iter().any(Option::is_some)
    }
}

/// The files of one run.
pub struct Captures {
    usb: Vec<(Output, ReorderBuffer<Vec<u8>>)>,
    can: Vec<Frames>,
    adapters: Vec<AdapterCapture>,
}

/// The file of an adapter for Ethernet.
struct AdapterCapture {
    file: Output,
    order: ReorderBuffer<Vec<u8>>,
    tap: FrameTap,
    /// When the frames were looked at last. None of before will come any more at the next look.
    looked: Nanos,
}

impl AdapterCapture {
    fn begin(folder: &Path, number: usize, tap: &FrameTap) -> Result<AdapterCapture, Failure> {
        let mut file = create(folder, &format!("eth{number}.pcap"))?;
        file.put(&pcap::header(LinkType::Ethernet));
        tap.record();
        let order = ReorderBuffer::default();
        Ok(AdapterCapture { file, order, tap: tap.clone(), looked: Nanos::ZERO })
    }

    /// Takes in the frames that passed.
    fn take(&mut self) {
        for frame in self.tap.take() {
            self.order.push(frame.at, pcap::packet(frame.at, &frame.bytes));
        }
    }

    fn look(&mut self, now: Nanos) {
        self.take();
        let looked = std::mem::replace(&mut self.looked, now);
        self.order.before(looked).iter().for_each(|packet| self.file.put(packet));
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.take();
        self.order.rest().iter().for_each(|packet| self.file.put(packet));
        self.file.finish()
    }
}

impl Captures {
    /// Empty files for the transfers of so many controllers, for the frames of these buses, each
    /// with the number of its channel, and for those of these adapters. They are recorded from now
    /// on.
    ///
    /// # Errors
    /// If a folder or a file cannot be made.
    pub fn begin(
        request: &CaptureRequest,
        controllers: usize,
        buses: &[(usize, CanBus)],
        adapters: &[FrameTap],
    ) -> Result<Captures, Failure> {
        let mut captures = Captures { usb: Vec::new(), can: Vec::new(), adapters: Vec::new() };
        if let Some(folder) = &request.pcap {
            for number in 0..controllers {
                let mut file = create(folder, &format!("usb{number}.pcap"))?;
                file.put(&pcap::header(LinkType::Usb));
                captures.usb.push((file, ReorderBuffer::default()));
            }
            for (number, tap) in adapters.iter().enumerate() {
                captures.adapters.push(AdapterCapture::begin(folder, number, tap)?);
            }
        }
        for (number, bus) in buses {
            captures.can.push(Frames::begin(request, *number, bus)?);
        }
        Ok(captures)
    }

    /// A transfer of a controller began or ended.
    pub fn usb(&mut self, controller: usize, event: &usb::UsbmonEvent<'_>) {
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

    /// Writes the frames that went over the buses, and by the adapters, since the last call.
    pub fn frames(&mut self, now: Nanos) {
        self.can.iter_mut().for_each(Frames::write);
        self.adapters.iter_mut().for_each(|adapter| adapter.look(now));
    }

    /// The end of the run; the files are complete.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(self) -> Result<(), Failure> {
        for (mut file, mut order) in self.usb {
            order.rest().iter().for_each(|packet| file.put(packet));
            file.finish()?;
        }
        self.adapters.into_iter().try_for_each(AdapterCapture::finish)?;
        self.can.into_iter().try_for_each(Frames::finish)
    }
}

fn create(folder: &Path, name: &str) -> Result<Output, Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::io(format!("make the folder {}", folder.display()), &error))?;
    Output::create(&folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_can::candump::{self, LogLine};
    use std::fs;

    #[test]
    fn every_frame_of_a_bus_is_in_all_files() {
        let folder = std::env::temp_dir().join(format!("captures-{}", std::process::id()));
        let bus = CanBus::busy(2).unwrap();
        let [pcap, candump, asc, blf] = [(); 4].map(|()| Some(folder.clone()));
        let request = CaptureRequest { pcap, candump, asc, blf, can_server: None };
        let mut captures = Captures::begin(&request, 1, &[(3, bus.clone())], &[]).unwrap();
        bus.advance(Nanos::from_millis(20));
        captures.frames(Nanos(1));
        bus.advance(Nanos::from_millis(40));
        captures.finish().unwrap();
        let log = fs::read_to_string(folder.join("can3.log")).unwrap();
        let records: Vec<LogLine<'_>> = log.lines().map(|l| candump::parse(l).unwrap()).collect();
        assert!(records.len() > 40 && records.iter().all(|record| record.interface == "can3"));
        assert!(records.windows(2).all(|pair| pair[0].time < pair[1].time));
        assert!(records.iter().all(|record| record.time.0.is_multiple_of(1_000)));
        // The logs of Vector's tools say the same; one has nanoseconds.
        for (name, unit) in [("can3.asc", 1_000), ("can3.blf", 1)] {
            let other = crate::logs::text(fs::read(folder.join(name)).unwrap()).unwrap();
            let other: Vec<LogLine<'_>> =
                other.lines().map(|l| candump::parse(l).unwrap()).collect();
            assert_eq!(other.len(), records.len());
            for (other, record) in other.iter().zip(&records) {
                assert_eq!((other.interface, other.report), ("can3", record.report));
                let late = other.time.0 - record.time.0;
                assert!(late < 1_000 && other.time.0 % unit == 0, "{name}: {other}");
            }
        }
        let length = |name: &str| fs::metadata(folder.join(name)).unwrap().len();
        assert_eq!(length("can3.pcap"), 24 + 32 * records.len() as u64);
        assert_eq!(length("usb0.pcap"), 24);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told() {
        let file = std::env::temp_dir().join(format!("no-folder-{}", std::process::id()));
        fs::write(&file, "").unwrap();
        let request =
            CaptureRequest { pcap: Some(file.join("below")), ..CaptureRequest::default() };
        let refused = Captures::begin(&request, 1, &[], &[]).err().unwrap();
        assert_eq!(refused.exit_code(), 4);
        fs::remove_file(&file).unwrap();
    }
}
