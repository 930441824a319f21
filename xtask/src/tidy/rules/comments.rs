//! Rules about comments: they say something, in whole sentences with a subject.

use super::super::Problem;
use super::super::source::Source;

/// A doc comment with so few words says nothing that a good name does not.
const WORDS_MIN: usize = 4;
/// Sentences that begin with one of these have a riddle for a subject.
const RELATIVES: [&str; 8] =
    ["Who", "Whoever", "Whom", "Whose", "What", "Whatever", "Which", "Whichever"];
/// Items that need a doc comment if they are public.
const ITEMS: [&str; 7] = ["fn", "struct", "enum", "trait", "union", "type", "static"];

/// Lines of a comment of one kind, one below the other.
struct Comment {
    line: usize,
    marker: &'static str,
    text: String,
}

impl Comment {
    fn is_doc(&self) -> bool {
        self.marker != "//"
    }

    fn problem(&self, source: &Source, text: &str) -> Problem {
        Problem::new(&source.path, self.line, text)
    }
}

/// Returns the comments of a file that have lines of their own.
fn comments(source: &Source) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut last = 0;
    for (line, text) in source.lines().filter(|_| source.is_rust()) {
        let text = text.trim_start();
        let markers = ["///", "//!", "//"].into_iter();
        let found = markers.filter_map(|marker| Some((marker, text.strip_prefix(marker)?))).next();
        let Some((marker, text)) = found.filter(|(_, text)| !text.starts_with('/')) else {
            continue;
        };
        match comments.last_mut() {
            Some(comment) if last + 1 == line && comment.marker == marker => {
                comment.text += &format!("\n{}", text.trim());
            }
            _ => comments.push(Comment { line, marker, text: text.trim().into() }),
        }
        last = line;
    }
    comments
}

/// Returns the sentences of a text: paragraphs, cut where a sign ends a sentence or a part of it.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for paragraph in text.split("\n\n") {
        let text = paragraph.replace('\n', " ");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let ends = [". ", ": ", "; ", "? ", "! "].iter().filter_map(|end| rest.find(end)).min();
            let (sentence, more) = rest.split_at(ends.map_or(rest.len(), |end| end + 2));
            sentences.push(sentence.trim_matches([' ', '-', '*', '(']).to_owned());
            rest = more;
        }
    }
    sentences
}

/// Returns whether a sentence begins with a relative and is no question.
fn is_relative(sentence: &str) -> bool {
    let first = sentence.split([' ', ',', '\'']).next().unwrap_or_default();
    RELATIVES.contains(&first) && !sentence.ends_with('?')
}

fn asks(text: &str) -> bool {
    (text.replace('\n', " ") + " ").contains("? ")
}

/// A doc comment has words enough to say something.
pub fn short(source: &Source) -> Vec<Problem> {
    let few = |comment: &&Comment| comment.text.split_whitespace().count() < WORDS_MIN;
    let docs = comments(source).into_iter().filter(Comment::is_doc).collect::<Vec<Comment>>();
    let text = "say something that the name does not, or leave the comment out";
    docs.iter().filter(few).map(|comment| comment.problem(source, text)).collect()
}

/// Words after `The same` that show that the comment is about the one above it.
const LEANING: [&str; 19] = [
    "among", "and", "around", "as", "at", "by", "for", "from", "if", "in", "of", "on", "that",
    "to", "until", "when", "where", "while", "with",
];

/// Openings of a doc comment whose subject stands in the comment above it, or nowhere.
const OPENINGS: [&str; 9] =
    ["And ", "But ", "Nor ", "Of ", "Or ", "So far ", "So long ", "So many ", "So often "];

/// A doc comment makes sense without the one above it: `The same of …` and `Of each …` do not.
pub fn leaning(source: &Source) -> Vec<Problem> {
    let leans = |comment: &Comment| {
        if OPENINGS.iter().any(|opening| comment.text.starts_with(opening)) {
            return true;
        }
        let Some(rest) = comment.text.strip_prefix("The same") else { return false };
        let next = rest.split_whitespace().next().unwrap_or_default();
        rest.starts_with([',', ';', ':', '.']) || LEANING.contains(&next)
    };
    let docs = comments(source).into_iter().filter(|comment| comment.is_doc() && leans(comment));
    docs.map(|comment| comment.problem(source, "begin with a subject: nobody reads the line above"))
        .collect()
}

/// No sentence of a comment or a page begins with a relative.
pub fn relatives(source: &Source) -> Vec<Problem> {
    const REMEDY: &str = "begin the sentence with its subject";
    let riddles = comments(source).into_iter().filter_map(|comment| {
        let sentences = sentences(&comment.text);
        let sentence = sentences.iter().find(|sentence| is_relative(sentence))?;
        Some(comment.problem(source, &format!("`{sentence}`: {REMEDY}")))
    });
    let prose = sentences(&prose(source)).into_iter().filter(|sentence| is_relative(sentence));
    let pages =
        prose.map(|sentence| Problem::new(&source.path, 1, format!("`{sentence}`: {REMEDY}")));
    riddles.chain(pages).collect()
}

/// No comment asks. A reader looks for answers.
pub fn questions(source: &Source) -> Vec<Problem> {
    let text = "say what it returns or does, as in `Returns whether`";
    let all = comments(source).into_iter().filter(|comment| asks(&comment.text));
    all.map(|comment| comment.problem(source, text)).collect()
}

/// Every public item has a doc comment.
pub fn documented(source: &Source) -> Vec<Problem> {
    let is_test = source.path.contains("/tests/") || source.path.contains("/examples/");
    if !source.is_rust() || is_test {
        return Vec::new();
    }
    let (lines, code): (Vec<&str>, Vec<&str>) =
        source.text.lines().zip(source.code.lines()).unzip();
    let silent = (0..lines.len()).filter(|at| is_undocumented(&lines, &code, *at));
    silent
        .map(|at| Problem::new(&source.path, at + 1, "say what it does, and when it fails"))
        .collect()
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

/// Returns the text of a page without its blocks, headings and tables; nothing if it is no page.
fn prose(source: &Source) -> String {
    if !source.path.ends_with(".md") {
        return String::new();
    }
    let outside = source.text.split("```").step_by(2).collect::<Vec<&str>>().join("\n\n");
    let mut kept = String::new();
    for line in outside.lines().map(str::trim) {
        let is_item = line.starts_with("- ");
        kept += if is_item { "\n\n" } else { "\n" };
        kept += if line.starts_with(['|', '#']) { "" } else { line };
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fires;
    use super::*;

    #[test]
    fn comments_of_three_words_are_found() {
        let text = "/// Is it?\nfn a() {}\n/// The same for\n/// another thread.\nfn b() {}\n";
        assert_eq!(fires(short, "a.rs", text), [1]);
        assert_eq!(fires(short, "a.rs", "//// A rule.\n// no doc\n"), [0; 0]);
    }

    #[test]
    fn doc_comments_that_need_the_one_above_are_found() {
        for text in [
            "/// The same of a mutex.\n",
            "//! The same, but later.\n",
            "/// The same\n/// as text.",
            "/// Of each thread, its time.\n",
            "/// So many messages are lost.\n",
            "/// And one more.\n",
        ] {
            assert_eq!(fires(leaning, "a.rs", text), [1], "{text}");
        }
        let text = "/// The same thread goes on.\nfn a() {}\n// The same of a comment inside.\n";
        assert_eq!(fires(leaning, "a.rs", text), [0; 0]);
    }

    #[test]
    fn sentences_that_begin_with_a_relative_are_found_and_questions_are_not() {
        for text in [
            "/// Who waits is asked first.\n",
            "// It waits. What it gets is\n// a turn.\n",
            "//! Nothing counts; Whatever\n//! comes, goes.\n",
            "/// A list.\n///\n/// - Whose turn is known.\n",
        ] {
            assert_eq!(fires(relatives, "a.rs", text), [1], "{text}");
        }
        let text =
            "/// Returns what is left of it.\nfn a() {}\n\n/// What does it cost? Nothing.\n";
        assert_eq!(fires(relatives, "a.rs", text), [0; 0]);
    }

    #[test]
    fn pages_are_read_without_blocks_headings_and_tables() {
        let page = "# Which page\n\nA page. What it says\nis this.\n\n- Who reads, learns.\n\n\
                    ```toml\nWhat = 1\n```\n\n| a |\n|---|\n| Whose row |\n\nWhat for? This.\n\n\
                    **What stands in bold.**\n";
        assert_eq!(fires(relatives, "docs/a.md", page), [1; 3]);
        assert_eq!(fires(relatives, "docs/a.txt", page), [0; 0]);
    }

    #[test]
    fn sentences_that_ask_are_found() {
        let text = "/// May it go on? Only\n/// if it is ready.\nfn a() {}\n\
                    // Is\n// it ready?\n\
                    /// Returns the `?` of an expression, as in `f()?`.\nfn b() {}\n";
        assert_eq!(fires(questions, "a.rs", text), [1, 4]);
    }

    #[test]
    fn public_items_without_a_comment_are_found() {
        let text = "#[must_use]\npub const fn a() {}\npub struct B {\n    pub field: u8,\n}\n\
                    /// Does what it must do.\n#[must_use]\n#[expect(\n    x,\n)]\npub fn c() {}\n\
                    pub(crate) fn d() {}\nfn e() {}\npub mod f;\npub use g::h;\n\
                    pub const I: u8 = 1;\n";
        assert_eq!(fires(documented, "a/src/lib.rs", text), [2, 3]);
        assert_eq!(fires(documented, "a/tests/b.rs", text), [0; 0]);
    }
}
