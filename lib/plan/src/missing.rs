//! The numbers that a bill needs and the description lacks.

/// Something a bill needs is not in the description: what, and the remedy.
pub(crate) type Missing = (String, String);

/// Returns the refusal of a bill for threads whose work is not declared.
pub(crate) fn works(names: &[&str]) -> Missing {
    let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    let verb = if names.len() == 1 { "takes" } else { "take" };
    let each = names.iter().map(|name| format!("`name = \"{name}\"`")).collect::<Vec<_>>();
    let remedy = format!("add `[[work]]` with {} and `worst = \"40us\"`", each.join(", one with "));
    (format!("nothing says how long {listed} {verb}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_work_and_several() {
        let (what, remedy) = works(&["a"]);
        assert_eq!(what, "nothing says how long `a` takes");
        assert_eq!(remedy, "add `[[work]]` with `name = \"a\"` and `worst = \"40us\"`");
        let (what, remedy) = works(&["a", "b"]);
        assert_eq!(what, "nothing says how long `a` and `b` take");
        assert!(remedy.contains("`name = \"a\"`, one with `name = \"b\"`"), "{remedy}");
    }
}
