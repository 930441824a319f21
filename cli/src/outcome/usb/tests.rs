//! Reports of USB servers against the promises of a description.

use super::*;
use crate::console::Line;
use crate::outcome::{Assumptions, RunEnd, sample};
use crate::plan::Plan;
use crate::plan::start::found_within;
use diapason_abi::Nanos;
use diapason_abi::record::Record;
use diapason_pipe::measured::{
    CameraReport, DeviceReport, Fate, LinkReport, Measurement, ModeReport, ModeStep, Reported,
};

/// A server with two links, a disk at a port of a hub, a camera, and two streams of which the first
/// is critical; and a debug target. Nobody serves the keyboard.
const TEXT: &str = r#"
[system]
name = "s"
[[device]]
name = "xhci"
pci = "0c0330"
size = "16K"
[[process]]
name = "usb"
program = "usbd"
priority = 1
uses = ["xhci"]
[process.settings]
serves = ["disks", "cameras", "hubs"]
links = [0, 0]
streams = [1, 1]
critical = [0]
[[process]]
name = "target"
program = "dbcd"
priority = 1
[[usb]]
name = "hub"
on = "xhci"
port = 1
model = "hub"
[[usb]]
name = "stick"
behind = "hub"
port = 3
model = "disk"
serial = "ABC"
[[usb]]
name = "keyboard"
on = "xhci"
port = 2
model = "keyboard"
[[usb]]
name = "first"
on = "xhci"
port = 3
model = "camera"
[[usb]]
name = "second"
on = "xhci"
port = 4
model = "busy-camera"
[[usb]]
name = "third"
on = "xhci"
port = 5
model = "camera"
"#;

/// A run of so long, with what the first process said.
struct Ran {
    promised: UsbPromises,
    names: Names,
    outcome: Outcome,
}

impl Ran {
    fn new(time_ns: u64) -> Ran {
        let system = diapason_system::parse("s", TEXT).unwrap_or_else(|wrong| panic!("{wrong}"));
        let end = RunEnd { time_ns, ..RunEnd::default() };
        let (promised, names) = (UsbPromises::of(&system), Names::of(&system));
        Ran { promised, names, outcome: Outcome { end: Some(end), ..Outcome::default() } }
    }

    fn device(&mut self, connector: u8, route: u32, fate: Fate) {
        let report = DeviceReport { connector, route, identity: (0x46f4, 1), fate };
        note_device(&mut self.outcome.plugs, 0, &report);
    }

    fn link(&mut self, process: u64, number: u8, here: bool, came: u64) {
        let report = LinkReport { number, here, found: 1, came, sent: 0 };
        note_link(&mut self.outcome.links, process, 7_000_000, &report);
    }

    fn camera(&mut self, stream: bool, broken: u64, missed: u64) {
        let report = CameraReport { stream, whole: 9, broken, missed, ..CameraReport::default() };
        let at = Nanos::from_millis(500);
        note_camera(&mut self.outcome.cameras, 0, at, &report, &self.outcome.modes);
    }

    /// Returns a report in which everything is there and works.
    fn well(time_ns: u64) -> Ran {
        let mut ran = Ran::new(time_ns);
        for (connector, route) in [(1, 0), (1, 3), (3, 0), (4, 0)] {
            ran.device(connector, route, Fate::Works);
        }
        for (process, number) in [(0, 0), (0, 1), (1, 0)] {
            ran.link(process, number, true, 1);
        }
        ran.camera(false, 0, 0);
        ran.camera(true, 0, 0);
        ran
    }

    fn alarms(&self) -> Vec<(&'static str, String)> {
        let alarms = self.promised.alarms(&self.outcome, &self.names).into_iter();
        alarms.map(|alarm| (alarm.name, alarm.text)).collect()
    }

    fn unmeasured(&self) -> Vec<String> {
        self.promised.unmeasured(&self.outcome, &self.names)
    }
}

const SHORT: u64 = 1_000_000_000;
const LONG: u64 = 2_500_000_000;

#[test]
fn nothing_is_said_of_what_works() {
    let ran = Ran::well(LONG);
    assert_eq!((ran.alarms(), ran.unmeasured()), (vec![], vec![]));
}

#[test]
fn nothing_that_is_described_is_there() {
    let nobody = "never formed: no other computer was found";
    let expected = [
        format!("link 0 of usb {nobody}"),
        format!("link 1 of usb {nobody}"),
        format!("link 0 of target {nobody}"),
        "device hub was not served: nothing was found at port 1".into(),
        "device stick was not served: nothing was found at port 3 of hub".into(),
        "device first was not served: nothing was found at port 3".into(),
        "device second was not served: nothing was found at port 4".into(),
        "no frame of camera 0 of usb".into(),
        "no frame of stream 0 of usb".into(),
    ];
    let short = Ran::new(SHORT);
    assert_eq!((short.alarms(), &short.unmeasured()[..]), (vec![], &expected[..]));
    let long = Ran::new(LONG);
    assert_eq!(long.unmeasured(), expected);
    let names: Vec<_> = long.alarms().iter().map(|(name, _)| *name).collect();
    let kinds = [["link-absent"; 3].as_slice(), &["device-unserved"; 4], &["camera-empty"; 2]];
    assert_eq!(names, kinds.concat());
    // The same in a report of a run.
    let system = diapason_system::parse("s", TEXT).unwrap();
    let assumptions = Assumptions::of(&Plan::of(&system));
    let found = assumptions.against(&long.outcome, &long.names);
    assert_eq!(found.iter().filter(|alarm| kinds.concat().contains(&alarm.name)).count(), 9);
    assert_eq!(assumptions.unmeasured(&long.outcome, &long.names), expected);
}

#[test]
fn a_link_whose_other_side_is_silent_never_formed() {
    for (here, time, alarm) in [(false, LONG, true), (false, SHORT, false), (true, LONG, false)] {
        let mut ran = Ran::well(time);
        ran.link(0, 1, here, 0);
        let why = "link 1 of usb never formed in 2.500 s: the other side took nothing";
        let alarms = alarm.then(|| ("link-absent", why.to_owned()));
        assert_eq!(ran.alarms(), Vec::from_iter(alarms));
        let what = match here {
            true => "no message went over link 1 of usb",
            false => "link 1 of usb never formed: the other side took nothing",
        };
        assert_eq!(ran.unmeasured(), [what]);
    }
}

#[test]
fn a_link_that_was_away_for_a_time_is_told() {
    let mut ran = Ran::well(SHORT);
    let mut link = |at_ns, here, sent| {
        let report = LinkReport { number: 0, here, found: 1, came: 0, sent };
        note_link(&mut ran.outcome.links, 0, at_ns, &report);
    };
    link(1_000_000, true, 1);
    link(2_000_000, false, 1);
    link(3_000_000, true, 1);
    link(4_000_000, false, 1);
    link(5_000_000, true, 1);
    let (row, alarms) = (&ran.outcome.links[0], ran.alarms());
    assert_eq!((row.gone, row.first_gone), (2, Some((2_000_000, Some(3_000_000)))));
    assert!(alarms[0].1.ends_with("away from 2.000 ms to 3.000 ms, 2 times in all"), "{alarms:?}");
    assert_eq!((alarms.len(), alarms[0].0), (1, "link-gone"));
}

#[test]
fn a_link_that_is_away_at_the_end_is_told() {
    let mut ran = Ran::well(SHORT);
    ran.link(1, 0, false, 5);
    let text = "link 0 of target was away from 7.000 ms on".to_owned();
    assert_eq!(ran.alarms(), [("link-gone", text)]);
    assert_eq!(ran.unmeasured(), [""; 0]);
}

#[test]
fn a_refused_device_is_told_by_its_name_however_short_the_run() {
    let at = "the device 46f4:0001 at port 3 of hub";
    for (fate, why) in [
        (Fate::OtherSerial, format!("{at} has not the described serial number")),
        (Fate::Stranger, format!("{at} is not the described one")),
        (Fate::Unserved, format!("no service takes {at}")),
        (Fate::Failed, format!("{at} does not do what its class asks of it")),
        (Fate::Dead, "what is at port 3 of hub does not answer".into()),
        (
            Fate::Unconfigured,
            "there is no bandwidth or no memory for what is at port 3 of hub, or it refused".into(),
        ),
    ] {
        let mut ran = Ran::well(SHORT);
        ran.outcome.plugs.retain(|row| row.last.route == 0);
        ran.device(1, 3, fate);
        let text = format!("device stick was not served: {why}");
        assert_eq!(ran.alarms(), [("device-unserved", text.clone())]);
        assert_eq!(ran.unmeasured(), [text]);
        // A device that worked once was the described one.
        ran.device(1, 3, Fate::Works);
        ran.device(1, 3, fate);
        assert_eq!((ran.alarms(), ran.unmeasured()), (vec![], vec![]));
    }
}

/// No other camera stands for one that has a seat of its own.
#[test]
fn a_camera_whose_seat_is_empty_is_told_though_others_work() {
    let mut ran = Ran::well(LONG);
    ran.outcome.plugs.retain(|row| row.last.connector != 3);
    ran.device(5, 0, Fate::Works);
    let text = "device first was not served: nothing was found at port 3".to_owned();
    assert_eq!(ran.alarms(), [("device-unserved", text)]);
    // The third has a stream that is not critical.
    let mut ran = Ran::well(LONG);
    ran.device(5, 0, Fate::Unconfigured);
    assert_eq!(ran.alarms(), []);
}

#[test]
fn a_camera_that_loses_frames_is_told() {
    let mut ran = Ran::well(SHORT);
    ran.camera(false, 1, 3);
    let text = "1 of 10 frames of camera 0 of usb were not whole, and the data of 3 intervals \
                did not come";
    assert_eq!(ran.alarms(), [("camera-loss", text.to_owned())]);
    assert_eq!(ran.unmeasured(), [""; 0]);
}

#[test]
fn a_stream_that_breaks_off_is_told() {
    let mut ran = Ran::well(SHORT);
    let report = CameraReport { stream: true, whole: 9, breaks: 1, ..CameraReport::default() };
    note_camera(&mut ran.outcome.cameras, 0, Nanos(7), &report, &ran.outcome.modes);
    let text = "0 of 9 frames of stream 0 of usb were not whole, and the data of 0 intervals did \
                not come; stream 0 of usb broke off once, as its camera went away or failed";
    assert_eq!(ran.alarms(), [("camera-loss", text.to_owned())]);
}

#[test]
fn a_camera_that_leaves_out_a_frame_is_told() {
    let said = |late, period| {
        let mut ran = Ran::well(SHORT);
        let (period, late) = (Nanos(period), Nanos(late));
        let report = CameraReport { whole: 9, period, late, ..CameraReport::default() };
        note_camera(&mut ran.outcome.cameras, 0, Nanos(7), &report, &ran.outcome.modes);
        ran.alarms()
    };
    let text = "a frame of camera 0 of usb came 20.000 ms after its turn: it says that one comes \
                every 20.000 ms";
    assert_eq!(said(20_000_000, 20_000_000), [("camera-rate", text.to_owned())]);
    assert_eq!(said(17_000_000, 20_000_000), []);
    assert_eq!(said(17_000_000, 0), [], "it says nothing of its rate");
}

#[test]
fn a_camera_that_falls_silent_is_told() {
    let mut ran = Ran::well(9_000_000_000);
    let kinds = |ran: &Ran| -> Vec<&str> { ran.alarms().iter().map(|it| it.0).collect() };
    assert_eq!(kinds(&ran), ["camera-silent"; 2]);
    let report = CameraReport { stream: false, whole: 99, ..CameraReport::default() };
    for second in 1..=7 {
        let at = Nanos::from_secs(second);
        note_camera(&mut ran.outcome.cameras, 0, at, &report, &ran.outcome.modes);
    }
    let text = "stream 0 of usb was not measured from 500.000 ms to 9.000 s: usb, which reports \
                once a second, did not";
    assert_eq!(ran.alarms(), [("camera-silent", text.to_owned())]);
}

#[test]
fn reports_are_taken_from_records() {
    let mut outcome = Outcome::default();
    let link = LinkReport { number: 1, here: true, found: 2, came: 3, sent: 4 };
    let device = DeviceReport { connector: 3, route: 1, identity: (1, 2), fate: Fate::Dead };
    let camera = CameraReport {
        stream: true,
        number: 2,
        whole: 5,
        broken: 6,
        missed: 7,
        breaks: 3,
        period: Nanos(8),
        late: Nanos(9),
    };
    for said in [Measurement::Link(link), Measurement::Device(device), Measurement::Camera(camera)]
    {
        let words = Reported { at: Nanos(9), said }.words();
        let words: String = words.iter().map(|word| format!(" {word:x}")).collect();
        outcome.note(&Line::parse(format!("~1e 0{words}").as_bytes()));
    }
    let row = LinkRow { process: 0, last: link, at_ns: 9, gone: 0, first_gone: None };
    assert_eq!(outcome.links, [row]);
    assert_eq!(outcome.plugs, [PlugRow { process: 0, last: device, worked: false }]);
    assert_eq!(outcome.cameras, [CameraRow::new(0, camera, Nanos(9))]);
    let json = outcome.to_json("any", &Names::default(), &[], &[], &sample::assumptions());
    assert_eq!(json["links"][0]["came"], 3);
    assert_eq!(json["usb_devices"][0]["state"], "dead");
    assert_eq!(json["cameras"][0]["missed_intervals"], 7);
    assert_eq!(json["cameras"][0]["breaks"], 3);
    assert_eq!(json["cameras"][0]["period_ns"], 8);
    assert_eq!(json["cameras"][0]["late_max_ns"], 9);
}

#[test]
fn devices_that_are_looked_for_longer_are_missing_later() {
    let budget = "vcpu = \"manage\"\nuses = [\"xhci\"]";
    let slow = TEXT.replacen("uses = [\"xhci\"]", budget, 1)
        + "[[vcpu]]\nname = \"manage\"\nbudget = \"1ms\"\nperiod = \"20ms\"\n\
           [[work]]\nname = \"usbd.manage\"\nworst = \"1ms\"\n";
    let system = diapason_system::parse("s", &slow).unwrap();
    let within = found_within(&system).0;
    assert!(within > LONG, "{within}");
    let promised = UsbPromises::of(&system);
    let rung = |time_ns| {
        let ran = Ran { promised: promised.clone(), ..Ran::new(time_ns) };
        ran.alarms().len()
    };
    assert_eq!([LONG, within - 1, within].map(rung), [0, 0, 9]);
}

/// Modes in which one stream runs, and in which all do. Every camera is in one.
const MODES: &str = "[[mode]]\nname = \"one\"\ncameras = [{ name = \"second\", bytes = 4096 }]\n\
                     [[mode]]\nname = \"all\"\ncameras = [{ name = \"first\", bytes = 4096 }, \
                     { name = \"second\", bytes = 4096 }, { name = \"third\", bytes = 4096 }]\n";

impl Ran {
    /// Returns a run of the system with modes in which nobody watches a camera.
    fn of_modes(time_ns: u64) -> Ran {
        let text = TEXT.replace("\"cameras\", ", "").replace("critical = [0]", "critical = [0, 1]");
        let system =
            diapason_system::parse("s", &(text + MODES)).unwrap_or_else(|it| panic!("{it}"));
        let mut ran = Ran { promised: UsbPromises::of(&system), ..Ran::well(time_ns) };
        ran.outcome.cameras.clear();
        ran
    }

    fn mode(&mut self, at: u64, mode: u8, step: ModeStep, wanted: u8) {
        let (taken, begun) = (Nanos(at), Nanos(at + 5));
        let said = Measurement::Mode(ModeReport { mode, step, wanted, taken, begun });
        let words = Reported { at: Nanos(at), said }.words();
        let words = [0].into_iter().chain(words).collect();
        self.outcome.note(&Line::Record(Record::Measured, words));
    }

    /// Notes that a stream has had frames.
    fn frames(&mut self, number: u8, at: u64) {
        let report = CameraReport { stream: true, number, whole: 9, ..CameraReport::default() };
        note_camera(&mut self.outcome.cameras, 0, Nanos(at), &report, &self.outcome.modes);
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_stream_that_rests_by_order_is_not_missed() {
    let mut ran = Ran::of_modes(20 * SECOND);
    ran.mode(0, 0, ModeStep::Starts, 1);
    ran.mode(SECOND, 0, ModeStep::Runs, 1);
    (1..=20).for_each(|second| ran.frames(0, second * SECOND));
    assert_eq!(ran.alarms(), []);
    let never = "mode all never ran with all of its streams".to_owned();
    assert_eq!(ran.unmeasured(), ["no frame of stream 1 of usb".to_owned(), never]);
    // It runs for a second, and its last report comes when it has stopped.
    ran.mode(3 * SECOND, 1, ModeStep::Starts, 3);
    ran.mode(3 * SECOND, 1, ModeStep::Runs, 3);
    ran.mode(4 * SECOND, 0, ModeStep::Stops, 1);
    ran.frames(1, 4 * SECOND + 1);
    assert_eq!((ran.alarms(), ran.unmeasured()), (vec![], vec![]));
}

#[test]
fn a_stream_that_is_ordered_and_does_not_come_is_missed() {
    let names = |ran: &Ran| -> Vec<&str> { ran.alarms().iter().map(|it| it.0).collect() };
    let mut ran = Ran::of_modes(20 * SECOND);
    (1..=20).for_each(|second| ran.frames(0, second * SECOND));
    ran.mode(0, 0, ModeStep::Starts, 1);
    ran.mode(18 * SECOND - 1, 1, ModeStep::Starts, 3);
    assert_eq!(names(&ran), ["camera-empty"], "two seconds are enough");
    let mut ran = Ran::of_modes(20 * SECOND);
    (1..=20).for_each(|second| ran.frames(0, second * SECOND));
    ran.mode(0, 1, ModeStep::Starts, 3);
    ran.frames(1, SECOND);
    // It comes and goes from then on, and nothing more is heard of it.
    for (seconds, silent) in [(2, false), (4, false), (6, true)] {
        ran.outcome.end = Some(RunEnd { time_ns: seconds * SECOND, ..RunEnd::default() });
        let alarms = Vec::from_iter(silent.then_some("camera-silent"));
        assert_eq!(names(&ran), alarms, "{seconds}");
        ran.mode(seconds * SECOND, 0, ModeStep::Stops, 1);
        ran.mode((seconds + 1) * SECOND, 1, ModeStep::Starts, 3);
    }
}

#[test]
fn a_change_that_leaves_a_stream_out_is_told_and_changes_are_timed() {
    let mut ran = Ran::of_modes(SECOND);
    ran.mode(0, 0, ModeStep::Starts, 1);
    ran.mode(9, 0, ModeStep::Runs, 1);
    ran.mode(10, 1, ModeStep::Stops, 1);
    ran.mode(11, 1, ModeStep::Starts, 3);
    ran.mode(12, 1, ModeStep::Without, 3);
    let text = "mode all began once without a stream whose camera is there: it failed, or sent \
                nothing in time";
    assert_eq!(ran.alarms(), [("mode-without", text.to_owned())]);
    let system = diapason_system::parse("s", TEXT).unwrap();
    let mut assumptions = Assumptions::of(&Plan::of(&system));
    assumptions.usb = ran.promised.clone();
    let json =
        |ran: &Ran| ran.outcome.to_json("any", &ran.names, &[], &[], &assumptions)["modes"].clone();
    let mode = |name: &str, ran: u64, without: u64, longest: u64| {
        serde_json::json!({
            "mode": name, "process": "usb", "ran": ran, "without": without,
            "longest_change_ns": longest,
        })
    };
    // The first mode begins with the system, which is no change.
    assert_eq!(json(&ran), serde_json::json!([mode("one", 1, 0, 0), mode("all", 0, 1, 0)]));
    ran.mode(20, 0, ModeStep::Stops, 1);
    ran.mode(21, 0, ModeStep::Runs, 1);
    assert_eq!(json(&ran), serde_json::json!([mode("one", 2, 0, 5), mode("all", 0, 1, 0)]));
}
