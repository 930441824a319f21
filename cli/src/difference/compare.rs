//! Finds what differs between two JSON values. Elements of lists are matched by their names, so a
//! thread or a pipe that is inserted changes nothing but itself.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One value that differs. A side that lacks it has none.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// Keys of objects and names of elements, from the outside.
    pub path: Vec<String>,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// Returns all differences, in the order of the first value, then what only the second one has.
#[must_use]
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&mut Vec::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(
    path: &mut Vec<String>,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            each(path, &fields(before), &fields(after), found);
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let parts = name_parts(before, after);
            each(path, &named(before, parts), &named(after, parts), found);
        }
        (before, after) => {
            let (before, after) = (before.cloned(), after.cloned());
            found.push(Difference { path: path.clone(), before, after });
        }
    }
}

/// Compares what has the same name, in the order of the first side.
fn each(
    path: &mut Vec<String>,
    before: &[(String, &Value)],
    after: &[(String, &Value)],
    found: &mut Vec<Difference>,
) {
    let of_after: BTreeMap<&str, &Value> =
        after.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let of_before: BTreeMap<&str, &Value> =
        before.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let added = after.iter().filter(|(name, _)| !of_before.contains_key(name.as_str()));
    for (name, _) in before.iter().chain(added) {
        path.push(name.clone());
        let sides = (of_before.get(name.as_str()), of_after.get(name.as_str()));
        compare(path, sides.0.copied(), sides.1.copied(), found);
        path.pop();
    }
}

fn fields(object: &Map<String, Value>) -> Vec<(String, &Value)> {
    object.iter().map(|(name, value)| (name.clone(), value)).collect()
}

/// Returns the texts at the beginning of an element: its name, and what belongs to it.
fn texts(element: &Value) -> Vec<&str> {
    match element {
        Value::String(text) => vec![text],
        Value::Object(object) => object.values().map_while(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns how many texts tell the elements of both lists apart, each list by itself. Elements
/// without such texts have none, and are told apart by their places.
fn name_parts(before: &[Value], after: &[Value]) -> usize {
    let most = before.iter().chain(after).map(|element| texts(element).len()).min().unwrap_or(0);
    let apart = |list: &[Value], parts: usize| {
        let mut names: Vec<Vec<&str>> =
            list.iter().map(|element| texts(element)[..parts].to_vec()).collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1])
    };
    (1..=most).find(|parts| apart(before, *parts) && apart(after, *parts)).unwrap_or(most.min(1))
}

/// Returns each element with its name. The second of a name has its number after it.
fn named(list: &[Value], parts: usize) -> Vec<(String, &Value)> {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let name = |element: &Value| texts(element)[..parts].join(" ");
    let numbered = list.iter().map(|element| {
        let name = name(element);
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        let full = match (*count, name.is_empty()) {
            (1, false) => name,
            (_, true) => format!("number {count}"),
            (_, false) => format!("{name} (number {count})"),
        };
        (full, element)
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(before: Value, after: Value) -> Vec<String> {
        let said = |it: &Difference| {
            let side = |value: &Option<Value>| {
                value.as_ref().map_or_else(|| String::from("nothing"), Value::to_string)
            };
            format!("{}: {} then {}", it.path.join("/"), side(&it.before), side(&it.after))
        };
        differences(&before, &after).iter().map(said).collect()
    }

    #[test]
    fn equal_values_do_not_differ() {
        let value = json!({ "holds": true, "pipes": [{ "pipe": "a", "bound_ns": 1 }] });
        assert!(said(value.clone(), value).is_empty());
    }

    #[test]
    fn elements_are_matched_by_their_names() {
        let before = json!([{ "vcpu": "a", "kind": "main", "n": 1 }, { "vcpu": "b", "n": 2 }]);
        let after = json!([{ "vcpu": "new", "n": 7 }, { "vcpu": "b", "n": 3 },
                           { "vcpu": "a", "kind": "io", "n": 1 }]);
        let new = json!({ "vcpu": "new", "n": 7 });
        assert_eq!(
            said(before, after),
            [
                String::from(r#"a/kind: "main" then "io""#),
                String::from("b/n: 2 then 3"),
                format!("new: nothing then {new}"),
            ]
        );
    }

    #[test]
    fn a_name_has_as_many_texts_as_tell_elements_apart() {
        let of = |first: u64, second: u64| {
            json!([{ "process": "p", "thread": "a", "n": first },
                   { "process": "p", "thread": "b", "n": second }])
        };
        assert_eq!(said(of(1, 2), of(1, 3)), ["p b/n: 2 then 3"]);
    }

    #[test]
    fn elements_without_a_name_are_matched_by_their_places() {
        let before = json!([{ "time_ns": 1 }, { "time_ns": 2 }]);
        let after = json!([{ "time_ns": 1 }, { "time_ns": 5 }, 3]);
        assert_eq!(said(before, after), ["number 2/time_ns: 2 then 5", "number 3: nothing then 3"]);
        assert_eq!(said(json!(["x", "x"]), json!(["x"])), [r#"x (number 2): "x" then nothing"#]);
    }
}
