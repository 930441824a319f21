//! `diapason messages`: from a DBC file to a description of its bus, and the identifiers back.

use crate::describe::describe;
use crate::failure::Failure;
use crate::failure::HOLDS;
use crate::input::Input;
use crate::output::write;
use crate::plan::{Cleared, Plan, cleared};
use crate::signals::{read, refused};
use diapason_can::Id;
use diapason_can::dbc::{Dbc, DbcMessage, renumbered};
use diapason_can::fd::FD_BYTES_MAX;
use diapason_can::frame::BYTES_MAX;
use diapason_plan::can::CanName;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Longest name in a description.
const NAME_MAX: usize = 31;

/// The request to `messages`.
#[derive(Clone, Debug, clap::Args)]
pub struct MessagesRequest {
    /// The DBC file with the messages of one bus.
    pub dbc: PathBuf,
    /// Bits a second of the bus.
    #[arg(long, value_name = "BITS", default_value_t = 500_000)]
    pub rate: u32,
    /// Bits a second of the data of frames of CAN FD, if they are faster.
    #[arg(long, value_name = "BITS")]
    pub data_rate: Option<u32>,
    /// Print the DBC file again, with the identifiers that the plan of this description assigns.
    #[arg(long, value_name = "SYSTEM", conflicts_with_all = ["rate", "data_rate"])]
    pub identifiers: Option<PathBuf>,
}

/// Prints the description, or the file with other identifiers.
///
/// # Errors
/// If one of the files cannot be used, or the plan does not hold.
pub fn messages(request: &MessagesRequest) -> Result<u8, Failure> {
    let text = read(Input::Dbc, &request.dbc)?;
    let dbc = Dbc::parse(&text).map_err(|error| refused(&request.dbc, &error))?;
    let said = match &request.identifiers {
        None => described(&dbc, request.rate, request.data_rate),
        Some(system) => {
            let system = describe(system)?;
            let plan = Plan::of(&system);
            let _: Cleared = cleared(&plan, None)?;
            let ids = assigned(&dbc, &plan).map_err(Failure::Input)?;
            renumbered(&text, &ids).map_err(|error| refused(&request.dbc, &error))?
        }
    };
    write(&said);
    Ok(HOLDS)
}

/// Returns the name of a message or a node in a description: of the characters that names may have.
fn tidied(name: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    name.chars().take(NAME_MAX).map(|c| fine(c).to_ascii_lowercase()).collect()
}

/// The names of all messages in a description, in their order; each is there once.
fn names(dbc: &Dbc) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let name = |message: &DbcMessage| {
        let name = tidied(&message.name);
        let count = seen.entry(name.clone()).or_insert(0);
        *count += 1;
        let end = if *count > 1 { format!("-{count}") } else { String::new() };
        format!("{}{end}", &name[..name.len().min(NAME_MAX - end.len())])
    };
    dbc.messages.iter().map(name).collect()
}

/// Returns how many bytes a frame of the message's format carries at most.
fn most(message: &DbcMessage) -> u16 {
    if message.is_fd() { FD_BYTES_MAX as u16 } else { BYTES_MAX as u16 }
}

/// Returns whether the message is a frame of CAN FD that the description has.
fn is_planned_fd(message: &DbcMessage) -> bool {
    message.is_fd() && message.size <= most(message)
}

fn described(dbc: &Dbc, rate: u32, data_rate: Option<u32>) -> String {
    let data_rate = data_rate.filter(|_| dbc.messages.iter().any(is_planned_fd));
    let data_rate = data_rate.map(|rate| format!("data_rate = {rate}\n")).unwrap_or_default();
    let mut text = format!(
        "[system]\nname = \"dbc\"\n\n[[can]]\nname = \"bus\"\nrate = {rate}\n{data_rate}\
         scheduler = \"as-written\"\n"
    );
    for (name, message) in names(dbc).iter().zip(&dbc.messages) {
        if message.size > most(message) {
            let (of, size) = (&message.name, message.size);
            let kind = if message.is_fd() { "frame" } else { "classic frame" };
            text += &format!("\n# `{of}` has {size} bytes, which no {kind} carries.\n");
            continue;
        }
        let fd = if message.is_fd() { "fd = true\n" } else { "" };
        let node = message.sender.as_deref().map_or("nobody".to_owned(), tidied);
        let id = match message.id {
            Id::Standard(id) => format!("id = {:#05x}\n", id.as_raw()),
            Id::Extended(id) => format!("id = {:#010x}\nextended = true\n", id.as_raw()),
        };
        let often = match message.cycle_ms {
            Some(cycle) => format!("period = \"{cycle}ms\"\n"),
            None => "class = \"none\"\n".to_owned(),
        };
        text += &format!(
            "\n[[message]]\nname = \"{name}\"\nbus = \"bus\"\nnode = \"{node}\"\n{id}{often}\
             {fd}bytes = {}\n",
            message.size
        );
    }
    text
}

/// Returns each message's identifier of now, and the one that the plan assigns.
fn assigned(dbc: &Dbc, plan: &Plan) -> Result<Vec<(Id, Id)>, String> {
    let names = names(dbc);
    let mut ids = Vec::new();
    for (network, planned) in plan.system().cans.iter().zip(&plan.cans) {
        for (message, promise) in network.messages.iter().zip(&planned.messages) {
            let Some(place) = names.iter().position(|name| *name == message.name) else { continue };
            match promise.name {
                Some(CanName::Fixed(id)) => ids.push((dbc.messages[place].id, id)),
                Some(CanName::Code(_)) => {
                    let name = &message.name;
                    return Err(format!(
                        "error: `{name}` is of high speed under MTS, and its identifiers change \
                         with its deadlines: no DBC file can say them\n\
                         help: plan it with `scheduler = \"deadline-monotonic\"`"
                    ));
                }
                None => {}
            }
        }
    }
    unique(dbc, &ids)?;
    Ok(ids)
}

/// No message that keeps its identifier may have one that another gets.
fn unique(dbc: &Dbc, ids: &[(Id, Id)]) -> Result<(), String> {
    let kept = dbc.messages.iter().filter(|message| !ids.iter().any(|(old, _)| *old == message.id));
    for message in kept {
        if ids.iter().any(|(_, new)| *new == message.id) {
            return Err(format!(
                "error: `{}` is in no bus of the description, and another message gets its \
                 identifier\nhelp: add it as `[[message]]`, as `diapason messages` writes it",
                message.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_system::parse;

    const DBC: &str = "BO_ 256 Engine: 8 ECU\n\
        BO_ 2147484160 engine: 4 Vector__XXX\n\
        BO_ 300 Lamp.On: 1 BODY\n\
        BO_ 301 Lamp: 1 BODY\n\
        BO_ 302 Image: 64 CAMERA\n\
        BO_ 303 Film: 65 CAMERA\n\
        BA_ \"GenMsgCycleTime\" BO_ 256 10;\n\
        BA_ \"GenMsgCycleTime\" BO_ 301 5;\n";

    fn dbc() -> Dbc {
        with_image_of(64)
    }

    fn with_image_of(bytes: usize) -> Dbc {
        let text = DBC.replace("Lamp.On", "Lamp_On");
        Dbc::parse(&text.replace("Image: 64", &format!("Image: {bytes}"))).unwrap()
    }

    #[test]
    fn what_is_proposed_can_be_planned() {
        let text = described(&dbc(), 250_000, Some(1_000_000));
        let system = parse("f", &text).unwrap_or_else(|found| panic!("{}", found.plain()));
        let messages = &system.cans[0].messages;
        let names: Vec<&str> = messages.iter().map(|message| message.name.as_str()).collect();
        assert_eq!(names, ["engine", "engine-2", "lamp_on", "lamp", "image"]);
        assert!(messages[4].fd && !messages[3].fd && system.cans[0].data_rate == 1_000_000);
        let short = Dbc::parse("BO_ 256 Engine: 8 ECU\n").unwrap();
        assert!(!described(&short, 250_000, Some(1_000_000)).contains("data_rate"));
        assert_eq!(messages[0].period_ns, Some(10_000_000));
        assert_eq!(messages[1].id, Some((0x200, true)));
        assert_eq!(messages[2].period_ns, None);
        assert!(text.contains("# `Film` has 65 bytes, which no frame carries"), "{text}");
        assert_eq!(Plan::of(&system).findings.len(), 1, "`lamp_on` is unlimited");
    }

    #[test]
    fn identifiers_come_back_by_name() {
        let text = |dbc: &Dbc, scheduler| {
            let text = described(dbc, 250_000, Some(1_000_000)).replace("as-written", scheduler);
            let kept = |line: &&str| !line.starts_with("id =") && !line.starts_with("extended");
            text.lines().filter(kept).collect::<Vec<&str>>().join("\n")
        };
        let system = parse("f", &text(&dbc(), "deadline-monotonic")).unwrap();
        let plan = Plan::of(&system);
        let ids = assigned(&dbc(), &plan).unwrap();
        let new = renumbered(&DBC.replace("Lamp.On", "Lamp_On"), &ids).unwrap();
        let read = Dbc::parse(&new).unwrap();
        let number = |name: &str| read.messages.iter().find(|it| it.name == name).unwrap().id;
        assert!(number("Lamp") < number("Engine"), "{new}");
        assert!(new.contains("BO_ 303 Film"), "what is not planned keeps its identifier: {new}");

        // Without the frame of CAN FD, which MTS has no proof for.
        let classic = with_image_of(65);
        let mts = text(&classic, "mts").replace("\"mts\"", "\"mts\"\nclocks = \"20us\"");
        let system = parse("f", &mts).unwrap();
        let refused = assigned(&classic, &Plan::of(&system)).unwrap_err();
        assert!(refused.contains("no DBC file can say them"), "{refused}");
    }
}
