//! The fuzzer of one target. `cargo xtask fuzz` builds it with the compiler's counters of branches
//! and starts it.

mod coverage;

use coverage::BranchCounters;
use diapason_fuzz::corpus;
use diapason_fuzz::engine::Fuzzer;
use diapason_fuzz::targets::{Begun, FuzzTarget};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Exit code of a finding, as of all commands here.
const FOUND: i32 = 1;
/// Exit code of a wrong command.
const WRONG: i32 = 2;
/// Seconds that an input may take; the machine may be busy with others.
const PATIENCE: u64 = 60;

/// The input that runs.
static CURRENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// How many inputs ran.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// The words of the command line: target, checkout, and `attack COUNT SEED`, `keep COUNT SEED` or
/// `input FILE`.
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [name, root, rest @ ..] = &words[..] else { wrong("TARGET CHECKOUT …") };
    let root = Path::new(root);
    let Some(target) = FuzzTarget::find(name) else { wrong("no such target") };
    let Begun { mut run, first } = target.begin(root);
    watch(name, root);
    let mut run = |bytes: &[u8]| {
        RUNS.fetch_add(1, Relaxed);
        if let Ok(mut current) = CURRENT.lock() {
            current.clear();
            current.extend_from_slice(bytes);
        }
        run(bytes);
    };
    match rest {
        ["input", file] => match std::fs::read(file) {
            Ok(bytes) => run(&bytes),
            Err(error) => wrong(&format!("{file}: {error}")),
        },
        [kind @ ("attack" | "keep"), count, seed] => {
            let (Ok(count), Ok(seed)) = (count.parse(), seed.parse()) else { wrong("a number") };
            let path = corpus::path(root, name);
            let kept = match corpus::read(&path) {
                Ok(kept) => kept,
                Err(error) => wrong(&format!("{}: {error}", path.display())),
            };
            let first = first.into_iter().chain(kept).collect();
            attack(name, &mut run, first, (count, seed), (*kind == "keep").then_some(&path));
        }
        _ => wrong("attack COUNT SEED, keep COUNT SEED or input FILE"),
    }
}

fn attack(
    name: &str,
    run: &mut dyn FnMut(&[u8]),
    first: Vec<Vec<u8>>,
    (count, seed): (u64, u64),
    keep: Option<&PathBuf>,
) {
    if BranchCounters::branches() == 0 {
        wrong("this program has no counters: start it by `cargo xtask fuzz`");
    }
    let mut fuzzer = Fuzzer::new(run, BranchCounters::default(), seed, first);
    let before = (fuzzer.inputs(), fuzzer.reached);
    fuzzer.attack(count);
    println!(
        "{name}: {count} inputs from seed {seed}; {} reach something of their own ({} before), {} \
         branches and counts ({} before)",
        fuzzer.inputs(),
        before.0,
        fuzzer.reached,
        before.1,
    );
    let Some(path) = keep else { return };
    let inputs = fuzzer.essence();
    if let Err(error) = corpus::write(path, &inputs) {
        wrong(&format!("{}: {error}", path.display()));
    }
    println!("{name}: {} inputs are kept", inputs.len());
}

/// Reports an input that panics, and one that does not end.
fn watch(name: &str, root: &Path) {
    let (name, folder) = (name.to_owned(), root.join("target/fuzz"));
    let own = (name.clone(), folder.clone());
    std::panic::set_hook(Box::new(move |info| {
        println!("{info}");
        report(&own.0, &own.1);
    }));
    std::thread::spawn(move || {
        let mut last = (RUNS.load(Relaxed), 0);
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let runs = RUNS.load(Relaxed);
            last = if runs == last.0 { (runs, last.1 + 1) } else { (runs, 0) };
            if last.1 == PATIENCE {
                println!("the input does not end");
                report(&name, &folder);
            }
        }
    });
}

/// Writes the input that runs into a file, says how to run it again, and ends the process.
fn report(name: &str, folder: &Path) -> ! {
    let input = CURRENT.lock().map(|current| current.clone()).unwrap_or_default();
    let sum = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = folder.join(format!("{name}-{sum:016x}"));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, &input));
    if let Err(error) = written {
        println!("{}: {error}", path.display());
    }
    println!("again: cargo xtask fuzz {name} --input {}", path.display());
    std::process::exit(FOUND)
}

fn wrong(text: &str) -> ! {
    eprintln!("error: {text}");
    std::process::exit(WRONG)
}
