//! The controller that the server drives, and the objects that it shares.

use super::threads::interval;
use super::{Brought, Item, Server};
use crate::sources;
use crate::units::{show_duration, show_size};
use diapason_contract::camera::{self, CameraNames};
use diapason_contract::can;
use diapason_contract::disk::{self, DiskNames};
use diapason_contract::needs::{
    self, BUFFERS, CONTROLLER, Need, REGISTERS_BYTES, RINGS, RINGS_BYTES,
};
use diapason_contract::source::{PipeSource, SOURCES};
use diapason_contract::threads::{Home, homes, seats};
use diapason_contract::{link, stream};

/// The shortest time between two interrupts for the thread that manages.
const MANAGED: &str = "1990us";
/// Memory for the transfers of a service: as much as those of a CAN interface have, in whole pages.
const TRANSFERS: u64 = can::BUFFERS.next_multiple_of(4 << 10);
/// Segments that are no pages of records, and their usual size.
const SIZES: [(&str, u64); 5] = [
    (WATCHED.pieces, 12 << 10),
    (WATCHED.returned, 8 << 10),
    (WATCHED.data, 256 << 10),
    (ASKED_FOR.data, 128 << 10),
    (link::DATA, 384 << 10),
];
/// The objects of a camera without a pipe. Those of cameras with one come with it.
const WATCHED: CameraNames = camera::NAMES[0];
/// The objects of a disk without a pipe.
const ASKED_FOR: DiskNames = disk::NAMES[0];
/// The memory of a stream: 16 intervals.
const STREAMED: u64 = 1 << 20;

impl Server<'_> {
    pub(super) fn controller(&self) -> Vec<Brought> {
        let setting = |name: &str| self.setting(name);
        let intervals = homes(&setting).map(|home| show_duration(interval(home).0));
        let mut quoted = vec![format!("\"{MANAGED}\"")];
        quoted.extend(intervals.map(|interval| format!("\"{interval}\"")));
        Item::new("device", CONTROLLER)
            .text("pci", "0c0330", "a USB controller")
            .text("size", &show_size(REGISTERS_BYTES), "its registers")
            .key("irqs", &quoted.len().to_string(), "for managing, and for each bottom half")
            .key(
                "interval",
                &format!("[{}]", quoted.join(", ")),
                "a little shorter than the server asks for",
            )
            .all
    }

    /// Returns the segments and the semaphores that no pipe brings.
    pub(super) fn memory(&self) -> Vec<Brought> {
        let setting = |name: &str| self.setting(name);
        let all = homes(&setting).count() as u64;
        let interfaces = homes(&setting).filter(|home| home.work == can::HOME.work).count() as u64;
        let of_can = (interfaces * can::BUFFERS).next_multiple_of(4 << 10);
        let buffers = of_can + (all - interfaces) * TRANSFERS;
        let mut all = segment(RINGS, RINGS_BYTES, "contexts and rings").all;
        all.extend(segment(BUFFERS, buffers, "what transfers carry").all);
        for (need, name) in needs::needs(&setting).filter(|(_, name)| !self.comes_with_a_pipe(name))
        {
            match need {
                Need::Segment if ![RINGS, BUFFERS].contains(&name) => {
                    let is_stream = stream::DATA.contains(&name);
                    let why = if is_stream { "where a stream's bytes go" } else { SHARED };
                    all.extend(segment(name, size(name), why).all);
                }
                Need::Semaphore => {
                    let semaphore = Item::new("semaphore", name);
                    all.extend(semaphore.text("kind", "counting", SHARED).all);
                }
                _ => {}
            }
        }
        all
    }

    /// Returns whether a pipe brings the object of this name.
    pub(super) fn comes_with_a_pipe(&self, name: &str) -> bool {
        let pipes = self.declared.pipes.iter();
        let sources = pipes.filter_map(|pipe| sources::of(self.declared, pipe));
        sources.flat_map(PipeSource::objects).any(|object| object == name)
    }

    /// Returns the names of what the service with this bottom half shares.
    pub(super) fn shared_by(&self, home: &Home) -> Vec<&'static str> {
        let setting = |name: &str| self.setting(name);
        let own = seats(&setting).find(|(kind, seat)| kind.homes()[*seat].vcpu == home.vcpu);
        let segments = own.map_or(&[][..], |(kind, seat)| kind.segments(seat));
        segments.iter().copied().chain(home.asked).collect()
    }
}

const SHARED: &str = "the server and its clients share it";

fn segment(name: &str, bytes: u64, why: &str) -> Item {
    let segment = Item::new("segment", name).text("size", &show_size(bytes), why);
    if needs::is_for_devices(name) { segment.key("dma", "true", "devices use it") } else { segment }
}

/// Returns the usual size of a segment.
fn size(name: &str) -> u64 {
    if stream::DATA.contains(&name) {
        return STREAMED;
    }
    let of_pipe = SOURCES.iter().map(|source| source.pipe).find(|(pipe, _)| *pipe == name);
    let known = SIZES.iter().find(|(known, _)| *known == name).copied().or(of_pipe);
    known.map_or(4 << 10, |(_, bytes)| bytes)
}
