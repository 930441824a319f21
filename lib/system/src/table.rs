//! One table of the description, read key by key with the rules of each key: type, unit, range,
//! default. A key that nobody read by the end is an unknown key.

use crate::diagnostics::{Problem, Report};
use crate::limits::PAGE_BYTES;
use crate::parts::INCLUDE;
use crate::source::{At, Span};
use crate::suggest::{listed, nearest};
use crate::units;
use crate::value::{KnownKey, ValueKind};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A table and the place to point at when something is not in it.
#[derive(Clone)]
pub(crate) struct Raw<'t> {
    pub entries: &'t DeTable<'t>,
    pub place: Span,
}

/// A table being read.
pub(crate) struct Table<'t, 'r> {
    header: &'static str,
    noun: &'static str,
    raw: Raw<'t>,
    asked: Vec<&'static str>,
    pub report: &'r mut Report,
}

type Entry<'t> = &'t Spanned<DeValue<'t>>;

impl<'t, 'r> Table<'t, 'r> {
    /// `header` is how it is written, `noun` what messages call it.
    pub fn new(
        header: &'static str,
        noun: &'static str,
        raw: Raw<'t>,
        report: &'r mut Report,
    ) -> Self {
        Table { header, noun, raw, asked: Vec::new(), report }
    }

    /// Returns where the table is.
    pub fn place(&self) -> Span {
        match self.raw.entries.get("name") {
            Some(name) => name.span(),
            None => self.raw.place.clone(),
        }
    }

    /// Returns the entry with this key, whose value may be of any type.
    pub fn get(&mut self, key: &'static str) -> Option<Entry<'t>> {
        self.take(key, ValueKind::Any)
    }

    /// Returns whether there is an entry with this key.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.know(key).is_some()
    }

    /// Returns the place of the value with this key, if there is one.
    pub fn place_of(&mut self, key: &'static str) -> Option<Span> {
        self.know(key).map(Spanned::span)
    }

    /// Returns the entry with this key, and notes that the key is known.
    fn know(&mut self, key: &'static str) -> Option<Entry<'t>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.raw.entries.get(key)
    }

    /// Returns the entry with this key, and notes what its value has to be.
    fn take(&mut self, key: &'static str, kind: ValueKind) -> Option<Entry<'t>> {
        self.report.note_key(KnownKey { table: self.header, key, kind });
        self.know(key)
    }

    /// Reads a list of tables, written `[[key]]`.
    pub fn list(&mut self, key: &'static str) -> Vec<Raw<'t>> {
        let Some(entry) = self.take(key, ValueKind::Tables) else { return Vec::new() };
        match entry.get_ref() {
            DeValue::Array(array) => {
                array.iter().filter_map(|element| self.element(key, element)).collect()
            }
            DeValue::Table(entries) => {
                let title = format!("`{key}` is a single table here");
                let help = format!("write `[[{key}]]` with double brackets: there can be several");
                self.report.push(Problem::new(&entry.span(), title, help));
                vec![Raw { entries, place: entry.span() }]
            }
            _ => {
                self.wrong_type(key, entry, "a list of tables", &format!("[[{key}]]"));
                Vec::new()
            }
        }
    }

    fn element(&mut self, key: &str, element: Entry<'t>) -> Option<Raw<'t>> {
        match element.get_ref() {
            DeValue::Table(entries) => Some(Raw { entries, place: element.span() }),
            _ => {
                self.wrong_type(key, element, "a table", &format!("[[{key}]]"));
                None
            }
        }
    }

    /// Reports `key` if this table has neither it nor a misspelling of it, which `report_unknown`
    /// reports.
    pub fn needs(&mut self, key: &str, help: &str) {
        let mut written = self.raw.entries.iter().map(|(written, _)| written.get_ref());
        if written.any(|written| nearest(written, [key]).is_some()) {
            return;
        }
        let title = format!("{} has no `{key}`", self.called());
        self.report.push(Problem::new(&self.place(), title, help).absence());
    }

    /// Returns the table in a sentence: "process `sensors`".
    fn called(&self) -> String {
        match self.raw.entries.get("name").map(|name| name.get_ref()) {
            Some(DeValue::String(name)) => format!("{} `{name}`", self.noun),
            _ => format!("this {}", self.noun),
        }
    }

    fn wrong_type(&mut self, key: &str, entry: Entry<'_>, expected: &str, example: &str) {
        let found = kind(entry.get_ref());
        let title = format!("`{key}` is {found}, expected {expected}");
        let help = format!("write it as in `{example}`");
        self.report.push(Problem::new(&entry.span(), title, help));
    }

    /// Reads a text; `example` shows how the key is written.
    pub fn text(&mut self, key: &'static str, example: &str) -> Option<At<String>> {
        let entry = self.take(key, ValueKind::Text)?;
        let text = entry.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, entry, "a text in quotes", example);
        }
        Some(At::new(text?.to_owned(), entry.span()))
    }

    /// Reads a text that `parse` understands; `what` it should be, and an example.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        what: &str,
        example: &str,
        parse: fn(&str) -> Option<T>,
    ) -> Option<At<T>> {
        let text = self.text(key, example)?;
        let value = parse(&text.value);
        if value.is_none() {
            let title = format!("`{}` is not {what}", text.value);
            let help = format!("write it as in `{example}`");
            self.report.push(Problem::new(&text.span, title, help));
        }
        Some(At::new(value?, text.span))
    }

    /// Returns `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        let entry = self.take(key, ValueKind::Flag)?;
        let flag = entry.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(key, entry, "`true` or `false`", &format!("{key} = true"));
        }
        flag
    }

    /// Reads a list of lists of texts.
    pub fn lists(&mut self, key: &'static str, example: &str) -> Vec<At<Vec<At<String>>>> {
        let Some(entry) = self.take(key, ValueKind::NameLists) else { return Vec::new() };
        let Some(array) = entry.get_ref().as_array() else {
            self.wrong_type(key, entry, "a list of lists of names", example);
            return Vec::new();
        };
        let mut lists = Vec::new();
        for element in array.iter() {
            match element.get_ref().as_array() {
                Some(list) if list.is_empty() => {
                    let title = format!("an empty list in `{key}`");
                    let help = "put names into it, or remove it";
                    self.report.push(Problem::new(&element.span(), title, help));
                }
                Some(_) => {
                    lists.push(At::new(self.names(key, element, example), element.span()));
                }
                None => self.wrong_type(key, element, "a list of names", example),
            }
        }
        lists
    }

    /// Reads a list of texts.
    pub fn texts(&mut self, key: &'static str, example: &str) -> Vec<At<String>> {
        let Some(entry) = self.take(key, ValueKind::Names) else { return Vec::new() };
        self.names(key, entry, example)
    }

    fn names(&mut self, key: &str, entry: Entry<'t>, example: &str) -> Vec<At<String>> {
        let Some(array) = entry.get_ref().as_array() else {
            self.wrong_type(key, entry, "a list of names", example);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for element in array.iter() {
            match element.get_ref().as_str() {
                Some(text) => texts.push(At::new(text.to_owned(), element.span())),
                None => self.wrong_type(key, element, "a list of names", example),
            }
        }
        texts
    }

    /// Reads one of a few words; `hint` says what else it can be.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
        hint: &str,
    ) -> Option<At<T>> {
        self.choice_or(key, words, hint, |_| None)
    }

    /// Reads one of `words`, or a text that `other` knows: it returns the value or a remedy.
    pub fn choice_or<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
        hint: &str,
        other: fn(&str) -> Option<Result<T, String>>,
    ) -> Option<At<T>> {
        let entry = self.take(key, ValueKind::of_words(words.iter().map(|(word, _)| *word)))?;
        let names = || words.iter().map(|(word, _)| *word);
        let example = format!("{key} = \"{}\"", names().next().unwrap_or(""));
        let Some(text) = entry.get_ref().as_str() else {
            self.wrong_type(key, entry, "a text in quotes", &example);
            return None;
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(At::new(*value, entry.span()));
        }
        let help = match (other(text), nearest(text, names())) {
            (Some(Ok(value)), _) => return Some(At::new(value, entry.span())),
            (Some(Err(remedy)), _) => remedy,
            (None, Some(word)) => format!("did you mean `\"{word}\"`?"),
            (None, None) => format!("write {}{hint}", listed(names(), "or")),
        };
        let title = format!("`{key}` cannot be `{text}`");
        self.report.push(Problem::new(&entry.span(), title, help));
        None
    }

    /// Reads a whole number in `range`; `hint` follows the range in the help.
    pub fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        hint: &str,
    ) -> Option<At<u64>> {
        let entry = self.take(key, ValueKind::Number(range.clone()))?;
        let example = format!("{key} = {}", range.start().max(&1));
        self.within(key, entry, (&range, hint), ("a whole number", &example))
    }

    /// Reads a list of whole numbers in `range`.
    pub fn numbers(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        hint: &str,
    ) -> Vec<At<u64>> {
        let Some(entry) = self.take(key, ValueKind::Numbers(range.clone())) else {
            return Vec::new();
        };
        let (what, example) = ("a list of whole numbers", format!("{key} = [{}]", range.start()));
        let Some(array) = entry.get_ref().as_array() else {
            self.wrong_type(key, entry, what, &example);
            return Vec::new();
        };
        let each = array.iter();
        each.filter_map(|one| self.within(key, one, (&range, hint), (what, &example))).collect()
    }

    fn within(
        &mut self,
        key: &str,
        entry: Entry<'t>,
        (range, hint): (&RangeInclusive<u64>, &str),
        (what, example): (&str, &str),
    ) -> Option<At<u64>> {
        let number = self.integer(key, entry, what, example)?;
        if let Some(value) = u64::try_from(number).ok().filter(|value| range.contains(value)) {
            return Some(At::new(value, entry.span()));
        }
        let title = format!("`{key}` is {number}, out of range");
        let help = format!("write a whole number from {} to {}{hint}", range.start(), range.end());
        self.report.push(Problem::new(&entry.span(), title, help));
        None
    }

    /// Up to `most` integers of 64 bits, with or without sign.
    pub fn words(&mut self, key: &'static str, most: usize) -> Vec<u64> {
        let Some(entry) = self.take(key, ValueKind::Integers) else { return Vec::new() };
        let example = format!("{key} = [1, 2]");
        let Some(array) = entry.get_ref().as_array() else {
            self.wrong_type(key, entry, "a list of integers", &example);
            return Vec::new();
        };
        if let Some(extra) = array.get(most) {
            let title = format!("{} {key}, the most is {most}", array.len());
            let help = "pass one number from which the program finds the others".to_owned();
            self.report.push(Problem::new(&extra.span(), title, help));
        }
        let elements = array.iter().take(most);
        elements.filter_map(|element| self.word(key, element, &example)).collect()
    }

    fn word(&mut self, key: &str, element: Entry<'t>, example: &str) -> Option<u64> {
        let number = self.integer(key, element, "a list of integers", example)?;
        let word = u64::try_from(number).or(i64::try_from(number).map(i64::cast_unsigned));
        if word.is_err() {
            let title = format!("{number} does not fit into 64 bits");
            let help = "write a number from -2^63 to 2^64 - 1";
            self.report.push(Problem::new(&element.span(), title, help));
        }
        word.ok()
    }

    fn integer(
        &mut self,
        key: &str,
        entry: Entry<'_>,
        expected: &str,
        example: &str,
    ) -> Option<i128> {
        let DeValue::Integer(integer) = entry.get_ref() else {
            self.wrong_type(key, entry, expected, example);
            return None;
        };
        let number = i128::from_str_radix(integer.as_str(), integer.radix()).ok();
        if number.is_none() {
            let title = format!("`{key}` is a number of more than 128 bits");
            let help = format!("write it as in `{example}`");
            self.report.push(Problem::new(&entry.span(), title, help));
        }
        number
    }

    /// Reads a number of bytes in `range`, in whole pages.
    pub fn size(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<At<u64>> {
        let entry = self.take(key, ValueKind::Size)?;
        let bytes = match entry.get_ref() {
            DeValue::String(text) => self.size_of_text(entry, text)?,
            _ => self.integer(key, entry, "a size", &format!("{key} = \"64K\""))?,
        };
        match size_fault(key, bytes, &range) {
            None => Some(At::new(u64::try_from(bytes).unwrap_or(u64::MAX), entry.span())),
            Some((title, help)) => {
                self.report.push(Problem::new(&entry.span(), title, help));
                None
            }
        }
    }

    fn size_of_text(&mut self, entry: Entry<'_>, text: &str) -> Option<i128> {
        let size = units::size(text);
        if size.is_none() {
            let help = match units::size_as_meant(text) {
                Some(meant) => format!("write `\"{meant}\"`"),
                None => "write `\"64K\"`, `\"1M\"`, `\"2G\"`, or bytes without quotes".to_owned(),
            };
            let title = format!("`{text}` is not a size");
            self.report.push(Problem::new(&entry.span(), title, help));
        }
        size.map(i128::from)
    }

    /// Reads a time in ns, in `range`.
    pub fn duration(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<At<u64>> {
        let entry = self.take(key, ValueKind::Duration)?;
        self.time(key, entry, &range)
    }

    /// Reads a time in ns, in `range`, or a list of such times.
    pub fn durations(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Vec<At<u64>> {
        let Some(entry) = self.take(key, ValueKind::Durations) else { return Vec::new() };
        match entry.get_ref().as_array() {
            Some(list) => list.iter().filter_map(|each| self.time(key, each, &range)).collect(),
            None => self.time(key, entry, &range).into_iter().collect(),
        }
    }

    fn time(
        &mut self,
        key: &str,
        entry: Entry<'_>,
        range: &RangeInclusive<u64>,
    ) -> Option<At<u64>> {
        let Some(text) = entry.get_ref().as_str() else {
            self.wrong_type(key, entry, "a text with a unit", &format!("{key} = \"10ms\""));
            return None;
        };
        let (title, help) = match (units::duration(text), units::duration_as_meant(text)) {
            (Some(ns), _) if range.contains(&ns) => return Some(At::new(ns, entry.span())),
            (Some(_), _) => {
                let [least, most] =
                    [range.start(), range.end()].map(|ns| units::show_duration(*ns));
                let help = format!("write a time from `{least}` to `{most}`");
                (format!("`{key}` is out of range"), help)
            }
            (None, Some(meant)) => {
                (format!("`{text}` is not a duration"), format!("write `\"{meant}\"`"))
            }
            (None, None) => {
                let help = "write a number and one of ns, us, ms, s, as in `\"10ms\"`";
                (format!("`{text}` is not a duration"), help.to_owned())
            }
        };
        self.report.push(Problem::new(&entry.span(), title, help));
        None
    }

    /// Reports every key nobody asked for.
    pub fn report_unknown(&mut self) {
        let entries = self.raw.entries;
        for (key, _) in
            entries.iter().filter(|(key, _)| !self.asked.contains(&key.get_ref().as_ref()))
        {
            let written = key.get_ref();
            let help = match nearest(written, self.asked.iter().copied()) {
                _ if written == INCLUDE => "write it before the first table".to_owned(),
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("it has {}", listed(self.asked.iter().copied(), "and")),
            };
            let title = format!("unknown key `{written}` in {}", self.header);
            self.report.push(Problem::new(&key.span(), title, help));
        }
    }
}

/// Returns the mistake in `bytes` as a size, and the remedy.
fn size_fault(key: &str, bytes: i128, range: &RangeInclusive<u64>) -> Option<(String, String)> {
    let (least, most) = (units::show_size(*range.start()), units::show_size(*range.end()));
    let between = format!("write a size from `\"{least}\"` to `\"{most}\"`");
    if bytes < 0 {
        return Some((format!("`{key}` is negative"), between));
    }
    if bytes == 0 && *range.start() > 0 {
        return Some((format!("`{key}` is zero"), between));
    }
    let Some(size) = u64::try_from(bytes).ok().filter(|size| size <= range.end()) else {
        return Some((format!("`{key}` is larger than {most}"), between));
    };
    if !size.is_multiple_of(PAGE_BYTES) {
        let title = format!("`{key}` is not a whole number of pages of {PAGE_BYTES} bytes");
        let up = units::show_size(size.next_multiple_of(PAGE_BYTES));
        return Some((title, format!("write `\"{up}\"`, the next multiple of 4K")));
    }
    (size < *range.start()).then(|| (format!("`{key}` is smaller than {least}"), between))
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
