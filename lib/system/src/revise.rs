//! Changes in the text of a description that keep everything else as it is written: comments,
//! order, blanks.

use crate::source::Span;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key that is to have a value in an item of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Revision {
    /// The list, such as `work` for items `[[work]]`.
    pub list: &'static str,
    /// The `name` of the item. An item of this name is appended if there is none.
    pub name: String,
    pub key: &'static str,
    /// The value, as TOML writes it.
    pub value: String,
}

/// Returns the text of a description with these changes. The result of a text that is no TOML is as
/// wrong as the text is.
#[must_use]
pub fn revised(text: &str, revisions: &[Revision]) -> String {
    revisions.iter().fold(text.to_owned(), |text, revision| revision.within(&text))
}

impl Revision {
    fn within(&self, text: &str) -> String {
        let (table, _) = DeTable::parse_recoverable(text);
        let list = table.get_ref().get(self.list).map(Spanned::get_ref);
        let items: &[Spanned<DeValue<'_>>] = match list {
            Some(DeValue::Array(items)) => items,
            _ => &[],
        };
        let named = items.iter().find(|item| name(item).is_some_and(|(name, _)| name == self.name));
        let (place, new) = match (named, items.last()) {
            (Some(item), _) => self.in_item(text, item),
            (None, Some(last)) if is_inline(text, last) => {
                let end = last.span().end;
                (
                    end..end,
                    format!(", {{ name = \"{}\", {} = {} }}", self.name, self.key, self.value),
                )
            }
            (None, last) => self.appended(text, last),
        };
        format!("{}{new}{}", &text[..place.start], &text[place.end..])
    }

    /// Returns the change in an item that is there.
    fn in_item(&self, text: &str, item: &Spanned<DeValue<'_>>) -> (Range<usize>, String) {
        let DeValue::Table(table) = item.get_ref() else { return (0..0, String::new()) };
        if let Some(value) = table.get(self.key) {
            return (value.span(), self.value.clone());
        }
        let end = name(item).map_or(item.span().end, |(_, span)| span.end);
        if is_inline(text, item) {
            return (end..end, format!(", {} = {}", self.key, self.value));
        }
        let end = line_end(text, end);
        (end..end, format!("\n{} = {}", self.key, self.value))
    }

    /// Returns a new item: behind the last one of its list, or at the end.
    fn appended(&self, text: &str, last: Option<&Spanned<DeValue<'_>>>) -> (Range<usize>, String) {
        let Revision { list, name, key, value } = self;
        let item = format!("[[{list}]]\nname = \"{name}\"\n{key} = {value}");
        match last {
            Some(last) => {
                let end = line_end(text, last_byte(last));
                (end..end, format!("\n\n{item}"))
            }
            None => {
                let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                (text.len()..text.len(), format!("{gap}\n{item}\n"))
            }
        }
    }
}

/// Returns the name of an item, and where it stands.
fn name<'i>(item: &'i Spanned<DeValue<'_>>) -> Option<(&'i str, Span)> {
    let DeValue::Table(table) = item.get_ref() else { return None };
    let value = table.get("name")?;
    match value.get_ref() {
        DeValue::String(name) => Some((name, value.span())),
        _ => None,
    }
}

/// Returns whether an item is written `{ … }`, and not below a header of its own.
fn is_inline(text: &str, item: &Spanned<DeValue<'_>>) -> bool {
    text.get(item.span().start..).is_some_and(|rest| rest.starts_with('{'))
}

/// Returns the end of the last value in an item.
fn last_byte(item: &Spanned<DeValue<'_>>) -> usize {
    let own = item.span().end;
    match item.get_ref() {
        DeValue::Table(table) => table.values().map(last_byte).fold(own, usize::max),
        _ => own,
    }
}

/// Returns the end of the line that `at` is in, without its line break.
fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    if text[..end].ends_with('\r') { end - 1 } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn revision(list: &'static str, name: &str, key: &'static str, value: &str) -> Revision {
        Revision { list, name: name.into(), key, value: value.into() }
    }

    const TEXT: &str = "\
# A system.
[system]
name = \"s\"

[[work]]              # the first
name = \"a\"            # its name
worst = \"40us\"        # a guess
best = \"1us\"

[[work]]
name = \"b\"            # what b is
worst = \"2us\"   # measured

[[vcpu]]
name = \"v\"
";

    #[test]
    fn a_value_changes_and_its_comment_stays() {
        let text = revised(TEXT, &[revision("work", "a", "worst", "\"9us\"")]);
        assert_eq!(text, TEXT.replace("\"40us\"        # a", "\"9us\"        # a"));
    }

    #[test]
    fn a_new_key_follows_the_name_and_a_new_item_the_last() {
        let changes =
            [revision("vcpu", "v", "job", "\"5us\""), revision("work", "c", "worst", "\"1us\"")];
        let text = revised(TEXT, &changes);
        assert!(text.ends_with("[[vcpu]]\nname = \"v\"\njob = \"5us\"\n"), "{text}");
        let added =
            "worst = \"2us\"   # measured\n\n[[work]]\nname = \"c\"\nworst = \"1us\"\n\n[[vcpu]]";
        assert!(text.contains(added), "{text}");
        let first = revised("[system]\nname = \"s\"", &changes[1..]);
        assert_eq!(first, "[system]\nname = \"s\"\n\n[[work]]\nname = \"c\"\nworst = \"1us\"\n");
    }

    #[test]
    fn items_in_one_line_stay_in_it() {
        let text = "work = [{ name = \"a\", worst = \"1us\" }, { name = \"b\" }] # all\n";
        let changes = [
            revision("work", "a", "worst", "\"2us\""),
            revision("work", "b", "worst", "\"3us\""),
            revision("work", "c", "worst", "\"4us\""),
        ];
        let expected = "work = [{ name = \"a\", worst = \"2us\" }, { name = \"b\", worst = \
                        \"3us\" }, { name = \"c\", worst = \"4us\" }] # all\n";
        assert_eq!(revised(text, &changes), expected);
    }

    #[test]
    fn line_breaks_of_windows_stay() {
        let text = "[[work]]\r\nname = \"a\" # it\r\n";
        let text = revised(text, &[revision("work", "a", "worst", "\"2us\"")]);
        assert_eq!(text, "[[work]]\r\nname = \"a\" # it\nworst = \"2us\"\r\n");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[\\[\\]{}a-z=\"#.\n, é]{0,80}") {
            let _ = revised(&text, &[revision("a", "b", "c", "1")]);
        }

        #[test]
        fn what_is_written_is_read(
            name in "[a-z.]{1,8}", number in 1u32..1000, comment in "[ -~]{0,20}",
        ) {
            let comment = format!("# {comment}\n");
            let (text, value) = (format!("{TEXT}{comment}"), format!("\"{number}us\""));
            let text = revised(&text, &[revision("work", &name, "worst", &value)]);
            let written = format!("worst = {value}");
            prop_assert!(DeTable::parse(&text).is_ok() && text.contains(&written));
            prop_assert!(text.contains(&comment) && text.contains("# its name"));
            let items = if ["a", "b"].contains(&&*name) { 2 } else { 3 };
            prop_assert_eq!(text.matches("[[work]]").count(), items);
        }
    }
}
