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

/// What is wrong with a function with this body, each as message and remedy.
pub fn problems(body: &str) -> Vec<String> {
    let mut function = syn::parse_str(&format!("fn task() {{ {body} }}")).expect(body);
    match analyse(&mut function) {
        Ok(analysis) => panic!("{body}: no problem: {:?}", analysis.sites),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// Random numbers (splitmix64): the same seed, the same numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
