//! The modes of operation: what fits, what is refused, and what a change leaves alone.

use diapason_plan::modes::ModedBus;
use diapason_plan::{Plan, Unproved, Verdict};
use diapason_random::Random;
use diapason_system::{RunOptions, System};

const EXAMPLE: &str = include_str!("../../../tests/systems/camera-modes.toml");
const CARS: &str = include_str!("../../../examples/modes.toml");
/// A microframe, in ns.
const SLOT: u64 = 125_000;
/// Bytes of the settings of the model of a camera that have room for a picture.
const SETTINGS: [u32; 4] = [4_096, 11_264, 22_528, 33_792];
/// Bytes of all streams that fit into a microframe, at most: 52 packets of 2,149.75 ns in 112.5 us.
const FIT: u32 = 52 * 1_024;

fn plan_of(text: &str) -> Plan {
    let system: System =
        diapason_system::parse("f", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let plan = plan_of(text);
    assert!(!plan.holds(), "it should not");
    let all: Vec<String> = plan.findings.iter().map(|finding| finding.plain()).collect();
    let is_it = |said: &&String| words.iter().all(|word| said.contains(word));
    assert!(all.iter().any(|said| is_it(&said)), "{all:#?}");
}

fn only(plan: &Plan) -> &ModedBus {
    let buses = plan.modes.as_ref().expect("every camera has a setting");
    assert_eq!(buses.len(), 1);
    &buses[0]
}

#[test]
fn cameras_that_do_not_fit_together_share_a_bus_by_modes() {
    let plan = plan_of(EXAMPLE);
    assert!(plan.holds(), "{:?}", plan.findings);
    let bus = only(&plan);
    let stream = |place: &usize| (bus.streams[*place].usb, bus.streams[*place].bytes);
    let changes = bus.changes();
    let modes: Vec<(usize, usize)> = changes.iter().map(|change| change.modes).collect();
    assert_eq!(modes, [(0, 1), (0, 2), (1, 2)]);
    let stays: Vec<(usize, u32)> = changes[0].stays.iter().map(stream).collect();
    assert_eq!(stays, [(1, 11_264)], "the one behind streams in both modes");
    let starts: Vec<(usize, u32)> = changes[0].starts.iter().map(stream).collect();
    assert_eq!(starts, [(0, 33_792)], "another setting is another stream");
    assert_eq!((changes[1].stops.len(), changes[1].stays.len()), (4, 0));
    let all = EXAMPLE.replace("    { name = \"left\", bytes = 11264 },\n", "");
    let all = all.replace(
        "name = \"rear\", bytes = 11264 },\n]",
        "name = \"rear\", bytes = 11264 },\n    { name = \"left\", bytes = 1025 },\n]",
    );
    let plan = plan_of(&all);
    assert!(plan.holds(), "{:?}", plan.findings);
    assert_eq!(only(&plan).streams.last().map(|stream| stream.bytes), Some(4_096));
}

#[test]
fn a_mode_with_too_much_and_a_camera_with_too_little_are_refused() {
    let second = "33792 },\n    { name = \"rear\", bytes = ";
    let more = EXAMPLE.replace(&format!("{second}11264"), &format!("{second}11265"));
    refused(&more, &["mode `motorway` does not fit: `rear` with 22528 bytes", "write fewer"]);
    let most = "at most 33792 bytes in an interval, not 33793";
    refused(&EXAMPLE.replace("33792", "33793"), &[most, "write at most `bytes = 33792`"]);
    let small = "no picture that takes at most 1024 bytes an interval";
    refused(&EXAMPLE.replace("33792", "1024"), &[small, "write at least `bytes = 3852`"]);
    assert!(plan_of(&EXAMPLE.replace("33792", "3852")).holds());
}

/// The guarantee holds on the bus as it is declared, where no camera streams.
#[test]
fn a_guarantee_that_a_mode_breaks_is_refused() {
    let sooner = |slots: u32| EXAMPLE.replace("within = 16", &format!("within = {slots}"));
    assert!(plan_of(&sooner(2)).holds());
    refused(&sooner(1), &["mode `", "`recorder`"]);
    let without = &sooner(1)[..sooner(1).find("[[mode]]").unwrap()];
    assert!(plan_of(without).holds(), "it is the modes that break it");
}

/// Nothing but the streams of a mode decides whether it fits: they are admitted as they are chosen.
#[test]
fn every_mode_is_judged_by_the_settings_of_its_own_cameras() {
    let (mut held, mut broke) = (0, 0);
    let head = EXAMPLE[..EXAMPLE.find("[[endpoint]]").unwrap()].to_owned();
    for seed in 0..200 {
        let mut random = Random::stream(18, seed);
        let mut text = head.clone();
        let mut fits = true;
        for mode in 0..1 + random.below(4) {
            text += &format!("[[mode]]\nname = \"m{mode}\"\ncameras = [\n");
            let mut sum = 0;
            for name in ["front", "rear", "left", "right"] {
                let bytes = 1_025 + random.below(13_000) as u32;
                if mode == 0 || random.below(2) == 0 {
                    text += &format!("    {{ name = \"{name}\", bytes = {bytes} }},\n");
                    sum += SETTINGS.iter().find(|setting| **setting >= bytes).unwrap();
                }
            }
            text += "]\n";
            fits &= sum <= FIT;
        }
        let plan = plan_of(&text);
        assert_eq!(plan.holds(), fits, "seed {seed}: {text}");
        held += u32::from(fits);
        broke += u32::from(!fits);
    }
    assert!(held > 20 && broke > 20, "{held} {broke}");
}

#[test]
fn a_mode_without_cameras_promises_nothing() {
    let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
                [[mode]]\nname = \"m\"\n";
    assert_eq!(plan_of(text).verdict(), Verdict::PromisesNothing);
    assert_eq!(plan_of(EXAMPLE).verdict(), Verdict::Holds);
}

/// A change may begin a slot after the longest guaranteed transfer that saw the one before.
#[test]
fn the_server_waits_as_long_between_changes_as_is_proved() {
    let plan = plan_of(EXAMPLE);
    let pauses = [16 * SLOT, 17 * SLOT - 1, 17 * SLOT];
    assert_eq!(pauses.map(|pause| only(&plan).is_rested(pause)), [false, false, true]);
    let recorder = &EXAMPLE[EXAMPLE.find("[[endpoint]]").unwrap()..];
    let recorder = &recorder[..recorder.find("[[mode]]").unwrap()];
    for (more, slots) in [("", 1), (recorder, 17)] {
        let plan = plan_of(&(CARS.to_owned() + more));
        assert!(plan.holds(), "{:?}", plan.findings);
        assert!(only(&plan).is_rested(slots * SLOT));
        assert!(!only(&plan).is_rested(slots * SLOT - 1));
        let server = plan.system().processes.iter().find(|it| it.program == "usbd").unwrap();
        assert_eq!(plan.system().rest_of_modes(server), slots * SLOT);
    }
}

#[test]
fn a_server_without_a_stream_for_a_camera_is_refused() {
    assert_eq!(plan_of(CARS).verdict(), Verdict::Holds);
    let told = |settings: &str| CARS.replace("[usbd]", &format!("[usbd]\n{settings}\n#"));
    refused(&told("streams = [1, 1, 1]"), &["no stream for `right`", "write a `1` for each"]);
    refused(&told("streams = [1, 1, 2, 1]"), &["stretches streams", "[1, 1, 1, 1]"]);
    refused(&told("critical = [0, 1]"), &["may refuse the streams", "critical = [0, 1, 2, 3]"]);
    refused(&told("serves = [\"cameras\"]"), &["no stream for `front`", "remove `\"cameras\"`"]);
    refused(&told("promise = [16, 4096]"), &["nobody proves the `promise`", "remove `promise`"]);
}

#[test]
fn a_system_without_a_server_does_not_run_even_unproved() {
    let plan = plan_of(EXAMPLE);
    let options = RunOptions { horizon_ns: 1, record_bytes: 0, watch: false };
    let mut image = |_: &str| -> Result<Vec<u8>, String> { panic!("it is refused before") };
    for cleared in [plan.clear().unwrap(), plan.clear_anyway(Unproved)] {
        let refusal = cleared.archive(&options, &mut image).unwrap_err().plain();
        assert!(refusal.contains("no USB server changes the modes"), "{refusal}");
    }
}
