//! The findings of a plan, or the mistakes of a description, in SARIF 2.1.0.
//!
//! Services that show findings beside the lines of a change read this format.

use diapason_system::Diagnostics;
use serde_json::{Value, json};

/// The subject of a finding: the rule that it breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindingRule {
    /// The description makes no sense.
    Description,
    /// The description makes sense, but something that it promises is not proved.
    Promise,
    /// A program that a process names does not exist; the plan does not need it.
    Program,
}

impl FindingRule {
    const ALL: [FindingRule; 3] =
        [FindingRule::Description, FindingRule::Promise, FindingRule::Program];

    const fn id(self) -> &'static str {
        match self {
            FindingRule::Description => "description",
            FindingRule::Promise => "promise",
            FindingRule::Program => "program",
        }
    }

    const fn level(self) -> &'static str {
        match self {
            FindingRule::Description | FindingRule::Promise => "error",
            FindingRule::Program => "warning",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            FindingRule::Description => "A description makes sense.",
            FindingRule::Promise => "The plan proves every promise of a description.",
            FindingRule::Program => "Every program that a process names exists.",
        }
    }
}

/// Returns a log with one run: the findings by the rules that they break, each at its place.
#[must_use]
pub fn log(found: &[(FindingRule, Vec<Diagnostics>)]) -> Value {
    let rules = FindingRule::ALL
        .map(|rule| json!({ "id": rule.id(), "shortDescription": { "text": rule.text() } }));
    let of_rule = |(rule, found): &(FindingRule, Vec<Diagnostics>)| -> Vec<Value> {
        found.iter().flat_map(|found| results(*rule, found)).collect()
    };
    let results = found.iter().flat_map(of_rule);
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "diapason",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Value>(),
        }],
    })
}

fn results(rule: FindingRule, found: &Diagnostics) -> Vec<Value> {
    let location = |item: &diapason_system::ProblemSummary<'_>| {
        json!({ "physicalLocation": {
            "artifactLocation": { "uri": uri(item.file) },
            "region": { "startLine": item.line, "startColumn": item.column },
        } })
    };
    let result = |item: &diapason_system::ProblemSummary<'_>| {
        json!({
            "ruleId": rule.id(),
            "level": rule.level(),
            "message": { "text": format!("{}\nhelp: {}", item.title, item.help) },
            "locations": [location(item)],
        })
    };
    found.items().iter().map(result).collect()
}

/// Returns a path as a reference: other bytes than those of plain names are escaped.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let text = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.bytes().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_is_a_result_at_its_place() {
        let text = "[system]\nname = \"s\"\n\n[[process]]\nname = \"p\"\npriority = 99\nodd = 1\n";
        let mistakes = diapason_system::parse("my car/sys.toml", text).unwrap_err();
        let log = log(&[(FindingRule::Description, vec![mistakes])]);
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["name"], "diapason");
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        for (result, (line, word)) in results.iter().zip([(6, "priority"), (7, "odd")]) {
            let place = &result["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], "my%20car/sys.toml");
            assert_eq!(place["region"]["startLine"], line);
            let text = result["message"]["text"].as_str().unwrap();
            assert!(text.contains(word) && text.contains("\nhelp: "), "{text}");
            let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
            assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]));
        }
    }

    #[test]
    fn a_plan_that_holds_has_no_results() {
        assert_eq!(log(&[(FindingRule::Promise, Vec::new())])["runs"][0]["results"], json!([]));
    }
}
