//! Short ways to ask about a piece of code, and random numbers that repeat.

use diapason_hints_logic::analyse;

/// The blocking calls of a function with this body, each as `call -> hint`.
pub fn hints(body: &str) -> Vec<String> {
    let mut function = syn::parse_str(&format!("fn task() {{ {body} }}")).expect(body);
    match analyse(&mut function) {
        Ok(analysis) => {
            let lines = analysis.sites.iter().map(|site| format!("{} -> {}", site.call, site.hint));
            lines.collect()
        }
        Err(problems) => panic!("{body}: {problems:?}"),
    }
}

/// Returns the problems of a function with this body, each as message and remedy.
pub fn problems(body: &str) -> Vec<String> {
    let mut function = syn::parse_str(&format!("fn task() {{ {body} }}")).expect(body);
    match analyse(&mut function) {
        Ok(analysis) => panic!("{body}: no problem: {:?}", analysis.sites),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}
