//! The slowest message of each pipe: where it was when, stage by stage. Bars of bills lead here.

use super::facts::Facts;
use crate::chart::escaped;
use crate::simulate::{Life, render_life};

/// Returns the slowest messages of a host, each folded up; nothing without any.
pub fn worst(facts: &Facts<'_>) -> String {
    let named = facts.session.system.pipes.iter().zip(&facts.lives.seen);
    let lives = named.filter_map(|(pipe, seen)| Some((&pipe.name, seen.worst.as_ref()?)));
    lives.map(|(pipe, life)| details(facts, pipe, life)).collect()
}

/// The place is inside what is folded up: a browser that goes there opens it.
fn details(facts: &Facts<'_>, pipe: &str, life: &Life) -> String {
    let text = render_life(life, pipe, |_| (&facts.watch.cast, &facts.session.names));
    let (id, name) = (facts.anchor("worst", pipe), escaped(pipe));
    format!(
        "<details><summary>The slowest message of {name}</summary>\n\
         <pre id=\"{id}\" class=\"wide\" tabindex=\"0\" role=\"group\" \
         aria-label=\"the slowest message of {name}\">{}</pre></details>\n",
        escaped(&text)
    )
}
