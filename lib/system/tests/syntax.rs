//! Text that is not TOML: one message per broken line, and no noise from the others.

use crate::common::{problems, refused};

#[track_caller]
fn broken(text: &str, place: (usize, usize), title: &str, help: &str) {
    refused(text, place, title, help);
}

const HEAD: &str = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n";

#[test]
fn a_missing_value() {
    let text = HEAD.replace("priority = 1", "priority = ");
    let help = "write a number, a \"text\" or a [list] after the `=`";
    broken(&text, (5, 12), "the value is missing", help);
}

#[test]
fn a_text_without_quotes() {
    let text = HEAD.replace("\"p\"", "p");
    broken(&text, (4, 8), "string values must be quoted", "write `\"p\"`");
}

#[test]
fn an_open_text() {
    let text = HEAD.replace("\"p\"", "\"p");
    let help = "close the text with `\"` in the same line";
    broken(&text, (4, 10), "invalid basic string", help);
}

#[test]
fn a_key_twice() {
    let text = format!("{HEAD}priority = 2\n");
    broken(&text, (6, 1), "duplicate key", "keep one of them");
    let text = format!("{HEAD}[usbd]\n[usbd]\n");
    let help = "a description has one `[usbd]`: write the keys of both in the first";
    broken(&text, (7, 2), "`[usbd]` stands here a second time", help);
    let text = format!("{HEAD}[vcpu]\n[vcpu]\n");
    let help = "write `[[vcpu]]`, with double brackets, for each of them";
    broken(&text, (7, 2), "`[vcpu]` stands here a second time", help);
}

#[test]
fn an_open_list_is_reported_once() {
    let text = format!("{HEAD}uses = [\"a\",\n[[mailbox]]\nname = \"a\"\nmessages = 3\n");
    broken(&text, (6, 8), "`[` is never closed", "close it with `]`");
    let text = format!("{HEAD}stack = 0\nuses = [\"a\", {{ b = 3\n[[mailbox]]\n");
    let found = problems(&text);
    let lines: Vec<usize> = found.items().iter().map(|item| item.line).collect();
    assert_eq!(lines, [6, 7], "{found}");
}

#[test]
fn other_mistakes_are_reported_too_but_not_their_consequences() {
    let text = format!("{HEAD}heap = abc\nstack = 3\nuses = [\"m\"]\n[[mailbox]]\nname = m\n");
    let found = problems(&text);
    let lines: Vec<usize> = found.items().iter().map(|item| item.line).collect();
    assert_eq!(lines, [6, 7, 10], "{found}");
}

#[test]
fn several_lines_may_be_broken() {
    let found = problems("a b\n= 3\n[x\nc = 'x\n\u{0}\n");
    assert!(found.items().len() >= 3, "{found}");
    assert!(found.items().iter().all(|item| !item.help.is_empty()));
}
