//! The numbers that a bill needs and the description lacks.

use diapason_abi::Nanos;

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

/// Returns the longest time that `process` takes for a message, which the description says
/// at `place`. A bound that counts no time there would be no bound.
pub(crate) fn said(work_ns: Option<u64>, process: &str, place: &str) -> Result<Nanos, Missing> {
    work_ns.map(Nanos).ok_or_else(|| {
        let what = format!("nothing says how long `{process}` takes for a message");
        (what, format!("add `work = \"10us\"` {place}: the longest it takes"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_not_said_is_no_time_of_zero() {
        assert_eq!(said(Some(0), "display", "to the `[[pipe]]`"), Ok(Nanos::ZERO));
        let (what, remedy) = said(None, "display", "to the `[[pipe]]`").unwrap_err();
        assert_eq!(what, "nothing says how long `display` takes for a message");
        assert_eq!(remedy, "add `work = \"10us\"` to the `[[pipe]]`: the longest it takes");
    }

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
