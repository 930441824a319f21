//! The rules of `[process.settings]`: what a server is told by name.

use crate::common::{built, refused, told};
use diapason_contract::settings::{CLIENTS, CRITICAL, LINKS, PROMISE, SAYS, SERVES, STREAMS};
use diapason_contract::threads::WORDS;
use diapason_system::parse;

/// Returns a USB server with settings that begin in line 7, and another process.
fn system(settings: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"usbd\"\npriority = 1\n[process.settings]\n\
         {settings}\n[[process]]\nname = \"other\"\npriority = 1\n"
    )
}

#[track_caller]
fn bad(setting: &str, column: usize, title: &str, help: &str) {
    refused(&system(setting), (7, column), title, help);
}

#[test]
fn each_setting_arrives() {
    let settings = "serves = [\"can\", \"disks\", \"hubs\"]\nsays = [\"pools\"]\nlinks = [0, 17]\n\
                    promise = [24, 4096]\nstreams = [1, 8]\ncritical = [0]\nclients = [3, 4]";
    let archive = built(&parse("f", &system(settings)).unwrap()).unwrap();
    let settings = told(&archive, 0);
    let heard = [SERVES, SAYS, LINKS, PROMISE, STREAMS, CRITICAL, CLIENTS];
    let heard = heard.map(|name| settings.get(name));
    let said: [&[u64]; 7] = [&[0, 3, 5], &[1], &[0, 17], &[24, 4096], &[1, 8], &[0], &[3, 4]];
    assert_eq!(heard, said);
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    bad("serves = [\"disk\"]", 11, "`serves` cannot be `disk`", "did you mean `\"disks\"`?");
    let help = format!("it can be: {}", WORDS.join(", "));
    bad("serves = [\"can\", \"video\"]", 18, "`serves` cannot be `video`", &help);
    bad(
        "links = [0, 256]",
        13,
        "`links` is 256, out of range",
        "write a whole number from 0 to 255",
    );
    let title = "5 numbers or words in `links`";
    bad("links = [0, 0, 0, 0, 0]", 9, title, "write 1 to 4");
    bad("promise = [24]", 11, "1 numbers or words in `promise`", "write 2");
    bad("streams = [3]", 12, "3 is no power of two", "write 4");
    let help = "`streams` has 2, counted from 0: write at most 1";
    bad("critical = [1, 2]\nstreams = [1, 8]", 16, "there is no stream 2", help);
    let help = "say in `streams` which cameras there are, or remove `critical`";
    bad("critical = [0]", 13, "there is no stream 0", help);
    let found = parse("f", &system("link = [0]")).unwrap_err();
    assert!(found.items()[0].help.contains("`links`"), "{found}");
    let found = parse("f", &system("serves = \"can\"")).unwrap_err();
    assert_eq!(found.items()[0].line, 7, "{found}");
}

#[test]
fn only_programs_that_take_settings_have_some() {
    let text = system("").replace("\"usbd\"", "\"p\"");
    let help = "remove them: `usbd` is the program that does";
    refused(&text, (6, 1), "`p` takes no settings", help);
    let not_a_table = system("").replace("[process.settings]", "settings = 3");
    let help = "write `[process.settings]` below the process, and one `key = value` per line";
    refused(&not_a_table, (6, 12), "`settings` is not a table", help);
}
