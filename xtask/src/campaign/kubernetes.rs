//! The manifest of a Kubernetes Job whose pods do one share each, and the image they run.
//!
//! The Job is indexed, so the cluster itself gives each pod the number of its share and starts
//! those anew that died. A share that found something is not started again: it would find it again.
//! The manifest is JSON, which `kubectl apply` takes as it takes YAML.

use super::Asked;
use super::catalogue::Size;
use diapason::failure::BROKEN;
use serde_json::{Value, json};

/// The folder of the results in a pod.
const RESULTS: &str = "/results";
/// The annotation with a pod's index.
const INDEX: &str = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
/// The longest name of a Job whose pods can have host names.
const LONGEST: usize = 63 - "-9999".len();

/// Returns the manifest. `folder` names the campaign's folder in the volume.
pub fn manifest(image: &str, folder: &str, asked: &Asked, size: &Size) -> Value {
    let mut arguments = vec![asked.name.clone()];
    arguments.extend(asked.options(size));
    arguments.push(String::from("--shard=$(SHARD)"));
    arguments.push(format!("--out={RESULTS}/{folder}"));
    let share = json!({
        "name": "share",
        "image": image,
        "args": arguments,
        "env": [{ "name": "SHARD", "valueFrom": { "fieldRef": { "fieldPath": INDEX } } }],
        "resources": { "requests": { "cpu": "1" } },
        "volumeMounts": [{ "name": "results", "mountPath": RESULTS }],
    });
    let claim = json!({
        "name": "results",
        "persistentVolumeClaim": { "claimName": asked.claim },
    });
    let found = json!({
        "action": "FailIndex",
        "onExitCodes": { "containerName": "share", "operator": "In", "values": [BROKEN] },
    });
    let pod = json!({ "restartPolicy": "Never", "containers": [share], "volumes": [claim] });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name(folder) },
        "spec": {
            "completionMode": "Indexed",
            "completions": asked.shards,
            "parallelism": asked.jobs.map_or(asked.shards, |jobs| asked.shards.min(jobs as u64)),
            "backoffLimitPerIndex": 1,
            "maxFailedIndexes": asked.shards,
            "podFailurePolicy": { "rules": [found] },
            "template": { "spec": pod },
        },
    })
}

/// Returns the name of the Job: a label of DNS.
fn name(folder: &str) -> String {
    let named = format!("diapason-{folder}").to_lowercase();
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = named.chars().map(allowed).take(LONGEST).collect();
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        asked: Asked,
    }

    fn made(words: &[&str]) -> Value {
        let asked = Command::parse_from(words).asked;
        let size = Size { count: 50, seed: asked.seed, system: String::from("a b.toml") };
        manifest("registry/diapason:abc", "search-50-7-8-abc", &asked, &size)
    }

    #[test]
    fn a_pod_does_the_share_of_its_index() {
        let words = ["campaign", "search", "--count", "50", "--seed", "7", "--shards", "8"];
        let made = made(&words);
        let spec = &made["spec"];
        assert_eq!((&spec["completions"], &spec["parallelism"]), (&json!(8), &json!(8)));
        assert_eq!(spec["completionMode"], "Indexed");
        let share = &spec["template"]["spec"]["containers"][0];
        let wanted = [
            "search",
            "--seed=7",
            "--count=50",
            "--shards=8",
            "--system=a b.toml",
            "--shard=$(SHARD)",
            "--out=/results/search-50-7-8-abc",
        ];
        assert_eq!(share["args"], json!(wanted));
        assert_eq!(share["env"][0]["name"], "SHARD");
    }

    #[test]
    fn what_a_pod_is_told_is_a_share_of_the_campaign() {
        let made = made(&["campaign", "systems", "--shards", "3", "--jobs", "2"]);
        let arguments = made["spec"]["template"]["spec"]["containers"][0]["args"].clone();
        let words: Vec<String> = serde_json::from_value(arguments).unwrap();
        let words = words.iter().map(|word| word.replace("$(SHARD)", "2"));
        let asked = Command::parse_from(std::iter::once(String::from("campaign")).chain(words));
        assert_eq!((asked.asked.shard, asked.asked.shards), (Some(2), 3));
        assert_eq!(made["spec"]["parallelism"], 2);
    }

    #[test]
    fn the_name_is_a_label_of_dns() {
        assert_eq!(name("usb-1_0-ABC-dirty"), "diapason-usb-1-0-abc-dirty");
        let long = name(&"x".repeat(90));
        assert_eq!(long.len(), LONGEST);
    }
}
