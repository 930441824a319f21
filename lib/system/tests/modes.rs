//! The rules of `[[mode]]`.

use crate::common::problems;
use diapason_system::{ModeCamera, ModeSpec, parse};

/// Returns a system with a camera and a disk; more tables begin in line 20.
fn system(tables: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"main\"\npriority = 1\n\
         [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
         [[usb]]\nname = \"front\"\non = \"xhci\"\nport = 1\nmodel = \"camera\"\n\
         [[usb]]\nname = \"disk\"\non = \"xhci\"\nport = 2\nmodel = \"disk\"\n{tables}\n"
    )
}

/// One thing is wrong with `tables`, in this line; title and help contain these words.
#[track_caller]
fn bad(tables: &str, line: usize, title: &str, help: &str) {
    let found = problems(&system(tables));
    let items = found.items();
    assert_eq!(items.len(), 1, "{found}");
    assert!(items[0].title.contains(title) && items[0].help.contains(help), "{found}");
    assert_eq!(items[0].line, line, "{found}");
}

/// Returns a mode with these cameras, in four lines.
fn mode(name: &str, cameras: &str) -> String {
    format!("[[mode]]\nname = \"{name}\"\ncameras = [{cameras}]\n\n")
}

const FRONT: &str = "{ name = \"front\", bytes = 4096 }";

#[test]
fn every_key_arrives_in_both_ways_to_write_it() {
    let list = "[[mode.cameras]]\nname = \"front\"\nbytes = 4096\n";
    let first = mode("a", FRONT) + "[[mode]]\nname = \"b\"\n";
    let second = format!("[[mode]]\nname = \"a\"\n{list}[[mode]]\nname = \"b\"\n");
    let camera = ModeCamera { usb: 0, bytes: 4_096 };
    let modes = [("a", vec![camera]), ("b", vec![])];
    let modes = modes.map(|(name, cameras)| ModeSpec { name: name.to_owned(), cameras });
    for tables in [first, second] {
        assert_eq!(parse("f", &system(&tables)).unwrap().modes, modes);
    }
    assert_eq!(parse("f", &system("")).unwrap().modes, []);
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_a_remedy() {
    let a = mode("a", FRONT);
    bad(&(a.clone() + &mode("a", FRONT)), 25, "`a` is declared twice", "name of its own");
    let with = |more: &str| mode("a", &format!("{FRONT}, {more}"));
    bad(&with(FRONT), 22, "has the camera `front` twice", "remove one");
    let frond = "{ name = \"frond\", bytes = 1 }";
    bad(&with(frond), 22, "no USB device named `frond`", "did you mean `front`?");
    let disk = "{ name = \"disk\", bytes = 1 }";
    bad(&with(disk), 22, "`disk` is no camera: its model is `disk`", "name a camera: `front`");
    bad(&with("{ bytes = 1 }"), 22, "has no `name`", "add `name");
    bad(&mode("a", "{ name = \"front\" }"), 22, "has no `bytes`", "add `bytes = 4096`");
    bad(
        &with("{ name = \"front\", bytes = 0 }").replace(&format!("{FRONT}, "), ""),
        22,
        "bytes",
        "",
    );
    bad(&mode("a", ""), 11, "no mode has the camera `front`", "name = \"front\", bytes");
    bad(&(a.clone() + "[[mode]]\ncameras = []"), 24, "has no `name`", "add `name");
    bad(&a.replace("cameras", "camera"), 22, "`camera`", "");
}

#[test]
fn a_pipe_from_a_camera_of_a_mode_is_refused() {
    let pipe = "[[pipe]]\nname = \"p\"\nfrom = \"front\"\nreader = \"main\"\nperiod = \"40ms\"\n\
                bytes = 614400\nlatency = \"90ms\"\n";
    let found = problems(&system(&(pipe.to_owned() + &mode("a", FRONT)))).to_string();
    assert!(found.contains("a pipe from the camera `front`, which modes start"), "{found}");
}

#[test]
fn modes_are_for_one_core_and_up_to_sixteen() {
    let many = (0..17).map(|number| mode(&format!("m{number}"), FRONT)).collect::<String>();
    bad(&many, 20 + 16 * 4 + 1, "17 modes, the most is 16", "remove some");
    let cores = system(&mode("a", FRONT)).replace("name = \"s\"", "name = \"s\"\ncores = 2");
    let found = problems(&cores).to_string();
    assert!(found.contains("a host with several cores cannot have modes"), "{found}");
}
