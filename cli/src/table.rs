//! Tables with aligned columns.

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    Left,
    Right,
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let columns = columns.iter().map(|(name, align)| (String::from(*name), *align)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as lines, the header underlined; empty if it has no rows.
    #[must_use]
    pub fn render(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let widths: Vec<usize> = (0..names.len()).map(|column| self.width(column)).collect();
        let rule = widths.iter().map(|width| "-".repeat(*width)).collect();
        let lines = [&names, &rule].into_iter().chain(&self.rows);
        lines.map(|cells| self.line(cells, &widths) + "\n").collect()
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        longest.max(self.columns[column].0.chars().count())
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let padded = self.columns.iter().zip(widths).enumerate().map(|(i, ((_, align), width))| {
            let cell = cells.get(i).map_or("", String::as_str);
            match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            }
        });
        padded.collect::<Vec<String>>().join("  ").trim_end().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Align::Left), ("count", Align::Right)]);
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
        assert_eq!(Table::new(&[("name", Align::Left)]).render(), "");
    }
}
