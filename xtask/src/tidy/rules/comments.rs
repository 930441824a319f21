//! Rules about doc comments: they say something, in whole sentences with a subject.
//!
//! What stands in the tree is counted for each package, and may only become less.

use super::super::ratchets::{Measure, Measured};
use super::super::source::{Source, Tree};
use std::collections::BTreeMap;

/// A doc comment with so few words says nothing that a good name does not.
const WORDS_MIN: usize = 4;
/// Sentences that begin with one of these have a riddle for a subject, unless they are questions.
const RELATIVES: [&str; 7] = ["Who", "Whoever", "Whom", "Whose", "What", "Whatever", "Which"];
/// Items that need a doc comment if they are public.
const ITEMS: [&str; 7] = ["fn", "struct", "enum", "trait", "union", "type", "static"];

/// The doc comments of a file: the line of the first, and the text of all lines together.
fn doc_comments(source: &Source) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut going_on = false;
    for (number, line) in source.lines() {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match (text.filter(|text| !text.starts_with('/')), comments.last_mut()) {
            (Some(text), Some((_, whole))) if going_on => *whole += &format!("\n{}", text.trim()),
            (Some(text), _) => comments.push((number, text.trim().into())),
            (None, _) => {}
        }
        going_on = text.is_some();
    }
    comments
}

fn is_short(comment: &str) -> bool {
    comment.split_whitespace().count() < WORDS_MIN
}

/// How many sentences begin with a relative and are not questions.
fn relatives(comment: &str) -> usize {
    let mut count = 0;
    for paragraph in comment.split("\n\n") {
        let text = paragraph.replace('\n', " ");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = [". ", ": ", "? ", "! "].iter().filter_map(|end| rest.find(end)).min();
            let (sentence, more) = rest.split_at(end.map_or(rest.len(), |end| end + 2));
            let first = sentence.split([' ', ',', '\'']).next().unwrap_or_default();
            let asks = sentence.trim_end().ends_with('?');
            count += usize::from(RELATIVES.contains(&first) && !asks);
            rest = more;
        }
    }
    count
}

/// How many sentences ask. A reader looks for answers.
fn questions(comment: &str) -> usize {
    let text = comment.replace('\n', " ") + " ";
    text.matches("? ").count()
}

/// Returns whether the item at this line is public and has no doc comment. Attributes may stand
/// between. A constant needs none: its name and value say what it is.
fn is_undocumented(lines: &[&str], code: &[&str], at: usize) -> bool {
    let Some(rest) = code[at].trim_start().strip_prefix("pub ") else { return false };
    let words: Vec<&str> = rest.split_whitespace().take(4).collect();
    let modifiers = ["const", "unsafe", "async", "extern", "safe"];
    let item = words.iter().find(|word| !modifiers.contains(word) && !word.starts_with('"'));
    let is_item = item.is_some_and(|item| ITEMS.contains(item));
    if !is_item || rest.contains('$') {
        return false;
    }
    let mut above = lines[..at].iter().rev().map(|line| line.trim());
    let attribute =
        |line: &&str| line.starts_with("#[") || line.ends_with(")]") || line.ends_with(',');
    !above.find(|line| !attribute(line)).is_some_and(|line| line.starts_with("///"))
}

/// The text of a page without its blocks and tables, or nothing if it is no page.
fn prose(source: &Source) -> String {
    let is_page = source.path.starts_with("docs/") || source.path == "README.md";
    if !is_page || !source.path.ends_with(".md") {
        return String::new();
    }
    let outside = source.text.split("```").step_by(2).collect::<Vec<&str>>().join("\n\n");
    let kept = outside.lines().map(|line| line.trim().trim_start_matches("- "));
    let kept = kept.map(|line| if line.starts_with(['|', '#']) { "" } else { line });
    kept.collect::<Vec<&str>>().join("\n")
}

/// All counts of every package, and those of pages.
pub fn count(tree: &Tree) -> Vec<Measured> {
    let mut found: BTreeMap<(Measure, &str), (&str, usize, u64)> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let package = tree.package(&file.path).unwrap_or("");
        let mut add = |measure, line, number: usize| {
            if number > 0 {
                let entry = found.entry((measure, package)).or_insert((&file.path, line, 0));
                entry.2 += number as u64;
            }
        };
        for (line, comment) in doc_comments(file) {
            add(Measure::ShortComments, line, usize::from(is_short(&comment)));
            add(Measure::Relatives, line, relatives(&comment));
            add(Measure::Questions, line, questions(&comment));
        }
        if file.path.contains("/tests/") || file.path.contains("/examples/") {
            continue;
        }
        let (lines, code): (Vec<&str>, Vec<&str>) =
            file.text.lines().zip(file.code.lines()).unzip();
        let silent = (0..lines.len()).filter(|at| is_undocumented(&lines, &code, *at));
        for at in silent {
            add(Measure::Undocumented, at + 1, 1);
        }
    }
    for file in &tree.files {
        let number = relatives(&prose(file)) as u64;
        if number > 0 {
            found.insert((Measure::Relatives, &file.path), (&file.path, 1, number));
        }
    }
    let measured = found.into_iter().map(|((measure, name), (file, line, value))| Measured {
        measure,
        name: name.into(),
        file: file.into(),
        line,
        value,
    });
    measured.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Vec<(Measure, u64)> {
        let files = vec![Source::new("a/Cargo.toml", ""), Source::new("a/src/lib.rs", text)];
        let tree = Tree { files, root: "/some/checkout".into() };
        count(&tree).iter().map(|found| (found.measure, found.value)).collect()
    }

    #[test]
    fn comments_of_three_words_are_counted_whole() {
        let text = "/// Is it?\nfn a() {}\n/// The same for\n/// another thread.\nfn b() {}\n";
        assert_eq!(counts(text), [(Measure::ShortComments, 1), (Measure::Questions, 1)]);
        assert_eq!(counts("//// A rule.\n// no doc\n"), []);
    }

    #[test]
    fn sentences_that_begin_with_a_relative_are_counted_and_questions_are_not() {
        let text = "/// Who waits is asked first. What it gets is\n/// a turn: whose turn is \
                    known.\n\
                    ///\n/// What does it cost? Nothing that counts. Whatever\n/// comes, goes.\n";
        assert_eq!(counts(text), [(Measure::Relatives, 3), (Measure::Questions, 1)]);
        assert_eq!(counts("/// Returns what is left of it.\nfn a() {}\n"), []);
    }

    #[test]
    fn pages_are_read_without_blocks_and_tables() {
        let page = "# Which page\n\nA page. What it says\nis this.\n\n- Who reads, learns.\n\n\
                    ```toml\nWhat = 1\n```\n\n| a |\n|---|\n| Whose row |\n\nWhat for? This.\n";
        let files = vec![Source::new("docs/a.md", page), Source::new("lib/README.md", page)];
        let tree = Tree { files, root: "/some/checkout".into() };
        let found = count(&tree);
        let found: Vec<(&str, u64)> =
            found.iter().map(|found| (found.name.as_str(), found.value)).collect();
        assert_eq!(found, [("docs/a.md", 2)]);
    }

    #[test]
    fn sentences_that_ask_are_counted() {
        let text = "/// May it go on? Only\n/// if it is ready. Is\n/// it ready?\nfn a() {}\n\
                    /// Returns the `?` of an expression, as in `f()?`.\nfn b() {}\n";
        assert_eq!(counts(text), [(Measure::Questions, 2)]);
    }

    #[test]
    fn public_items_without_a_comment_are_counted() {
        let text = "#[must_use]\npub const fn a() {}\npub struct B {\n    pub field: u8,\n}\n\
                    /// Does what it must do.\n#[must_use]\n#[expect(\n    x,\n)]\npub fn c() {}\n\
                    pub(crate) fn d() {}\nfn e() {}\npub mod f;\npub use g::h;\n\
                    pub const I: u8 = 1;\n";
        assert_eq!(counts(text), [(Measure::Undocumented, 2)]);
    }
}
