//! JSON Schemas of what the command prints, and whether a value is as a schema says.
//!
//! Users read these schemas. Tests and the developer's commands hold every output to them, so that
//! no field changes unnoticed.

use serde_json::Value;

/// The schemas of outputs, by the kind of result.
pub const RESULTS: [(&str, &str); 7] = [
    ("plan", include_str!("../../schema/plan.json")),
    ("run", include_str!("../../schema/run.json")),
    ("difference", include_str!("../../schema/difference.json")),
    ("measure", include_str!("../../schema/measure.json")),
    ("signals", include_str!("../../schema/signals.json")),
    ("bench", include_str!("../../schema/bench.json")),
    ("reproduction", include_str!("../../schema/reproduction.json")),
];

/// Whether a field that a schema does not name is a mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unnamed {
    /// Only where the schema says so.
    AsSaid,
    /// The field always is one.
    Wrong,
}

/// Returns what is wrong with an output of this version of the command. A field that its schema
/// does not name is wrong, too.
#[must_use]
pub fn wrong_output(output: &Value) -> Vec<String> {
    let kind = output["result"].as_str().unwrap_or_default();
    let Some((_, text)) = RESULTS.iter().find(|(name, _)| *name == kind) else {
        return vec![format!("there is no schema of the result `{kind}`")];
    };
    match serde_json::from_str(text) {
        Ok(schema) => wrong(output, &schema, Unnamed::Wrong),
        Err(error) => vec![format!("the schema of `{kind}` is no JSON: {error}")],
    }
}

/// Returns what is wrong with a value. Of JSON Schema it knows the words that ours have.
#[must_use]
pub fn wrong(value: &Value, schema: &Value, unnamed: Unnamed) -> Vec<String> {
    let mut check = Check { root: schema, unnamed, found: Vec::new() };
    check.value(value, schema, "");
    check.found
}

struct Check<'a> {
    root: &'a Value,
    unnamed: Unnamed,
    found: Vec<String>,
}

impl<'a> Check<'a> {
    fn value(&mut self, value: &Value, schema: &'a Value, at: &str) {
        if let Some(name) = schema["$ref"].as_str() {
            let part = &self.root["$defs"][name.trim_start_matches("#/$defs/")];
            self.value(value, part, at);
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            let tried = alternatives.iter().map(|each| self.alone(value, each, at));
            let of_the_nearest = tried.min_by_key(Vec::len).unwrap_or_default();
            self.found.extend(of_the_nearest);
        }
        self.kind(value, schema, at);
        self.text_or_number(value, schema, at);
        for (index, each) in value.as_array().into_iter().flatten().enumerate() {
            self.value(each, &schema["items"], &format!("{at}[{index}]"));
        }
        if value.is_object() {
            self.fields(value, schema, at);
        }
    }

    /// Returns what is wrong with a value by another schema alone.
    fn alone(&self, value: &Value, schema: &'a Value, at: &str) -> Vec<String> {
        let mut check = Check { root: self.root, unnamed: self.unnamed, found: Vec::new() };
        check.value(value, schema, at);
        check.found
    }

    fn kind(&mut self, value: &Value, schema: &Value, at: &str) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let kinds = &schema["type"];
        let is_one_of = kinds.as_array().is_some_and(|kinds| kinds.contains(&kind.into()));
        if !kinds.is_null() && *kinds != kind && !is_one_of {
            self.found.push(format!("{at}: {value} is no {kinds}"));
        }
    }

    fn text_or_number(&mut self, value: &Value, schema: &Value, at: &str) {
        if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
            self.found.push(format!("{at}: {value} is none of {}", schema["enum"]));
        }
        if schema.get("const").is_some_and(|only| only != value) {
            self.found.push(format!("{at}: {value} is not {}", schema["const"]));
        }
        if let (Some(number), Some(least)) = (value.as_u64(), schema["minimum"].as_u64())
            && (number < least || number > schema["maximum"].as_u64().unwrap_or(u64::MAX))
        {
            self.found.push(format!("{at}: {number} is out of range"));
        }
        // The only pattern is that of durations.
        if let (Some(text), true) = (value.as_str(), schema["pattern"].is_string()) {
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            if unit == text || !["ns", "us", "ms", "s"].contains(&unit) {
                self.found.push(format!("{at}: {text} is no duration"));
            }
        }
    }

    fn fields(&mut self, value: &Value, schema: &'a Value, at: &str) {
        let others = &schema["additionalProperties"];
        for (key, inner) in value.as_object().into_iter().flatten() {
            let closed = *others == false
                || self.unnamed == Unnamed::Wrong && schema["properties"].is_object();
            match schema["properties"].get(key) {
                Some(of_key) => self.value(inner, of_key, &format!("{at}.{key}")),
                None if others.is_object() => self.value(inner, others, &format!("{at}.{key}")),
                None if closed => self.found.push(format!("{at}: unknown key {key}")),
                None => {}
            }
        }
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.get(key).is_none() {
                self.found.push(format!("{at}: no {key}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn difference() -> Value {
        let side = json!({ "file": "a.toml", "system": "a", "holds": true });
        let change = json!({ "path": ["holds"], "before": true, "after": null });
        json!({
            "format": 1, "result": "difference", "before": side, "after": side,
            "differences": [change],
        })
    }

    #[test]
    fn every_change_of_a_field_is_found() {
        assert_eq!(wrong_output(&difference()), Vec::<String>::new());
        let changed = |change: fn(&mut Value)| {
            let mut value = difference();
            change(&mut value);
            wrong_output(&value)
        };
        assert_eq!(changed(|it| it["format"] = 2.into()), [".format: 2 is not 1"]);
        let new = [".before: unknown key new"];
        assert_eq!(changed(|it| it["before"]["new"] = 1.into()), new);
        let other = [".differences[0].path[0]: 7 is no \"string\""];
        assert_eq!(changed(|it| it["differences"][0]["path"][0] = 7.into()), other);
        let gone = |it: &mut Value| {
            it["after"].as_object_mut().unwrap().remove("file");
        };
        assert_eq!(changed(gone), [".after: no file"]);
        assert_eq!(wrong_output(&json!({})), ["there is no schema of the result ``"]);
    }

    #[test]
    fn of_several_alternatives_the_nearest_says_what_is_wrong() {
        let of = |kind: &str| json!({ "properties": { "a": { "type": kind } }, "required": ["a"] });
        let schema = json!({ "anyOf": [of("string"), of("integer"), { "type": "null" }] });
        let found = |value: Value| wrong(&value, &schema, Unnamed::AsSaid);
        assert!(found(json!({ "a": "x" })).is_empty() && found(json!({ "a": 1 })).is_empty());
        assert!(found(Value::Null).is_empty() && found(json!({ "a": 1, "b": 2 })).is_empty());
        assert_eq!(found(json!({ "a": [] })), [".a: [] is no \"string\""]);
        assert_eq!(found(json!({ "a": 1.5 })).len(), 1);
    }

    #[test]
    fn every_schema_is_json_and_names_its_result() {
        for (kind, text) in RESULTS {
            let schema: Value = serde_json::from_str(text).unwrap();
            let forms = schema["$defs"].as_object().unwrap().values();
            let named = forms.filter(|form| form["properties"]["result"]["const"] == kind);
            assert!(named.count() > 0, "{kind}");
        }
    }
}
