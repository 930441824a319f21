//! The rule that keeps experiments of papers out of the product.

use super::super::Problem;
use super::super::source::Tree;

/// The rooms that may speak of a paper's experiment: its reproduction, and the list of papers.
const ROOMS: [&str; 2] = ["papers/", "docs/papers.md"];

/// Words of an experiment, in small letters: what its text is called, and its apparatus.
const WORDS: [&str; 4] = [
    concat!("art", "icle"),
    concat!("ardu", "ino"),
    concat!("five", "_buses"),
    concat!("disser", "tation"),
];

/// No file outside [`ROOMS`] has one of [`WORDS`].
pub fn apart(tree: &Tree) -> Vec<Problem> {
    let product =
        tree.files.iter().filter(|file| !ROOMS.iter().any(|room| file.path.starts_with(room)));
    let lines =
        product.flat_map(|file| file.lines().map(move |(number, line)| (file, number, line)));
    let spoken = lines.filter_map(|(file, number, line)| {
        let line = line.to_lowercase();
        let word = WORDS.iter().find(|word| line.contains(**word))?;
        let text = format!(
            "`{word}` is of an experiment: make it a key of the description, or move it to papers/"
        );
        Some(Problem::new(&file.path, number, text))
    });
    spoken.collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fires_on;
    use super::*;

    #[test]
    fn words_of_an_experiment_are_found_outside_their_rooms() {
        let [text, apparatus, table, _] = WORDS;
        let said = format!("As the {text} counts.\nFine.\n{}\n", apparatus.to_uppercase());
        let constant = format!("const {}: u8 = 5;\n", table.to_uppercase());
        let files = [
            ("docs/a.md", said.as_str()),
            ("docs/papers.md", &said),
            ("papers/x/src/lib.rs", &said),
            ("lib/x/src/lib.rs", &constant),
        ];
        let expected =
            [("docs/a.md".into(), 1), ("docs/a.md".into(), 3), ("lib/x/src/lib.rs".into(), 1)];
        assert_eq!(fires_on(apart, &files), expected);
    }
}
