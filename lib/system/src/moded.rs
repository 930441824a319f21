//! Modes at a USB server: what it is told of them, and what its part of the description needs.

use crate::diagnostics::Diagnostics;
use crate::mode::ModeCamera;
use crate::plugged::UsbBus;
use crate::system::{Place, ProcessSpec, Setting, System};
use diapason_bus::Speed;
use diapason_contract::mode::{ANSWERS, ASKS, MODES, REST};
use diapason_contract::needs::CONTROLLER;
use diapason_contract::settings::{CRITICAL, MOST, PROMISE, SERVES, STREAMS};
use diapason_contract::threads::ServiceKind;

/// Returns what a server is told of the modes, if it changes them.
pub(crate) fn settings(system: &System, process: &ProcessSpec) -> Vec<Setting> {
    let streamed = system.streamed(process);
    if system.modes.is_empty() || streamed.is_empty() {
        return Vec::new();
    }
    let words = system.modes.iter().map(|mode| {
        let stream = |plug: usize| streamed.iter().position(|camera| *camera == plug);
        let word = |it: &ModeCamera| Some(u64::from(it.bytes) << (16 * stream(it.usb)?));
        mode.cameras.iter().filter_map(word).sum()
    });
    let words: Vec<u64> = words.collect();
    vec![Setting::new(MODES, &words), Setting::new(REST, &[system.rest_of_modes(process)])]
}

impl System {
    /// Returns the cameras that have the streams of a server, in their order.
    fn streamed(&self, process: &ProcessSpec) -> Vec<usize> {
        let cameras = self.bound_cameras(process).into_iter().skip(self.watched_cameras(process));
        cameras.take(process.setting(STREAMS).len()).collect()
    }

    /// Returns the time that a server lets pass from one change to the next, in ns. A guaranteed
    /// transfer that began before a change is over by then, so none sees three modes.
    #[must_use]
    pub fn rest_of_modes(&self, process: &ProcessSpec) -> u64 {
        let drives = |bus: &&UsbBus| {
            let controller = self.devices.get(bus.device);
            controller.is_some_and(|it| process.uses.contains(&it.name))
        };
        let longest = |bus: &UsbBus| {
            let periods = bus.asyncs.iter().filter_map(|end| Some(end.guarantee?.period));
            // A transfer touches one slot more than its longest time has.
            let slots = periods.max().unwrap_or(0) + 1;
            bus.bus.speed.slot().times(slots.into()).0.div_ceil(1_000)
        };
        let slot = Speed::Super.slot().0.div_ceil(1_000);
        self.buses.iter().filter(drives).map(longest).fold(slot, u64::max)
    }

    /// Returns what a server lacks for the modes of the cameras.
    pub(crate) fn of_modes(&self, server: u16, process: &ProcessSpec) -> Vec<Diagnostics> {
        if self.modes.is_empty() {
            return Vec::new();
        }
        let mut found = self.without_stream(process);
        let name = &process.name;
        let mut say = |number: u16, title: String, help: String| {
            found.push(self.problem(Place::Process(number), [&title, "", "", &help]));
        };
        let streams = process.setting(STREAMS);
        if streams.iter().any(|times| *times != 1) {
            let ones = vec!["1"; streams.len()].join(", ");
            let title = format!("`{name}` stretches streams, and modes say what each one sends");
            say(server, title, format!("write `streams = [{ones}]`"));
        }
        let critical = process.setting(CRITICAL);
        let all = 0..self.streamed(process).len() as u64;
        if all.clone().any(|stream| !critical.contains(&stream)) {
            let all: Vec<String> = all.map(|stream| stream.to_string()).collect();
            let title = format!("`{name}` may refuse the streams of modes");
            say(server, title, format!("write `critical = [{}]`", all.join(", ")));
        }
        if !process.setting(PROMISE).is_empty() {
            let title = format!("nobody proves the `promise` of `{name}` while modes change");
            say(server, title, "remove `promise`, or all `[[mode]]`".to_owned());
        }
        let asks = |(_, it): &(u16, &ProcessSpec)| {
            it.name != *name && it.uses.iter().any(|used| [ASKS, ANSWERS].contains(&&**used))
        };
        if let Some((number, second)) = (0u16..).zip(&self.processes).filter(asks).nth(1) {
            let title = format!("`{}` is the second that asks for modes", second.name);
            let help = format!(
                "remove `\"{ASKS}\"` and `\"{ANSWERS}\"` from the `uses` of one: a pipe has one \
                 writer and one reader"
            );
            say(number, title, help);
        }
        found
    }

    /// Returns the cameras of modes that have no stream of a server, each once.
    fn without_stream(&self, process: &ProcessSpec) -> Vec<Diagnostics> {
        let (streamed, server) = (self.streamed(process), &process.name);
        let mut lacking: Vec<(usize, Place)> = Vec::new();
        for (mode, spec) in (0u16..).zip(&self.modes) {
            for (place, ModeCamera { usb, .. }) in (0u16..).zip(&spec.cameras) {
                let is_known = lacking.iter().any(|(known, _)| known == usb);
                if !streamed.contains(usb) && !is_known {
                    lacking.push((*usb, Place::ModeCamera(mode, place)));
                }
            }
        }
        let refusal = |(usb, at): (usize, Place)| {
            let plug = &self.usb[usb];
            let title = format!("`{server}` has no stream for `{}`, which modes start", plug.name);
            let controller = self.devices.get(plug.device);
            let help = if controller.is_some_and(|it| !process.uses.contains(&it.name)) {
                format!("write `on = \"{CONTROLLER}\"`: `{server}` drives no other controller")
            } else if self.watched_cameras(process) > 0 {
                format!(
                    "remove `\"cameras\"` from the `serves` of `{server}`: a client watches that \
                     camera, and modes start streams"
                )
            } else if streamed.len() == MOST {
                format!("remove it: a server has at most {MOST} streams")
            } else {
                "write a `1` for each camera in `streams` of its `[process.settings]`".to_owned()
            };
            self.problem(at, [&title, "", "", &help])
        };
        lacking.into_iter().map(refusal).collect()
    }

    /// Returns how many cameras of a server clients watch: each with a pipe, or the first.
    #[must_use]
    pub fn watched_cameras(&self, process: &ProcessSpec) -> usize {
        if !process.setting(SERVES).contains(&(ServiceKind::Cameras as u64)) {
            return 0;
        }
        let cameras = self.bound_cameras(process).into_iter();
        cameras.filter(|number| self.has_pipe(*number)).count().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const CARS: &str = include_str!("../../../examples/links/dx1100.toml");

    /// Returns four cameras that have modes, and one program that asks for them.
    fn text() -> String {
        let asks = format!("\"{ASKS}\", \"{}\"", diapason_contract::mode::ANSWERS);
        let four = |bytes: [u64; 4]| {
            let camera = |(number, bytes): (usize, u64)| {
                format!("{{ name = \"camera-{}\", bytes = {bytes} }}", number + 1)
            };
            let given = bytes.into_iter().enumerate().filter(|(_, bytes)| *bytes > 0);
            given.map(camera).collect::<Vec<_>>().join(", ")
        };
        let mut text = CARS.replace("uses = [\n", &format!("uses = [\n    {asks},\n"));
        text = text.replace("critical = [0] ", "critical = [0, 1, 2, 3]");
        text = text.replace("streams = [1, 2, 4, 8]", "streams = [1, 1, 1, 1]");
        for name in [ASKS, diapason_contract::mode::ANSWERS] {
            text += &format!("\n[[segment]]\nname = \"{name}\"\nsize = \"4K\"\n");
        }
        for (name, bytes) in [("a", [11_264, 1, 2, 3]), ("b", [33_792, 0, 0, 4])] {
            let cameras = four(bytes);
            text += &format!("\n[[mode]]\nname = \"{name}\"\ncameras = [{cameras}]\n");
        }
        text
    }

    fn said(text: &str) -> Vec<String> {
        let system = parse("f", text).unwrap_or_else(|found| panic!("{found}"));
        let found = system.unservable();
        let items = found.iter().flat_map(|one| one.items());
        items.map(|item| format!("{}: {}", item.title, item.help)).collect()
    }

    #[test]
    fn a_server_is_told_the_bytes_of_its_streams_and_the_rest() {
        let end = "\n[[endpoint]]\nname = \"e\"\non = \"xhci\"\ntype = \"bulk\"\n\
                   direction = \"in\"\npacket = 1024\nbytes = 8192\nwithin = 16\n";
        for (more, rest) in [("", 125_000), (end, 17 * 125_000)] {
            let system = parse("f", &(text() + more)).unwrap();
            let told = crate::settings::followed(&system);
            let words = [3 << 48 | 2 << 32 | 1 << 16 | 11_264, 4 << 48 | 33_792];
            assert_eq!(told.processes[0].setting(MODES), words);
            assert_eq!(told.processes[0].setting(REST), [rest]);
            assert_eq!(told.processes[1].setting(MODES), [0; 0]);
        }
        let system = parse("f", CARS).unwrap();
        assert_eq!(crate::settings::followed(&system).processes[0].setting(MODES), [0; 0]);
    }

    #[test]
    fn what_a_server_lacks_for_modes_is_named_with_a_remedy() {
        assert_eq!(said(&text()), [""; 0]);
        let lacks = |change: (&str, &str), what: &str| {
            let text = text();
            assert!(text.contains(change.0), "{}", change.0);
            let found = said(&text.replacen(change.0, change.1, 1));
            assert!(found.iter().any(|one| one.contains(what)), "{found:#?}");
        };
        lacks(("[1, 1, 1, 1]", "[1, 1, 1, 2]"), "write `streams = [1, 1, 1, 1]`");
        let three = text().replace("streams = [1, 1, 1, 1]", "streams = [1, 1, 1]");
        let found = said(&three.replace("[0, 1, 2, 3]", "[0, 1, 2]"));
        assert!(found[0].contains("no stream for `camera-4`"), "{found:#?}");
        lacks(("critical = [0, 1, 2, 3]", "critical = [0]"), "write `critical = [0, 1, 2, 3]`");
        lacks(("\"usb-mode.asks\", ", ""), "needs the segment `usb-mode.asks`");
        let two = text()
            + "\n[[process]]\nname = \"more\"\nprogram = \"spin\"\npriority = 1\n\
                            vcpu = \"route\"\nuses = [\"usb-mode.asks\"]\n";
        let found = said(&two);
        assert!(found.iter().any(|one| one.contains("is the second that asks")), "{found:#?}");
    }
}
