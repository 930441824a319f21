//! Random tasks are run, and every hint is held against what the task really does next.

use diapason_hints_logic::listing;
use diapason_random::Random;
use std::collections::HashMap;
use std::fmt::Write;

const MUTEXES: usize = 3;
const FLAGS: usize = 3;
/// Events after which a run is long enough.
const STEPS_MAX: usize = 200;

/// A task, statement by statement. Every statement is a line, and the line is its name.
enum Code {
    Wait(usize),
    Lock(usize),
    Set(usize),
    If(usize, Vec<Code>, Vec<Code>),
    /// A condition that only the run decides.
    Chance(Vec<Code>, Vec<Code>),
    /// `if c0 && !c1`
    Both(usize, usize, Vec<Code>),
    For {
        line: usize,
        turns: usize,
        body: Vec<Code>,
    },
    While(usize, Vec<Code>),
    Loop(Vec<Code>),
    Break,
    Continue,
    Return,
}

struct Author<'a> {
    random: &'a mut Random,
    text: String,
    line: usize,
}

impl Author<'_> {
    fn write(&mut self, text: &str) -> usize {
        self.line += 1;
        let _ = writeln!(self.text, "{text}");
        self.line
    }

    fn block(&mut self, depth: usize, in_loop: bool) -> Vec<Code> {
        let length = self.random.index(4);
        (0..length).map(|_| self.code(depth, in_loop)).collect()
    }

    fn inside(&mut self, open: &str, depth: usize, in_loop: bool) -> Vec<Code> {
        self.write(open);
        let body = self.block(depth, in_loop);
        self.write("}");
        body
    }

    fn code(&mut self, depth: usize, in_loop: bool) -> Code {
        let flag = self.random.index(FLAGS);
        let mutex = self.random.index(MUTEXES);
        let choice = if depth == 0 { self.random.index(9) } else { self.random.index(18) };
        match choice {
            0..=3 => Code::Wait(self.write("e.wait(t)?;")),
            4 | 5 => {
                self.write(&format!("m{mutex}.lock()?;"));
                Code::Lock(mutex)
            }
            6 => {
                self.write(&format!("c{flag} = read();"));
                Code::Set(flag)
            }
            7 if in_loop => self.jump(),
            7 | 8 => Code::Lock({
                self.write(&format!("(&m{mutex}).lock_until(t)?;"));
                mutex
            }),
            9 | 10 => {
                let yes = self.inside(&format!("if c{flag} {{"), depth - 1, in_loop);
                let no = self.inside("else {", depth - 1, in_loop);
                Code::If(flag, yes, no)
            }
            11 => {
                let yes = self.inside("if read() {", depth - 1, in_loop);
                let no = self.inside("else {", depth - 1, in_loop);
                Code::Chance(yes, no)
            }
            12 => {
                let other = self.random.index(FLAGS);
                let open = format!("if c{flag} && !c{other} {{");
                Code::Both(flag, other, self.inside(&open, depth - 1, in_loop))
            }
            13..=15 => self.counted(depth),
            16 => Code::While(flag, self.inside(&format!("while c{flag} {{"), depth - 1, true)),
            _ => Code::Loop(self.inside("loop {", depth - 1, true)),
        }
    }

    fn jump(&mut self) -> Code {
        match self.random.index(5) {
            0 => {
                self.write("return;");
                Code::Return
            }
            1 | 2 => {
                self.write("continue;");
                Code::Continue
            }
            _ => {
                self.write("break;");
                Code::Break
            }
        }
    }

    fn counted(&mut self, depth: usize) -> Code {
        let turns = self.random.index(4);
        let literal = self.random.index(2) == 0;
        let end = if literal { turns.to_string() } else { format!("n{turns}") };
        let line = self.line + 1;
        let body = self.inside(&format!("for _ in 0..{end} {{"), depth - 1, true);
        Code::For { line, turns, body }
    }
}

/// Why a block is left.
#[derive(PartialEq)]
enum Way {
    On,
    Break,
    Continue,
    Out,
}

struct Runner<'a> {
    random: &'a mut Random,
    hints: HashMap<usize, String>,
    flags: [bool; FLAGS],
    /// Turns left of the counted loops that run, by line.
    left: HashMap<usize, usize>,
    /// The next lock that the last wait announced.
    announced: Option<Option<usize>>,
    events: usize,
    text: &'a str,
}

impl Runner<'_> {
    fn happens(&mut self, lock: Option<usize>) {
        if let Some(announced) = self.announced.take() {
            assert_eq!(announced, lock, "{}\n{:?}", self.text, self.hints);
        }
        self.events += 1;
    }

    /// Returns the meaning of a hint here and now, read as a person would read the listing.
    fn meaning(&self, hint: &str) -> Option<usize> {
        if let Some(mutex) = hint.strip_prefix("lock `m") {
            return mutex.strip_suffix('`').map(|digits| digits.parse().unwrap());
        }
        let Some(rest) = hint.strip_prefix("if ") else {
            assert_eq!(hint, "none");
            return None;
        };
        let (test, rest) = rest.split_once(": ").unwrap();
        let (yes, no) = alternatives(rest);
        self.meaning(if self.holds(test) { yes } else { no })
    }

    fn holds(&self, test: &str) -> bool {
        if let Some(line) = test.strip_prefix("last turn of the loop at line ") {
            return self.left[&line.parse().unwrap()] == 0;
        }
        if let Some(range) = test.strip_prefix("`(0..") {
            return range.strip_suffix(") is empty`").unwrap().trim_start_matches('n') == "0";
        }
        self.flags[test.strip_prefix("`c").unwrap()[..1].parse::<usize>().unwrap()]
    }

    fn block(&mut self, block: &[Code]) -> Way {
        for code in block {
            if self.events > STEPS_MAX {
                return Way::Out;
            }
            match self.code(code) {
                Way::On => {}
                way => return way,
            }
        }
        Way::On
    }

    fn code(&mut self, code: &Code) -> Way {
        match code {
            Code::Wait(line) => {
                self.happens(None);
                self.announced = Some(self.meaning(&self.hints[line]));
                Way::On
            }
            Code::Lock(mutex) => {
                self.happens(Some(*mutex));
                Way::On
            }
            Code::Set(flag) => {
                self.flags[*flag] = self.random.index(2) == 0;
                Way::On
            }
            Code::If(flag, yes, no) => self.block(if self.flags[*flag] { yes } else { no }),
            Code::Chance(yes, no) => {
                let yes = if self.random.index(2) == 0 { yes } else { no };
                self.block(yes)
            }
            Code::Both(a, b, yes) if self.flags[*a] && !self.flags[*b] => self.block(yes),
            Code::Both(..) => Way::On,
            Code::For { line, turns, body, .. } => {
                for turn in 0..*turns {
                    self.left.insert(*line, turns - 1 - turn);
                    match self.block(body) {
                        Way::Break => break,
                        Way::Out => return Way::Out,
                        Way::On | Way::Continue => {}
                    }
                }
                Way::On
            }
            Code::While(flag, body) => self.repeat(body, Some(*flag)),
            Code::Loop(body) => self.repeat(body, None),
            Code::Break => Way::Break,
            Code::Continue => Way::Continue,
            Code::Return => Way::Out,
        }
    }

    fn repeat(&mut self, body: &[Code], flag: Option<usize>) -> Way {
        for _ in 0..STEPS_MAX {
            if flag.is_some_and(|flag| !self.flags[flag]) {
                return Way::On;
            }
            match self.block(body) {
                Way::Break => return Way::On,
                Way::Out => return Way::Out,
                Way::On | Way::Continue => {}
            }
        }
        self.events = STEPS_MAX + 1;
        Way::Out
    }
}

/// Splits `A, else: B` at the `else` that belongs to this `if`.
fn alternatives(text: &str) -> (&str, &str) {
    let mut open = 0;
    let mut at = 0;
    loop {
        let rest = &text[at..];
        match rest.strip_prefix(", else: ") {
            Some(no) if open == 0 => return (&text[..at], no),
            Some(_) => open -= 1,
            None if rest.starts_with("if ") => open += 1,
            None => {}
        }
        at += rest.chars().next().unwrap().len_utf8();
    }
}

/// The findings of a campaign.
#[derive(Default, Debug)]
struct Seen {
    accepted: usize,
    refused: usize,
    locks: usize,
    conditional: usize,
}

/// Writes `count` tasks; runs those that get hints, each a few times.
fn campaign(seed: u64, count: usize) -> Seen {
    let mut random = Random::new(seed);
    let mut seen = Seen::default();
    for _ in 0..count {
        let mut author = Author { random: &mut random, text: String::new(), line: 0 };
        author.write("#[hints] fn task() {");
        let task = author.block(3, false);
        author.write("}");
        let text = author.text;
        let listing = listing(&text).unwrap();
        let [(_, sites)] = &listing.tasks[..] else {
            seen.refused += 1;
            continue;
        };
        seen.accepted += 1;
        let hints: HashMap<usize, String> =
            sites.iter().map(|site| (site.line, site.hint.clone())).collect();
        seen.locks += hints.values().filter(|hint| hint.starts_with("lock")).count();
        seen.conditional += hints.values().filter(|hint| hint.starts_with("if")).count();
        for _ in 0..8 {
            let flags = [0; FLAGS].map(|_| random.index(2) == 0);
            let hints = hints.clone();
            let left = HashMap::new();
            let mut runner = Runner {
                random: &mut random,
                hints,
                flags,
                left,
                announced: None,
                events: 0,
                text: &text,
            };
            runner.block(&task);
            if runner.events <= STEPS_MAX {
                runner.happens(None);
            }
        }
    }
    seen
}

#[test]
fn hints_come_true() {
    let seen = campaign(3, 3_000);
    assert!(seen.accepted > 500 && seen.refused > 100, "{seen:?}");
    assert!(seen.locks > 150 && seen.conditional > 50, "{seen:?}");
}

#[test]
#[ignore = "a campaign of minutes"]
fn hints_come_true_in_many_tasks() {
    let seen = campaign(4, 200_000);
    assert!(seen.conditional > 5_000, "{seen:?}");
}
