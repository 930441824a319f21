//! Tables with aligned columns, and the same rows as objects for programs.

use crate::duration::human;
use crate::output;
use serde_json::{Map, Value};
use std::borrow::Borrow;

/// The blanks between two columns.
const GAP: &str = "  ";

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    Left,
    Right,
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Returns a table with these columns.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> TextTable {
        let columns = columns.iter().map(|(name, align)| (String::from(*name), *align)).collect();
        TextTable { columns, rows: Vec::new() }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the table as lines, the header underlined; empty if it has no rows. On a terminal
    /// that is too narrow, groups of columns follow one another.
    #[must_use]
    pub fn render(&self) -> String {
        self.within(output::terminal_width())
    }

    /// Returns the table as lines of at most `most` characters, if a column is not wider than that.
    fn within(&self, most: Option<usize>) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let widths: Vec<usize> = (0..names.len()).map(|column| self.width(column)).collect();
        let rule = widths.iter().map(|width| "-".repeat(*width)).collect();
        let block = |columns: Vec<usize>| {
            let lines = [&names, &rule].into_iter().chain(&self.rows);
            lines.map(|cells| self.line(cells, &columns, &widths) + "\n").collect()
        };
        let groups = self.groups(&widths, most.unwrap_or(usize::MAX));
        groups.into_iter().map(block).collect::<Vec<String>>().join("\n")
    }

    /// Returns columns in groups that fit. Each begins with the columns at the left that name a
    /// row, if they take at most half of the width.
    fn groups(&self, widths: &[usize], most: usize) -> Vec<Vec<usize>> {
        let wide = |columns: &[usize]| {
            columns.iter().fold(0usize, |sum, at| sum.saturating_add(widths[*at] + GAP.len()))
        };
        let named = self.columns.iter().take_while(|(_, align)| *align == Align::Left).count();
        let heads = (0..=named.max(1)).rev().map(|count| (0..count).collect::<Vec<usize>>());
        let heads: Vec<usize> =
            heads.into_iter().find(|it| wide(it) <= most / 2).unwrap_or_default();
        let mut groups = vec![heads.clone()];
        for (column, width) in widths.iter().enumerate().skip(heads.len()) {
            let last = groups.len() - 1;
            let fits = wide(&groups[last]) + width <= most;
            if fits || groups[last].len() == heads.len() {
                groups[last].push(column);
            } else {
                groups.push([&heads[..], &[column]].concat());
            }
        }
        groups
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        longest.max(self.columns[column].0.chars().count())
    }

    fn line(&self, cells: &[String], columns: &[usize], widths: &[usize]) -> String {
        let padded = columns.iter().map(|column| {
            let (cell, width) = (cells.get(*column).map_or("", String::as_str), widths[*column]);
            match self.columns[*column].1 {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            }
        });
        padded.collect::<Vec<String>>().join(GAP).trim_end().to_string()
    }
}

/// One value of a row: as people read it and as programs do. A missing text means that nothing is
/// known.
#[derive(Clone, PartialEq, Debug)]
pub struct TableCell {
    text: Option<String>,
    value: Value,
}

impl TableCell {
    /// Hides the value from people unless `shown`.
    #[must_use]
    pub fn only_if(self, shown: bool) -> TableCell {
        TableCell { text: self.text.filter(|_| shown), ..self }
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> TableCell {
        TableCell { text: Some(text.clone()), value: text.into() }
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> TableCell {
        String::from(text).into()
    }
}

impl From<u64> for TableCell {
    fn from(count: u64) -> TableCell {
        cell(count.to_string(), count)
    }
}

impl From<u32> for TableCell {
    fn from(count: u32) -> TableCell {
        u64::from(count).into()
    }
}

impl From<u8> for TableCell {
    fn from(count: u8) -> TableCell {
        u64::from(count).into()
    }
}

impl<C: Into<TableCell>> From<Option<C>> for TableCell {
    fn from(cell: Option<C>) -> TableCell {
        cell.map_or(TableCell { text: None, value: Value::Null }, Into::into)
    }
}

/// Returns a value that people read in another form than programs.
#[must_use]
pub fn cell(text: impl Into<String>, value: impl Into<Value>) -> TableCell {
    TableCell { text: Some(text.into()), value: value.into() }
}

/// Returns a length of time: for people in a unit that suits it, for programs in ns.
#[must_use]
pub fn time(ns: u64) -> TableCell {
    cell(human(ns), ns)
}

/// Returns `part` of `whole` in per cent with two decimals, rounded down.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let hundredths = u128::from(part) * 10_000 / u128::from(whole);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// The title of a column for people, its key for programs, or both.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    title: Option<&'a str>,
    key: Option<&'static str>,
}

impl<'a> From<&'a str> for Heading<'a> {
    fn from(title: &'a str) -> Heading<'a> {
        Heading { title: Some(title), key: None }
    }
}

impl<'a> From<(&'a str, &'static str)> for Heading<'a> {
    fn from((title, key): (&'a str, &'static str)) -> Heading<'a> {
        Heading { title: Some(title), key: Some(key) }
    }
}

impl<'a> From<(Option<&'a str>, &'static str)> for Heading<'a> {
    fn from((title, key): (Option<&'a str>, &'static str)) -> Heading<'a> {
        Heading { title, key: Some(key) }
    }
}

struct Column<'a, R> {
    head: Heading<'a>,
    align: Align,
    cell: Box<dyn Fn(&R) -> TableCell + 'a>,
}

/// The columns of rows `R`, each declared once for tables and for JSON.
pub struct Columns<'a, R>(Vec<Column<'a, R>>);

impl<R> Default for Columns<'_, R> {
    fn default() -> Self {
        Columns(Vec::new())
    }
}

impl<'a, R> Columns<'a, R> {
    fn with<C: Into<TableCell>>(
        mut self,
        head: Heading<'a>,
        align: Align,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        self.0.push(Column { head, align, cell: Box::new(move |row| cell(row).into()) });
        self
    }

    /// Adds a column of words.
    #[must_use]
    pub fn left<C: Into<TableCell>>(
        self,
        head: impl Into<Heading<'a>>,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        self.with(head.into(), Align::Left, cell)
    }

    /// Adds a column of numbers.
    #[must_use]
    pub fn right<C: Into<TableCell>>(
        self,
        head: impl Into<Heading<'a>>,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        self.with(head.into(), Align::Right, cell)
    }

    /// Adds a field that only programs see.
    #[must_use]
    pub fn json<V: Into<Value>>(self, key: &'static str, value: impl Fn(&R) -> V + 'a) -> Self {
        let head = Heading { title: None, key: Some(key) };
        self.with(head, Align::Left, move |row| TableCell { text: None, value: value(row).into() })
    }

    /// Adds the columns of `others` behind its own.
    #[must_use]
    pub fn then(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Leaves out the columns with these titles.
    #[must_use]
    pub fn without(mut self, titles: &[&str]) -> Self {
        self.0.retain(|column| column.head.title.is_none_or(|title| !titles.contains(&title)));
        self
    }

    fn shown(&self) -> impl Iterator<Item = (&Column<'a, R>, &'a str)> {
        self.0.iter().filter_map(|column| Some((column, column.head.title?)))
    }

    /// Returns the titles that people see.
    pub fn titles(&self) -> impl Iterator<Item = &'a str> {
        self.shown().map(|(_, title)| title)
    }

    /// Returns the cells of a row that people see, with `unknown` for missing values.
    pub fn cells(&self, row: &R, unknown: &str) -> Vec<String> {
        let text = |cell: TableCell| cell.text.unwrap_or_else(|| unknown.to_owned());
        self.shown().map(|(column, _)| text((column.cell)(row))).collect()
    }

    /// Returns the rows as a table, which more rows may follow.
    pub fn table(&self, rows: impl IntoIterator<Item: Borrow<R>>) -> TextTable {
        let heads: Vec<_> = self.shown().map(|(column, title)| (title, column.align)).collect();
        let mut table = TextTable::new(&heads);
        rows.into_iter().for_each(|row| table.row(self.cells(row.borrow(), "-")));
        table
    }

    /// Returns a row as an object.
    pub fn object(&self, row: &R) -> Value {
        let field = |it: &Column<'a, R>| Some((it.head.key?.to_owned(), (it.cell)(row).value));
        Value::Object(self.0.iter().filter_map(field).collect::<Map<String, Value>>())
    }

    /// Returns the rows as objects.
    pub fn objects(&self, rows: impl IntoIterator<Item: Borrow<R>>) -> Value {
        rows.into_iter().map(|row| self.object(row.borrow())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of the tests: a name, and a time that may be unknown.
    type Row = (&'static str, Option<u64>);

    #[test]
    fn shares_are_exact_at_both_ends() {
        assert_eq!(share(u64::MAX, u64::MAX), "100.00 %");
        assert_eq!(share(1, 3), "33.33 %");
        assert_eq!(share(0, 0), "-");
    }

    #[test]
    fn a_table_that_is_too_wide_continues_below() {
        let (left, right) = (Align::Left, Align::Right);
        let mut table =
            TextTable::new(&[("pipe", left), ("rate", right), ("bound", right), ("why", left)]);
        table.row(["a", "500/s", "1.614 ms", "wanted"].map(String::from).to_vec());
        let expected = "\
pipe   rate
----  -----
a     500/s

pipe     bound
----  --------
a     1.614 ms

pipe  why
----  ------
a     wanted
";
        assert_eq!(table.within(Some(19)), expected);
        assert_eq!(table.within(Some(28)).lines().count(), 7);
        // Nothing is lost where no column fits.
        let narrow = table.within(Some(1));
        assert!(["a", "500/s", "1.614 ms", "wanted"].iter().all(|cell| narrow.contains(cell)));
        let whole = table.within(None);
        assert_eq!((whole.lines().count(), whole), (3, table.within(Some(80))));
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            sizes in proptest::collection::vec(1usize..15, 1..12), most in 40usize..120,
        ) {
            let columns: Vec<(&str, Align)> = sizes.iter().map(|_| ("n", Align::Right)).collect();
            let mut table = TextTable::new(&columns);
            table.row(sizes.iter().map(|size| "x".repeat(*size)).collect());
            let text = table.within(Some(most));
            let longest = text.lines().map(str::len).max().unwrap_or(0);
            proptest::prop_assert!(longest <= most, "{longest} > {most}\n{text}");
            for size in sizes {
                let cell = "x".repeat(size);
                proptest::prop_assert!(text.split_whitespace().any(|word| word == cell));
            }
        }
    }

    #[test]
    fn one_declaration_makes_a_table_and_objects() {
        let columns = Columns::<Row>::default()
            .left(("who", "name"), |row| row.0)
            .json("letters", |row| row.0.len())
            .right(("longest", "longest_ns"), |row| row.1.map(time))
            .right("late", |row| TableCell::from(7u64).only_if(row.1.is_some()));
        let rows = [("one", Some(1_500)), ("two", None)];
        let expected = "\
who   longest  late
---  --------  ----
one  1.500 us     7
two         -     -
";
        assert_eq!(columns.table(rows).render(), expected);
        let expected = r#"[{"name":"one","letters":3,"longest_ns":1500},"#.to_owned()
            + r#"{"name":"two","letters":3,"longest_ns":null}]"#;
        assert_eq!(columns.objects(rows).to_string(), expected);
        let columns = columns.without(&["late"]);
        assert_eq!(columns.titles().collect::<Vec<_>>(), ["who", "longest"]);
        assert_eq!(columns.cells(&rows[1], "?"), ["two", "?"]);
    }

    #[test]
    fn columns_line_up() {
        let mut table = TextTable::new(&[("name", Align::Left), ("count", Align::Right)]);
        table.row(vec!["µs".into(), "12".into()]);
        table.row(vec!["longer".into(), "3".into()]);
        table.row(vec!["empty".into()]);
        let expected = "\
name    count
------  -----
µs         12
longer      3
empty
";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn a_table_without_rows_is_nothing() {
        assert_eq!(TextTable::new(&[("name", Align::Left)]).render(), "");
    }
}
