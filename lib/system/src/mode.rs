//! `[[mode]]`: which cameras stream in a mode of operation, and how much each of them sends.
//!
//! Cameras that do not fit on a bus together can share it if no mode has too many of them. The
//! planner proves each mode and each change between two. A USB server changes them (`moded`), so
//! [`crate::build`] refuses a system with modes and without one.

use crate::declared::{Declared, DeclaredCamera, DeclaredMode, DeclaredUsb};
use crate::diagnostics::{Problem, Report};
use crate::keys;
use crate::source::{At, Span};
use crate::suggest::nearest;
use crate::table::{Raw, Table};
use diapason_contract::threads::ServiceKind;

/// A mode of operation: the cameras that stream in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModeSpec {
    pub name: String,
    pub cameras: Vec<ModeCamera>,
}

/// A camera that streams in a mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModeCamera {
    /// The place of the camera in [`System::usb`](crate::System::usb).
    pub usb: usize,
    /// Most bytes that it sends in an interval.
    pub bytes: u32,
}

/// Most modes of a host.
const MODES_MAX: usize = 16;
/// Most bytes of an interval of any endpoint: three bursts of 16 packets.
const INTERVAL_MAX: u64 = 3 * 16 * 1024;

pub(crate) fn mode(raw: Raw<'_>, report: &mut Report) -> DeclaredMode {
    let mut table = Table::new("[[mode]]", "mode", raw, report);
    let name = keys::name(&mut table);
    let cameras = table.list("cameras");
    table.report_unknown();
    let cameras = cameras.into_iter().map(|raw| camera(raw, report)).collect();
    DeclaredMode { name, cameras }
}

fn camera(raw: Raw<'_>, report: &mut Report) -> DeclaredCamera {
    let mut table = Table::new("[[mode.cameras]]", "camera", raw, report);
    let place = table.place();
    let name = table.text("name", "name = \"front\"");
    table.needs("name", "add `name = \"front\"`: the `[[usb]]` that is the camera");
    let bytes = table.number("bytes", 1..=INTERVAL_MAX, " of an interval");
    table.needs("bytes", "add `bytes = 4096`: most bytes that it sends in an interval");
    table.report_unknown();
    DeclaredCamera { place, name, bytes }
}

pub(crate) fn check(declared: &Declared, report: &mut Report) {
    let Some(first) = declared.modes.first() else { return };
    if let Some(mode) = declared.modes.get(MODES_MAX) {
        let title = format!("{} modes, the most is {MODES_MAX}", declared.modes.len());
        let problem = Problem::new(&mode.name.span, title, "remove some, or merge some");
        report.push(problem.label("the first too many"));
    }
    if declared.cores.value > 1 {
        let title = "a host with several cores cannot have modes";
        report.push(Problem::new(&first.name.span, title, "write `cores = 1`"));
    }
    for (index, mode) in declared.modes.iter().enumerate() {
        once(&declared.modes[..index], mode, report);
        cameras(declared, mode, report);
    }
    piped(declared, report);
    // A misspelled name would be reported twice.
    if report.is_empty() {
        unused(declared, report);
    }
}

/// Reports a mode whose name another one has.
fn once(before: &[DeclaredMode], mode: &DeclaredMode, report: &mut Report) {
    let At { value, span } = &mode.name;
    if let Some(first) = before.iter().find(|other| other.name.value == *value) {
        let title = format!("the mode `{value}` is declared twice");
        let problem = Problem::new(span, title, "give each a name of its own");
        report.push(problem.with(&first.name.span, "first here"));
    }
}

/// Reports what is no camera, and cameras that a mode has twice.
fn cameras(declared: &Declared, mode: &DeclaredMode, report: &mut Report) {
    let named = mode.cameras.iter().filter_map(|camera| camera.name.as_ref());
    let named: Vec<&At<String>> = named.collect();
    for (index, At { value, span }) in named.iter().enumerate() {
        if let Some(first) = named[..index].iter().find(|other| other.value == *value) {
            let title = format!("mode `{}` has the camera `{value}` twice", mode.name.value);
            let problem = Problem::new(span, title, "remove one of the two");
            report.push(problem.with(&first.span, "first here"));
        }
        let plug = declared.usb.iter().find(|usb| usb.name.value == *value);
        if plug.is_none_or(|plug| plug.model.is_some() && !is_camera(plug)) {
            report.push(no_camera(declared, value, span));
        }
    }
}

fn no_camera(declared: &Declared, name: &str, span: &Span) -> Problem {
    let plug = declared.usb.iter().find(|usb| usb.name.value == name);
    let title = match plug.and_then(|plug| plug.model) {
        Some(model) => format!("`{name}` is no camera: its model is `{}`", model.name()),
        None => format!("no USB device named `{name}` is declared"),
    };
    let all: Vec<&str> = all_cameras(declared).map(|usb| &*usb.name.value).collect();
    let help = match (nearest(name, all.iter().copied()), all.first()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some(_)) => format!("name a camera: `{}`", all.join("`, `")),
        (None, None) => format!(
            "declare it: `[[usb]]` with `name = \"{name}\"`, `on`, and `model = \"camera\"`"
        ),
    };
    Problem::new(span, title, help)
}

fn is_camera(usb: &DeclaredUsb) -> bool {
    usb.model.and_then(|model| model.service()) == Some(ServiceKind::Cameras)
}

fn all_cameras(declared: &Declared) -> impl Iterator<Item = &DeclaredUsb> {
    declared.usb.iter().filter(|usb| is_camera(usb))
}

/// Reports cameras that stream in no mode.
fn unused(declared: &Declared, report: &mut Report) {
    for At { value, span } in all_cameras(declared).map(|usb| &usb.name) {
        let cameras = declared.modes.iter().flat_map(|mode| &mode.cameras);
        let mut names = cameras.filter_map(|camera| camera.name.as_ref());
        if !names.any(|name| name.value == *value) {
            let title = format!("no mode has the camera `{value}`");
            let help =
                format!("add `{{ name = \"{value}\", bytes = … }}` to the `cameras` of a mode");
            report.push(Problem::new(span, title, help));
        }
    }
}

/// Reports pipes from cameras, which modes stop.
fn piped(declared: &Declared, report: &mut Report) {
    for name in declared.pipes.iter().filter_map(|pipe| pipe.usb.as_ref()) {
        if all_cameras(declared).any(|usb| usb.name.value == name.value) {
            let title =
                format!("a pipe from the camera `{}`, which modes start and stop", name.value);
            let help = "remove the pipe, or all `[[mode]]`";
            report.push(Problem::new(&name.span, title, help));
        }
    }
}

/// Returns the modes, as far as they are whole.
pub(crate) fn modes(declared: &Declared) -> Vec<ModeSpec> {
    let camera = |camera: &DeclaredCamera| {
        let name = &camera.name.as_ref()?.value;
        let usb = declared.usb.iter().position(|usb| usb.name.value == *name)?;
        Some(ModeCamera { usb, bytes: u32::try_from(camera.bytes.as_ref()?.value).ok()? })
    };
    let mode = |mode: &DeclaredMode| ModeSpec {
        name: mode.name.value.clone(),
        cameras: mode.cameras.iter().filter_map(camera).collect(),
    };
    declared.modes.iter().map(mode).collect()
}

/// Returns the place of each mode's name, and of each of its cameras.
pub(crate) fn places(declared: &Declared) -> Vec<(Span, Vec<Span>)> {
    let camera = |camera: &DeclaredCamera| {
        camera.bytes.as_ref().map_or_else(|| camera.place.clone(), |bytes| bytes.span.clone())
    };
    let mode =
        |mode: &DeclaredMode| (mode.name.span.clone(), mode.cameras.iter().map(camera).collect());
    declared.modes.iter().map(mode).collect()
}
