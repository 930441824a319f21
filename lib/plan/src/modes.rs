//! The modes of operation: whether what streams in each of them fits on its bus, and whether every
//! guarantee is kept in each mode and in each change between two.
//!
//! The server gives slots to devices in the order in which they come. A stream is therefore charged
//! in every slot, so it never matters which slots it has, and a change has no reason to move one.
//! A stream with another setting is another stream: the camera stops, and starts anew.
//!
//! Not here: how long a change takes. No description has the time that a camera takes for a
//! control transfer and to its first interval, or a controller for a command.

use crate::beside::{self, Beside, called, configurations, model};
use crate::human;
use diapason_bus::{
    Async, BusInstance, Criticality, EndpointId, ModePlan, NoModes, PeriodicEndpoint, Picos,
    Promise, Speed, plan_modes,
};
use diapason_contract::settings::PROGRAM;
use diapason_system::{Diagnostics, ModeCamera, Place, System};
use diapason_usb::class::uvc;
use diapason_usb::descriptor::{Configuration, EndpointDescriptor};

/// A stream's number: that of its camera's first endpoint, this, and the number of its setting. No
/// address of an endpoint lies between this and twice this.
const STREAMS: u32 = 0x10;

/// The modes of a bus with cameras that modes start and stop.
#[derive(Clone, Debug)]
pub struct ModedBus {
    /// The number of the controller.
    pub controller: usize,
    pub bus: BusInstance,
    /// Every stream of any mode, once.
    pub streams: Vec<CameraStream>,
    /// The streams of each mode: places in `streams`.
    pub runs: Vec<Vec<usize>>,
    /// The schedules of the modes, or why there are none.
    pub plan: Result<ModePlan, NoModes>,
    asyncs: Vec<Async>,
}

/// A camera with one of its settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CameraStream {
    /// The place of the camera in [`System::usb`].
    pub usb: usize,
    /// Bytes that the setting has in an interval.
    pub bytes: u32,
    /// Number of the setting.
    pub alternate: u8,
    endpoint: PeriodicEndpoint,
    /// The endpoint that the camera has for all of its settings.
    video: EndpointId,
}

/// A change between two modes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The numbers of the two modes, the lower one first.
    pub modes: (usize, usize),
    /// Places of streams that only the first has, both have, and only the second has.
    pub stops: Vec<usize>,
    pub stays: Vec<usize>,
    pub starts: Vec<usize>,
}

/// The modes of a system, or why a camera cannot be what a mode says.
pub type Modes = Result<Vec<ModedBus>, Vec<Diagnostics>>;

/// Returns the modes of every bus with cameras; none without modes.
///
/// # Errors
/// Every camera that cannot send what a mode says.
pub fn modes(system: &System) -> Modes {
    let mut chosen: Vec<(usize, CameraStream, usize, Speed)> = Vec::new();
    let mut wrong = Vec::new();
    for (mode, spec) in system.modes.iter().enumerate() {
        for (place, camera) in spec.cameras.iter().enumerate() {
            match choice(system, camera) {
                Ok((stream, speed)) => {
                    chosen.push((mode, stream, system.usb[camera.usb].device, speed));
                }
                Err([title, help]) => {
                    let at = Place::ModeCamera(mode as u16, place as u16);
                    wrong.push(system.problem(at, [&title, "", "", &help]));
                }
            }
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut buses: Vec<(usize, Speed)> = Vec::new();
    for (.., controller, speed) in &chosen {
        if !buses.contains(&(*controller, *speed)) {
            buses.push((*controller, *speed));
        }
    }
    let of = |(controller, speed): (usize, Speed)| {
        let its = chosen.iter().filter(|it| (it.2, it.3) == (controller, speed));
        let its: Vec<(usize, CameraStream)> = its.map(|it| (it.0, it.1)).collect();
        ModedBus::of(system, controller, speed, &its)
    };
    Ok(buses.into_iter().map(of).collect())
}

/// Returns the stream of a camera with so many bytes in an interval, as the server chooses it, and
/// the speed of its bus.
fn choice(system: &System, camera: &ModeCamera) -> Result<(CameraStream, Speed), [String; 2]> {
    let (usb, plug) = (camera.usb, &system.usb[camera.usb]);
    let name = &plug.name;
    let unknown = || {
        let title = format!("nothing is known of the settings of `{name}`");
        [title, "take a camera that there is a model of".to_owned()]
    };
    let mut device = model(plug.model).ok_or_else(unknown)?;
    let (speed, all) = (device.speed(), configurations(&mut *device));
    let first = all.first().ok_or_else(unknown)?;
    let set = Configuration::parse_once(first, speed).map_err(|_| unknown())?;
    let settings: Vec<(u8, EndpointDescriptor)> = uvc::settings(&set).collect();
    let most = settings.iter().map(|(_, end)| end.interval_bytes).max().ok_or_else(unknown)?;
    let enough = settings.iter().enumerate().filter(|(_, it)| it.1.interval_bytes >= camera.bytes);
    let Some((place, (alternate, end))) = enough.min_by_key(|(_, it)| it.1.interval_bytes) else {
        let title =
            format!("`{name}` sends at most {most} bytes in an interval, not {}", camera.bytes);
        return Err([title, format!("write at most `bytes = {most}`")]);
    };
    let pictures = uvc::modes(&set).map(|picture| picture.interval_bytes());
    if let Some(least) = pictures.min().filter(|least| *least > end.interval_bytes.into()) {
        let bytes = end.interval_bytes;
        let title = format!("`{name}` has no picture that takes at most {bytes} bytes an interval");
        return Err([title, format!("write at least `bytes = {least}`")]);
    }
    let id = EndpointId(beside::first_of(usb) + STREAMS + place as u32);
    let endpoint = end.periodic(id, Criticality::High, 1).ok_or_else(unknown)?;
    let (alternate, bytes) = (*alternate, end.interval_bytes);
    let video = EndpointId(beside::first_of(usb) + u32::from(end.address));
    Ok((CameraStream { usb, bytes, alternate, endpoint, video }, speed))
}

impl ModedBus {
    /// Returns the modes of a bus. `chosen` has the streams, each with the number of its mode.
    fn of(
        system: &System,
        controller: usize,
        speed: Speed,
        chosen: &[(usize, CameraStream)],
    ) -> ModedBus {
        let Beside { bus, mut periodic, asyncs, .. } = Beside::of(system, controller, None, speed);
        let (mut streams, mut runs) = (Vec::new(), vec![Vec::new(); system.modes.len()]);
        for (mode, stream) in chosen {
            let place = streams.iter().position(|known| known == stream).unwrap_or_else(|| {
                streams.push(*stream);
                streams.len() - 1
            });
            runs[*mode].push(place);
        }
        // A camera streams in modes only, with what they say.
        let is_video = |end: &PeriodicEndpoint| streams.iter().any(|stream| stream.video == end.id);
        periodic.retain(|end| !is_video(end));
        let always: Vec<EndpointId> = periodic.iter().map(|end| end.id).collect();
        periodic.extend(streams.iter().map(|stream| stream.endpoint));
        let ids = |places: &Vec<usize>| {
            let own = places.iter().map(|place| streams[*place].endpoint.id);
            always.iter().copied().chain(own).collect::<Vec<EndpointId>>()
        };
        let all: Vec<Vec<EndpointId>> = runs.iter().map(ids).collect();
        let all: Vec<&[EndpointId]> = all.iter().map(Vec::as_slice).collect();
        let plan = plan_modes(&bus, &periodic, &asyncs, &all);
        ModedBus { controller, bus, streams, runs, plan, asyncs }
    }

    /// Returns every pair of modes, the first with the lower number.
    #[must_use]
    pub fn changes(&self) -> Vec<Changed> {
        let pairs = (0..self.runs.len()).flat_map(|to| (0..to).map(move |from| (from, to)));
        let change = |(from, to): (usize, usize)| {
            let has = |mode: usize, place: &usize| self.runs[mode].contains(place);
            let of = |before: bool, after: bool| {
                let is = |place: &usize| (has(from, place), has(to, place)) == (before, after);
                (0..self.streams.len()).filter(is).collect()
            };
            let (stops, stays, starts) = (of(true, false), of(true, true), of(false, true));
            Changed { modes: (from, to), stops, stays, starts }
        };
        pairs.map(change).collect()
    }

    /// Returns the most that periodic endpoints take of a slot in each mode.
    #[must_use]
    pub fn fullest(&self) -> Vec<Picos> {
        let modes = self.plan.iter().flat_map(|plan| &plan.modes);
        let fullest = |load: &[Picos]| load.iter().copied().max().unwrap_or_default();
        modes.map(|mode| fullest(&mode.load)).collect()
    }

    /// Returns whether each mode and each change keeps every promise.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.plan.is_ok() && self.late().is_none()
    }

    /// Returns the first promise that breaks if the order of the round robin is not the one of the
    /// description, with the number of its mode.
    fn late(&self) -> Option<(usize, Promise)> {
        let plan = self.plan.as_ref().ok()?;
        let of_modes = plan.modes.iter().enumerate();
        let of_modes =
            of_modes.flat_map(|(mode, plan)| plan.promises.iter().map(move |it| (mode, it)));
        let of_changes = plan.changes.iter();
        let of_changes =
            of_changes.flat_map(|change| change.promises.iter().map(|it| (change.modes.1, it)));
        let limit = |it: &Promise| self.bus.speed.slot().times(u64::from(it.guarantee.period));
        let is_late = |it: &Promise| it.any_order.is_none_or(|time| time > limit(it));
        let mut late = of_modes.chain(of_changes).filter(|(_, it)| is_late(it));
        late.next().map(|(mode, promise)| (mode, *promise))
    }

    /// Returns whether a pause of so many ns between two changes is as long as is proved.
    #[must_use]
    pub fn is_rested(&self, pause: u64) -> bool {
        let slots = self.plan.as_ref().map_or(0, |plan| plan.rest);
        self.bus.speed.slot().times(slots.into()) <= Picos(pause).times(1_000)
    }

    /// Returns the refusal of a bus whose modes do not hold, or change too soon.
    fn refusal(&self, system: &System) -> Option<Diagnostics> {
        let mut servers = system.processes.iter().filter(|it| it.program == PROGRAM);
        if let Some(server) = servers.find(|it| !self.is_rested(system.rest_of_modes(it))) {
            let title = format!("`{}` changes modes sooner than is proved", server.name);
            let help = "remove the longest `within` of an `[[endpoint]]`, or all `[[mode]]`";
            return Some(system.problem(Place::Mode(0), [&title, "", "", help]));
        }
        let name = |id: EndpointId| self.name(system, id);
        let mode_name = |mode: usize| system.modes.get(mode).map_or("", |mode| &mode.name);
        let (mode, title, help) = match &self.plan {
            Ok(_) => {
                let (mode, promise) = self.late()?;
                let (of, bytes) = (name(promise.id), promise.guarantee.bytes);
                let limit = self.bus.speed.slot().times(u64::from(promise.guarantee.period));
                let title = format!(
                    "mode `{}` breaks a guarantee: {bytes} bytes of {of} may take longer than {}, \
                     whatever the order of endpoints",
                    mode_name(mode),
                    human(limit.0 / 1_000)
                );
                (mode, title, "write a longer `within`, or fewer `bytes` of a camera".to_owned())
            }
            Err(NoModes::Mode { mode, refusal }) => {
                let (why, of) = (refusal.why(name), name(refusal.id));
                let title = format!("mode `{}` does not fit: {of}: {why}", mode_name(*mode));
                let help = "write fewer `bytes` for a camera of this mode, or move one to another \
                            mode";
                (*mode, title, help.to_owned())
            }
            Err(NoModes::Change { modes: (from, to), endpoint }) => {
                let title = format!(
                    "no slots of {} suit the change between `{}` and `{}`",
                    name(*endpoint),
                    mode_name(*from),
                    mode_name(*to)
                );
                (*to, title, "write fewer `bytes` for a camera of one of them".to_owned())
            }
            Err(NoModes::Nonsense(nonsense)) => {
                let (title, help) = nonsense.describe(name);
                (0, title, help)
            }
        };
        Some(system.problem(Place::Mode(mode as u16), [&title, "", "", &help]))
    }

    /// Returns an endpoint in a sentence.
    fn name(&self, system: &System, id: EndpointId) -> String {
        match self.streams.iter().find(|stream| stream.endpoint.id == id) {
            Some(stream) => {
                format!("`{}` with {} bytes", system.usb[stream.usb].name, stream.bytes)
            }
            None => called(system, id),
        }
    }

    /// Returns each guarantee with its longest time in a mode or a change, in any order.
    #[must_use]
    pub fn worst(&self) -> Vec<(EndpointId, Option<Picos>)> {
        let Ok(plan) = &self.plan else { return Vec::new() };
        let of_modes = plan.modes.iter().flat_map(|mode| &mode.promises);
        let all: Vec<&Promise> =
            of_modes.chain(plan.changes.iter().flat_map(|change| &change.promises)).collect();
        let guaranteed = self.asyncs.iter().filter(|it| it.guarantee.is_some());
        let worst = |it: &Async| {
            let own = all.iter().filter(|promise| promise.id == it.id);
            own.map(|promise| promise.any_order).collect::<Option<Vec<Picos>>>()?.into_iter().max()
        };
        guaranteed.map(|it| (it.id, worst(it))).collect()
    }
}

/// Returns the refusals of modes.
pub(crate) fn refusals(modes: &Modes, system: &System) -> Vec<Diagnostics> {
    match modes {
        Err(wrong) => wrong.clone(),
        Ok(buses) => buses.iter().filter_map(|bus| bus.refusal(system)).collect(),
    }
}
