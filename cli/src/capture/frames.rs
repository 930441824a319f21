//! The frames of one CAN bus, in a file of each format that is wanted.

use super::CaptureRequest;
use super::output::Output;
use crate::failure::Failure;
use diapason_abi::Nanos;
use diapason_can::candump::{LineContent, LogLine};
use diapason_capture::blf::BlfWriter;
use diapason_capture::log::LogEntry;
use diapason_capture::pcap::{self, LinkType};
use diapason_capture::{asc, can};
use diapason_devices::can::CanBus;

/// The format of a file, with what its writer has to remember.
enum Format {
    Pcap,
    Candump,
    Asc,
    Blf(BlfWriter),
}

impl Format {
    /// Returns what a file of this format begins with.
    fn header(&self) -> Vec<u8> {
        match self {
            Format::Pcap => pcap::header(LinkType::Can).into(),
            Format::Candump => Vec::new(),
            Format::Asc => asc::HEADER.into(),
            Format::Blf(writer) => writer.header().into(),
        }
    }

    /// Returns the bytes of the file for a frame.
    fn frame(&mut self, interface: &str, entry: &LogEntry) -> Vec<u8> {
        let (time, report) = (entry.time, entry.report);
        match self {
            Format::Pcap => pcap::packet(time, &can::bytes(&report)),
            Format::Candump => {
                // candump's own tools take any fraction of a second for microseconds.
                let time = Nanos(time.0 / 1_000 * 1_000);
                format!("{}\n", LogLine { time, interface, report }).into()
            }
            Format::Asc => asc::line(entry).into(),
            Format::Blf(writer) => writer.put(entry).unwrap_or_default(),
        }
    }
}

/// The files of one bus.
pub(super) struct Frames {
    bus: CanBus,
    number: usize,
    files: Vec<(Output, Format)>,
}

impl Frames {
    /// Makes the files that are wanted of the bus of this channel. Its frames are recorded from now
    /// on.
    ///
    /// # Errors
    /// If a folder or a file cannot be made.
    pub fn begin(request: &CaptureRequest, number: usize, bus: &CanBus) -> Result<Frames, Failure> {
        let wanted = [
            (&request.pcap, "pcap", Format::Pcap),
            (&request.candump, "log", Format::Candump),
            (&request.asc, "asc", Format::Asc),
            (&request.blf, "blf", Format::Blf(BlfWriter::default())),
        ];
        let mut files = Vec::new();
        for (folder, ending, format) in wanted {
            if let Some(folder) = folder {
                let mut file = super::create(folder, &format!("can{number}.{ending}"))?;
                file.put(&format.header());
                files.push((file, format));
            }
        }
        bus.record(usize::MAX);
        Ok(Frames { bus: bus.clone(), number, files })
    }

    /// Writes the frames that went over the bus since the last call.
    pub fn write(&mut self) {
        let interface = format!("can{}", self.number);
        let channel = u16::try_from(self.number + 1).unwrap_or(u16::MAX);
        for sent in self.bus.take_record() {
            let entry =
                LogEntry { time: sent.time, channel, report: LineContent::Frame(sent.frame) };
            for (file, format) in &mut self.files {
                file.put(&format.frame(&interface, &entry));
            }
        }
    }

    /// Writes what is left, and the ends of the files.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.write();
        for (mut file, format) in self.files {
            match format {
                Format::Pcap | Format::Candump => {}
                Format::Asc => file.put(asc::FOOTER.as_bytes()),
                Format::Blf(mut writer) => {
                    let (last, header) = writer.finish();
                    file.put(&last.unwrap_or_default());
                    file.replace_beginning(&header);
                }
            }
            file.finish()?;
        }
        Ok(())
    }
}
