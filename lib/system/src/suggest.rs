//! "Did you mean": the candidate closest to a mistyped word.

/// Returns the candidate nearest to `word`, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = word.chars().count();
    // A third of the word may differ, but never all of it.
    let limit = (length.max(3) / 3).min(length.saturating_sub(1));
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= 4 * limit)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut older: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substituted = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substituted.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(older[j - 2] + 1);
            }
            row.push(best);
        }
        older = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Returns the words quoted, as "`a`, `b` and `c`", for a help line.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>, last_joint: &str) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} {last_joint} {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let keys = ["priority", "program", "heap"];
        assert_eq!(nearest("priorty", keys), Some("priority"));
        assert_eq!(nearest("paeh", keys), None);
        assert_eq!(nearest("hepa", keys), Some("heap"));
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("p", ["q"]), None);
    }

    #[test]
    fn lists_read_as_english() {
        assert_eq!(listed([], "or"), "none");
        assert_eq!(listed(["a"], "or"), "`a`");
        assert_eq!(listed(["a", "b", "c"], "and"), "`a`, `b` and `c`");
    }
}
