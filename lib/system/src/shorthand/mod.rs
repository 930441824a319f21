//! `[usbd]`: the USB server in a line.
//!
//! The table stands for everything that the server needs in a description: its process, the VCPUs
//! of its threads, their works, the controller, and memory. All of it follows from the `[[usb]]`
//! devices, from the pipes, and from the tables of `diapason-contract`. It is written as TOML and
//! read like everything else, so every rule holds for it. A key that the description has itself
//! stays as it is.

mod insert;
mod objects;
mod threads;

pub(crate) use insert::insert;

use crate::cores;
use crate::declared::{AskedServer, Declared, DeclaredUsb};
use crate::diagnostics::Report;
use crate::limits::PAGE_BYTES;
use crate::read;
use crate::settings;
use crate::source::At;
use crate::table::{Raw, Table};
use crate::{pipe, plugged::UsbModel, sources, usb};
use diapason_abi::PRIORITIES;
use diapason_abi::archive::STACK_BYTES_MAX;
use diapason_abi::layout::HEAP_PAGES_MAX;
use diapason_contract::can::{CanInterface, INTERFACES};
use diapason_contract::mode::MODES;
use diapason_contract::needs::CONTROLLER;
use diapason_contract::settings::{CLIENTS, CRITICAL, MOST, PROGRAM, SERVES, SETTINGS, STREAMS};
use diapason_contract::source::SHAPES;
use diapason_contract::threads::{ServiceKind, services};
use toml::Spanned;
use toml::de::DeTable;

pub(crate) const KEY: &str = "usbd";

/// The keys of `[usbd]` that its process gets as they are.
const OWN: [&str; 7] = ["core", "priority", "heap", "stack", "restart", "backoff", "supervisor"];

/// A key that `[usbd]` brings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Brought {
    /// The list of the item, such as `vcpu`, and the name of the item.
    pub list: &'static str,
    pub name: String,
    pub key: &'static str,
    /// The line in the description: `key = value`.
    pub line: String,
    /// The reason for the value.
    pub why: String,
}

/// Reads the table: keys of the server's process, and its settings.
pub(crate) fn read(raw: Raw<'_>, report: &mut Report) -> AskedServer {
    let mut table = Table::new("[usbd]", "server", raw, report);
    let name = At::new(PROGRAM.to_owned(), table.place());
    let known = SETTINGS.iter().filter_map(|known| settings::one(&mut table, known));
    let settings = known.map(|(name, all)| (name, all.iter().map(|it| it.value).collect()));
    let settings = settings.collect();
    let core = cores::place(&mut table, &name).value;
    table.number("priority", 0..=PRIORITIES as u64 - 1, "; larger is more urgent");
    table.size("heap", 0..=HEAP_PAGES_MAX * PAGE_BYTES);
    table.size("stack", PAGE_BYTES..=STACK_BYTES_MAX);
    let uses = table.texts("uses", "uses = [\"readings\"]");
    read::restart(&mut table);
    read::backoff(&mut table);
    read::supervisor(&mut table);
    table.report_unknown();
    AskedServer { core, settings, uses }
}

/// Returns all that the `[usbd]` of a description stands for, if it has one.
pub(crate) fn brought(table: &Spanned<DeTable<'_>>) -> Vec<Brought> {
    let mut declared = read::declarations(table, &mut Report::new());
    usb::number(&mut declared);
    let Some(asked) = declared.server.take() else { return Vec::new() };
    Server::new(&declared, &asked).brings()
}

/// Returns whether `[usbd]` would declare the controller of this name, which is not there.
pub(crate) fn would_bring(declared: &Declared, controller: &str) -> bool {
    let is_there = declared.devices.iter().any(|device| device.name.value == controller);
    controller == CONTROLLER && !is_there
}

/// The server of a description, while it is found out what it needs.
struct Server<'d> {
    declared: &'d Declared,
    asked: &'d AskedServer,
    /// Devices at its controller.
    plugs: Vec<&'d DeclaredUsb>,
    /// Settings that decide which threads it has: their names and numbers.
    settings: Vec<(&'static str, Vec<u64>)>,
}

impl<'d> Server<'d> {
    fn new(declared: &'d Declared, asked: &'d AskedServer) -> Server<'d> {
        let is_here = |usb: &&DeclaredUsb| {
            declared.controller_of(usb).is_some_and(|on| on.value == CONTROLLER)
        };
        let plugs = declared.usb.iter().filter(is_here).collect();
        let mut server = Server { declared, asked, plugs, settings: asked.settings.clone() };
        if server.setting(SERVES).is_empty() {
            let services = server.plugged();
            server.settings.push((SERVES, services));
        }
        let streams = server.streamed();
        server.settings.extend(streams);
        if !declared.modes.is_empty() {
            // No thread depends on what modes are.
            server.settings.push((MODES, vec![0; declared.modes.len()]));
        }
        let interfaces = server.interfaces().map(|(_, interface)| interface.word()).collect();
        server.settings.push((INTERFACES, interfaces));
        let shaped = |pipe| Some((pipe::number(declared, pipe)?, sources::shape(declared, pipe)));
        let shapes = settings::shapes(declared.pipes.iter().filter_map(shaped));
        server.settings.push((SHAPES, shapes));
        server
    }

    fn setting(&self, name: &str) -> &[u64] {
        let known = self.settings.iter().find(|(known, _)| *known == name);
        known.map_or(&[], |(_, numbers)| numbers)
    }

    /// Returns the settings for the streams of modes that the description does not have itself.
    fn streamed(&self) -> Vec<(&'static str, Vec<u64>)> {
        let is_camera = |usb: &&&DeclaredUsb| service(usb) == Some(ServiceKind::Cameras);
        let cameras = self.plugs.iter().filter(is_camera).count().min(MOST);
        let told = |name| self.asked.settings.iter().find(|(known, _)| *known == name);
        let streams = told(STREAMS).map_or(cameras, |(_, streams)| streams.len());
        if self.declared.modes.is_empty() || streams == 0 {
            return Vec::new();
        }
        let all = [(STREAMS, vec![1; streams]), (CRITICAL, (0..streams as u64).collect())];
        all.into_iter().filter(|(name, _)| told(name).is_none()).collect()
    }

    /// Returns the services for the devices that are plugged in. CAN alone is not said: a server
    /// that is told nothing serves it. Where there are modes, cameras are streams.
    fn plugged(&self) -> Vec<u64> {
        let models = || self.plugs.iter().filter_map(|usb| usb.model);
        let has_modes = !self.declared.modes.is_empty();
        let services = models().filter_map(UsbModel::service);
        let services = services.filter(|it| !has_modes || *it != ServiceKind::Cameras);
        let mut all: Vec<u64> = services.map(|it| it as u64).collect();
        all.extend(models().filter(|model| model.is_hub()).map(|_| ServiceKind::Hubs as u64));
        all.sort_unstable();
        all.dedup();
        if all == [ServiceKind::Can as u64] { Vec::new() } else { all }
    }

    /// Returns the words for what it serves.
    fn served(&self) -> Vec<&'static str> {
        services(&|name: &str| self.setting(name)).map(ServiceKind::word).collect()
    }

    /// Returns its CAN interfaces in their order, each with its device.
    fn interfaces(&self) -> impl Iterator<Item = (&'d DeclaredUsb, CanInterface)> + '_ {
        let interfaces = self.plugs.iter().filter(|usb| usb.model == Some(UsbModel::UsbCan));
        interfaces.filter_map(|usb| {
            let first = u8::try_from(usb.first_channel).ok()?;
            let channels = u8::try_from(usb::channels(usb)).ok()?;
            Some((*usb, CanInterface { first, channels }))
        })
    }

    /// Returns whether programs write to this interface, or may.
    fn is_written(&self, number: usize, usb: &DeclaredUsb, interface: CanInterface) -> bool {
        let is = |name: Option<&At<String>>| name.is_some_and(|it| it.value == usb.name.value);
        let mut pipes = self.declared.pipes.iter();
        let numbers = interface.numbers();
        let told = self.setting(CLIENTS).iter().any(|it| numbers.contains(&(*it as usize)));
        let tuned = self.declared.tpipes.iter().any(|place| !place.to.is_empty());
        told || tuned && number == 0
            || pipes.any(|pipe| pipe.is_to_device() && is(pipe.usb.as_ref()))
    }

    /// Returns all that the server needs, in the order in which a description has it.
    fn brings(&self) -> Vec<Brought> {
        let mut all = self.process();
        all.extend(self.vcpus());
        all.extend(self.controller());
        all.extend(self.memory());
        all.extend(self.works());
        all
    }
}

fn service(usb: &DeclaredUsb) -> Option<ServiceKind> {
    usb.model?.service()
}

/// Collects the keys of one item.
struct Item {
    list: &'static str,
    name: String,
    all: Vec<Brought>,
}

impl Item {
    fn new(list: &'static str, name: &str) -> Item {
        Item { list, name: name.to_owned(), all: Vec::new() }
    }

    /// Adds a key whose value is TOML already.
    fn key(mut self, key: &'static str, value: &str, why: &str) -> Item {
        let (line, why) = (format!("{key} = {value}"), why.to_owned());
        self.all.push(Brought { list: self.list, name: self.name.clone(), key, line, why });
        self
    }

    fn text(self, key: &'static str, value: &str, why: &str) -> Item {
        self.key(key, &format!("\"{value}\""), why)
    }
}

/// Returns texts as TOML lists them.
fn list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    format!("[{}]", quoted.join(", "))
}
