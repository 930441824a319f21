//! The common parts of this crate's tests: a sound description, programs, and how to ask.

use diapason_abi::archive::Archive;
use diapason_abi::settings::{MARK, Settings, WORDS};
use diapason_system::{Diagnostics, Permit, RunOptions, System, build, parse};

/// Uses every key of every table, but those for VCPUs.
pub const ENGINE: &str = include_str!("engine.toml");
/// Uses every key that has to do with VCPUs.
pub const SERVERS: &str = include_str!("servers.toml");

pub const OPTIONS: RunOptions =
    RunOptions { horizon_ns: 30_000_000_000, record_bytes: 65536, watch: true };

/// Returns a program of one page of code and one of data, both with contents.
pub fn program() -> Vec<u8> {
    let mut file = vec![0u8; 0x400];
    put(&mut file, 0, b"\x7fELF\x02\x01\x01");
    put(&mut file, 16, &3u16.to_le_bytes());
    put(&mut file, 18, &62u16.to_le_bytes());
    put(&mut file, 32, &64u64.to_le_bytes());
    put(&mut file, 54, &56u16.to_le_bytes());
    segment(&mut file, 1, (0x200, 0, 0x100));
    segment(&mut file, 2, (0x300, 0x1200, 0x100));
    file
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Adds a segment: its flags, its place in the file, its address and its bytes.
fn segment(file: &mut [u8], flags: u32, place: (u64, u64, u64)) {
    let at = 64 + 56 * usize::from(file[56]);
    file[56] += 1;
    put(file, at, &1u32.to_le_bytes());
    put(file, at + 4, &flags.to_le_bytes());
    for (field, value) in [(8, place.0), (16, place.1), (32, place.2), (40, place.2)] {
        put(file, at + field, &value.to_le_bytes());
    }
}

/// Returns a file that says which program it is, so that a mix-up is seen, and has room for
/// settings at its end, as its header says.
pub fn program_named(name: &str) -> Vec<u8> {
    const ROOM: u32 = 0x3000;
    let mut file = program();
    file.extend(name.bytes());
    let bytes = 8 * (MARK.len() + WORDS) as u64;
    let start = file.len() as u64;
    segment(&mut file, 4, (start, ROOM.into(), bytes));
    put(&mut file, 0x200 + 56, &ROOM.to_le_bytes());
    file.extend(MARK.iter().flat_map(|word| word.to_le_bytes()));
    file.extend([0; 8 * WORDS]);
    file
}

/// Returns the settings of process number `index` in an archive.
pub fn told(archive: &[u8], index: usize) -> Settings {
    let archive = Archive::parse(archive).unwrap();
    let record = archive.processes().nth(index).unwrap();
    let image = archive.image(&record).unwrap();
    let room = &image[image.len() - 8 * WORDS..];
    let words = room.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    Settings::of(words.collect::<Vec<u64>>().try_into().unwrap())
}

pub fn built(system: &System) -> Result<Vec<u8>, Diagnostics> {
    build(Permit::granted(), system, &OPTIONS, &mut |name| Ok(program_named(name)))
}

/// Returns all that is wrong with `text`.
#[track_caller]
pub fn problems(text: &str) -> Diagnostics {
    match parse("engine.toml", text) {
        Ok(_) => panic!("nothing was found wrong with:\n{text}"),
        Err(found) => found,
    }
}

/// Exactly one thing is wrong with `text`, here, under this title and with this help.
#[track_caller]
pub fn refused(text: &str, place: (usize, usize), title: &str, help: &str) {
    is_only(&problems(text), place, title, help);
}

#[track_caller]
pub fn is_only(found: &Diagnostics, place: (usize, usize), title: &str, help: &str) {
    let items = found.items();
    assert_eq!(items.len(), 1, "{found}");
    assert_eq!((items[0].title, items[0].help), (title, help));
    assert_eq!((items[0].line, items[0].column), place, "{found}");
    assert!(found.plain().contains(&format!("engine.toml:{}:{}\n", place.0, place.1)), "{found}");
}
