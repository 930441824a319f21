//! `include`: parts of a description in other files, and mistakes in them.

use diapason_system::{Description, Diagnostics, System, parse, parse_any};

const MAIN: &str = "include = [\"bus.toml\", \"more/tasks.toml\"]\n\n[system]\nname = \"s\"\n\n\
                    [[process]]\nname = \"main\"\npriority = 1\nuses = [\"box\"]\n";
const BUS: &str = "# Parts may begin with a comment.\n[[mailbox]]\nname = \"box\"\nmessages = 8\n";
const TASKS: &str = "[[process]]\nname = \"task\"\npriority = 2\nuses = [\"box\"]\n";

fn read(main: &str, parts: &[(&str, &str)]) -> Result<System, Diagnostics> {
    let find = |name: &str| {
        let part = parts.iter().find(|(known, _)| *known == name);
        let (name, text) = part.ok_or("there is none")?;
        Ok((format!("car/{name}"), (*text).to_owned()))
    };
    match parse_any("car/system.toml", main, find)? {
        Description::One(system) => Ok(*system),
        _ => unreachable!("one host"),
    }
}

fn wrong(main: &str, parts: &[(&str, &str)]) -> Diagnostics {
    read(main, parts).unwrap_err()
}

#[test]
fn the_tables_of_parts_follow_those_of_the_description() {
    let system = read(MAIN, &[("bus.toml", BUS), ("more/tasks.toml", TASKS)]).unwrap();
    let names: Vec<&str> = system.processes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names, system.mailboxes[0].allowed), (vec!["main", "task"], 3));
    let marked = format!("\u{feff}{BUS}");
    assert!(read(MAIN, &[("bus.toml", &marked), ("more/tasks.toml", TASKS)]).is_ok());
}

#[test]
fn a_mistake_is_shown_in_its_file() {
    let odd = TASKS.replace("priority = 2", "priority = 99\nod = 1");
    let found = wrong(MAIN, &[("bus.toml", BUS), ("more/tasks.toml", &odd)]);
    let places: Vec<_> = found.items().iter().map(|it| (it.file.to_owned(), it.line)).collect();
    let tasks = || "car/more/tasks.toml".to_owned();
    assert_eq!(places, [(tasks(), 3), (tasks(), 4)], "{found}");
    let shown = found.plain();
    assert!(shown.contains("--> car/more/tasks.toml:3:12\n"), "{shown}");
    assert!(shown.contains("3 | priority = 99\n"), "{shown}");
}

#[test]
fn a_problem_of_two_files_shows_both() {
    let twice = TASKS.replace("\"task\"", "\"main\"");
    let shown = wrong(MAIN, &[("bus.toml", BUS), ("more/tasks.toml", &twice)]).plain();
    assert!(shown.contains("--> car/more/tasks.toml:2:8"), "{shown}");
    assert!(shown.contains("::: car/system.toml:7:8"), "{shown}");
    assert!(shown.contains("2 | name = \"main\"") && shown.contains("7 | name = \"main\""));
}

#[test]
fn broken_syntax_stays_in_its_file() {
    let open = BUS.replace("messages = 8", "messages = [");
    let found = wrong(MAIN, &[("bus.toml", &open), ("more/tasks.toml", TASKS)]);
    let items = found.items();
    assert_eq!((items[0].file, items[0].line), ("car/bus.toml", 4), "{found}");
}

#[test]
fn what_cannot_be_a_part_is_refused() {
    let titled = |main: &str, part: &str, title: &str| {
        let found = wrong(main, &[("bus.toml", part), ("more/tasks.toml", TASKS)]);
        assert!(found.items().iter().any(|item| item.title == title), "{title}\n{found}");
    };
    titled(MAIN, "[system]\nname = \"other\"\n", "`system` is in two files");
    titled(MAIN, "include = [\"x.toml\"]\n", "a part includes nothing");
    titled(MAIN, "process = 3\n", "`process` is in two files");
    titled(MAIN, "[[proces]]\nname = \"x\"\n", "unknown key `proces` in the description");
    let main = MAIN.replace("bus.toml", "none.toml");
    titled(&main, BUS, "cannot read `none.toml`: there is none");
    titled(&MAIN.replace("more/tasks.toml", "bus.toml"), BUS, "`bus.toml` is included twice");
    titled(
        &MAIN.replace("[\"bus.toml\", \"more/tasks.toml\"]", "3"),
        BUS,
        "`include` is an integer, expected a list of names",
    );
    let late = format!("[system]\nname = \"s\"\ninclude = [\"p\"]\n{BUS}");
    let late = parse("s.toml", &late).unwrap_err();
    let help = "write it before the first table";
    assert!(late.items().iter().any(|item| item.help == help), "{late}");
    let many: Vec<String> = (0..17).map(|it| format!("\"p{it}\"")).collect();
    let main = format!("include = [{}]\n", many.join(", "));
    titled(&main, BUS, "17 parts, the most is 16");
    let alone = parse("s.toml", MAIN).unwrap_err();
    assert!(alone.items()[0].title.starts_with("cannot read `bus.toml`"), "{alone}");
}

#[test]
fn the_parts_of_a_listed_host_are_beside_its_description() {
    let list = "[[host]]\nname = \"a\"\nsystem = \"left/a.toml\"\n";
    let host = "include = [\"box.toml\"]\n[system]\nname = \"a\"\n[[process]]\nname = \"p\"\n\
                priority = 1\nuses = [\"box\"]\n";
    let find = |name: &str| match name {
        "left/a.toml" => Ok((name.to_owned(), host.to_owned())),
        "left/box.toml" => Ok((name.to_owned(), BUS.to_owned())),
        _ => Err(format!("no {name}")),
    };
    assert!(parse_any("net.toml", list, find).is_ok());
}
