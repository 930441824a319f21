//! The partition of a stick that keeps the console of a run: what an image needs for it, and
//! `diapason results`, which reads it back.
//!
//! `diapason_contract::results` has the format. A stick may come back in any state: never booted,
//! pulled out within a write, worn out, or with the results of another image. The reader takes the
//! longest prefix of blocks that is whole, and says what is missing behind it.

use crate::duration;
use crate::failure::{BROKEN, Failure, HOLDS, UNPROVED};
use crate::output::note;
use crate::session::Session;
use diapason_abi::archive::Archive;
use diapason_abi::results::{SEGMENT, image};
use diapason_contract::disk::NAMES;
use diapason_contract::results::{
    BlockKind, PROGRAM, ResultsBlock, ResultsHeader, SECTOR, Sector, partitions,
};
use diapason_contract::settings;
use diapason_contract::threads::{ServiceKind, services};
use diapason_system::{ProcessSpec, System};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes of the partition, if nobody says how many.
pub const USUAL: &str = "4M";
/// The smallest and the largest partition.
const BYTES: [u64; 2] = [64 << 10, 1 << 30];

/// The request to `results`.
#[derive(Clone, Debug, clap::Args)]
pub struct ResultsRequest {
    /// The stick, such as `/dev/sdX`, or a copy of it.
    pub stick: PathBuf,
    /// The file to write the console to [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Bytes of a text like `4M` or `512K`.
///
/// # Errors
/// A sentence that says which sizes there are.
pub fn size(text: &str) -> Result<u64, String> {
    let units = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
    let number = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    let bytes = number.and_then(|(number, scale)| duration::scaled(number, scale));
    let [least, most] = BYTES;
    let fits = |bytes: &u64| (least..=most).contains(bytes) && bytes.is_multiple_of(SECTOR as u64);
    bytes.filter(fits).ok_or_else(|| {
        format!("`{text}` is no size for results: write 64K to 1G, for example {USUAL}")
    })
}

/// Returns an empty partition of so many bytes for the image of a system: of one session, or of
/// those of its cores.
///
/// # Errors
/// If an archive is none.
pub fn partition(sessions: &[&Session], bytes: u64) -> Result<Vec<u8>, Failure> {
    let archives = sessions.iter().map(|session| Archive::parse(&session.archive));
    let checksums = archives.map(|archive| archive.map(|archive| archive.checksum()));
    let checksums: Result<Vec<u32>, _> = checksums.collect();
    let checksums = checksums.map_err(|_| Failure::Ours(String::from("the archive is not one")))?;
    let sectors = u32::try_from(bytes / SECTOR as u64).unwrap_or(u32::MAX);
    let system = sessions.first().map_or("", |session| session.system.name.as_str());
    let image = image(checksums);
    let mut partition = ResultsHeader { sectors, image, system }.to_sector().to_vec();
    partition.resize(sectors as usize * SECTOR, 0);
    Ok(partition)
}

/// Checks that a system has all that takes its console to the stick: the first core, which these
/// systems of a host's cores begin with.
///
/// # Errors
/// A sentence that names the part that is missing, and one that says how to add it.
pub fn require(path: &Path, systems: &[System]) -> Result<(), Failure> {
    let wrong = |what: &str, help: &str| {
        let place = path.display();
        Failure::Input(format!("error: {place}: {what}\nhelp: {help}"))
    };
    let Some(system) = systems.first() else { return Ok(()) };
    let first = if systems.len() > 1 { " on core 0" } else { "" };
    let serves = system.processes.iter().any(|process| {
        process.program == settings::PROGRAM
            && services(&|name| process.setting(name)).any(|it| it == ServiceKind::Disks)
    });
    if !serves {
        return Err(wrong(
            &format!("no USB server of it{first} serves disks, so nobody can write to the stick"),
            &format!(
                "add `\"disks\"` to the `serves` of the `[process.settings]` of a `usbd`{first}"
            ),
        ));
    }
    if system.segments.iter().all(|segment| segment.name != SEGMENT) {
        return Err(wrong(
            &format!("it has no segment `{SEGMENT}`, where the kernel puts the console"),
            &format!(
                "add `[[segment]]` with `name = \"{SEGMENT}\"`, `size = \"256K\"` and \
                 `dma = true`"
            ),
        ));
    }
    let writers = system.processes.iter().filter(|process| process.program == PROGRAM);
    let writers: Vec<_> = writers.collect();
    let [writer] = writers[..] else {
        return Err(wrong(
            &format!(
                "one process with the program `{PROGRAM}` writes the stick{first}, and it has {}",
                writers.len()
            ),
            &format!(
                "add a `[[process]]` as docs/image.md has it, with a `vcpu` of its own{first}"
            ),
        ));
    };
    let [asks, answers, data, asked, ready] = NAMES[0].all();
    let needed = [SEGMENT, asks, answers, data, asked, ready];
    if let Some(name) = needed.iter().find(|name| !writer.uses.iter().any(|used| used == *name)) {
        return Err(wrong(
            &format!("`{}` does not use `{name}`", writer.name),
            &format!("add `\"{name}\"` to its `uses`"),
        ));
    }
    // Another program could forge what others measured.
    let is_other = |process: &&ProcessSpec| {
        let is_own = process.name == writer.name || process.program == settings::PROGRAM;
        !is_own && process.uses.iter().any(|used| needed.contains(&used.as_str()))
    };
    match systems.iter().flat_map(|core| &core.processes).find(is_other) {
        Some(other) => Err(wrong(
            &format!("`{}` could change the results", other.name),
            &format!("remove `{SEGMENT}` and everything of the disk from its `uses`"),
        )),
        None => Ok(()),
    }
}

/// The run that a stick has kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The name of the system.
    pub system: String,
    /// The number of the start of the PC, from 1.
    pub run: u32,
    /// The bytes of the console, as they come from a serial port.
    pub console: Vec<u8>,
    pub end: KeptEnd,
    /// Lines that were lost, because they came faster than they were written.
    pub lost: u32,
}

/// How the blocks of a run end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeptEnd {
    /// With the end of the run.
    Whole,
    /// The partition has no room for more.
    Full,
    /// No more was written.
    Open,
    /// This block is damaged, or was never written. A later one of the run is there.
    Damaged(u32),
}

impl Kept {
    /// Returns what is not as it is after a whole run.
    #[must_use]
    pub fn flaws(&self) -> Vec<String> {
        let end = match self.end {
            KeptEnd::Whole => None,
            KeptEnd::Full => Some(String::from(
                "the partition is full, and what came later is missing; write an image with more \
                 `--results`",
            )),
            KeptEnd::Open => Some(String::from(
                "the end of the run is missing: the power went, the stick was pulled out, the \
                 kernel stopped, or the system runs without `--for`",
            )),
            KeptEnd::Damaged(block) => Some(format!(
                "block {block} is damaged, and what came later is not used; the power went within \
                 a write, or the stick is worn out"
            )),
        };
        let lost = (self.lost > 0).then(|| {
            let lines = if self.lost == 1 { "1 line" } else { &format!("{} lines", self.lost) };
            format!("{lines} came faster than the stick was written, and are missing")
        });
        end.into_iter().chain(lost).collect()
    }

    /// Returns the exit code: nothing is missing, something was lost, or the run has no end.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self.end {
            _ if self.lost > 0 => BROKEN,
            KeptEnd::Whole => HOLDS,
            KeptEnd::Open => UNPROVED,
            KeptEnd::Full | KeptEnd::Damaged(_) => BROKEN,
        }
    }
}

/// Writes the console that a stick has kept, and says what is missing.
///
/// # Errors
/// If the stick has none.
pub fn results(request: &ResultsRequest) -> Result<u8, Failure> {
    let name = request.stick.display();
    // A pipe opens only when somebody writes to it.
    let kind = fs::metadata(&request.stick).map(|found| found.file_type());
    let of_stick = |kind: fs::FileType| {
        use std::os::unix::fs::FileTypeExt;
        kind.is_file() || kind.is_block_device()
    };
    if kind.is_ok_and(|kind| !of_stick(kind)) {
        return Err(Failure::Input(format!("error: {name}: it is neither a disk nor a file")));
    }
    let stick = File::open(&request.stick)
        .map_err(|error| Failure::Input(format!("error: cannot read {name}: {error}")))?;
    let kept = read(&mut BufReader::new(stick));
    let kept = kept.map_err(|wrong| Failure::Input(format!("error: {name}: {wrong}")))?;
    match &request.out {
        Some(out) => fs::write(out, &kept.console)
            .map_err(|error| Failure::io(format!("write {}", out.display()), &error))?,
        None => match io::stdout().lock().write_all(&kept.console) {
            // Its reader has seen enough.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                return Err(Failure::io("write", &error));
            }
            _ => {}
        },
    }
    let (system, run, bytes) = (&kept.system, kept.run, kept.console.len());
    note(&format!("{name}: {system}, start {run}, {bytes} bytes of the console"));
    kept.flaws().iter().for_each(|flaw| note(&format!("{name}: {flaw}")));
    Ok(kept.code())
}

/// Reads what a stick has kept.
///
/// # Errors
/// A sentence that says why there are no results on it.
pub fn read(stick: &mut (impl Read + Seek)) -> Result<Kept, String> {
    let first = sector_at(stick, 0)?;
    let found = partitions(&first).next().ok_or(
        "it has no partition for results\n\
         help: make the image with `diapason image --results`",
    )?;
    let (start, count) = found;
    let sector = sector_at(stick, u64::from(start))?;
    let damaged = "the header of the partition for results is damaged\n\
                   help: write the image to the stick again";
    let header = ResultsHeader::of(&sector).ok_or(if ResultsHeader::is_meant(&sector) {
        damaged
    } else {
        "its partition of the kind for results is not one of Diapason's"
    })?;
    if header.sectors != count {
        return Err(damaged.into());
    }
    Blocks { stick, image: header.image, left: count - 1, number: 0 }.read(header.system)
}

/// Reads a sector of a stick.
fn sector_at(stick: &mut (impl Read + Seek), number: u64) -> Result<Sector, String> {
    stick.seek(SeekFrom::Start(number * SECTOR as u64)).map_err(|error| error.to_string())?;
    sector(stick)
}

fn sector(stick: &mut impl Read) -> Result<Sector, String> {
    let mut sector = [0; SECTOR];
    stick.read_exact(&mut sector).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => String::from("it ends before its partition for results does"),
        _ => error.to_string(),
    })?;
    Ok(sector)
}

/// The blocks behind a header that are left to read.
struct Blocks<'a, R> {
    stick: &'a mut R,
    image: u32,
    left: u32,
    number: u32,
}

impl<R: Read> Blocks<'_, R> {
    fn next(&mut self) -> Result<Option<(u32, Sector)>, String> {
        if self.number == self.left {
            return Ok(None);
        }
        let sector = sector(self.stick)?;
        self.number += 1;
        Ok(Some((self.number - 1, sector)))
    }

    /// Reads the run that was written last.
    fn read(mut self, system: &str) -> Result<Kept, String> {
        let mut kept: Option<Kept> = None;
        while let Some((number, sector)) = self.next()? {
            let block = ResultsBlock::of(&sector);
            let (Some(block), true) = (block, self.is_next(block, number, kept.as_ref())) else {
                return self.ended(kept, number, &sector);
            };
            let kept = kept.get_or_insert_with(|| Kept {
                system: system.into(),
                run: block.run,
                console: Vec::new(),
                end: KeptEnd::Open,
                lost: 0,
            });
            kept.console.extend_from_slice(block.text);
            kept.lost = block.lost;
            kept.end = match block.kind {
                BlockKind::Middle => continue,
                BlockKind::Last => KeptEnd::Whole,
                BlockKind::Full => KeptEnd::Full,
            };
            break;
        }
        kept.ok_or_else(|| String::from("its partition for results has no room"))
    }

    /// Returns whether a block follows those before.
    fn is_next(&self, block: Option<ResultsBlock<'_>>, number: u32, kept: Option<&Kept>) -> bool {
        block.is_some_and(|block| {
            let is_of_run = kept.is_none_or(|kept| kept.run == block.run);
            block.image == self.image && block.number == number && is_of_run
        })
    }

    /// Block `number` does not follow those before. Looks whether a later one does.
    fn ended(mut self, kept: Option<Kept>, number: u32, sector: &Sector) -> Result<Kept, String> {
        let Some(mut kept) = kept else { return Err(self.nothing(sector)?) };
        while let Some((later, sector)) = self.next()? {
            if self.is_next(ResultsBlock::of(&sector), later, Some(&kept)) {
                kept.end = KeptEnd::Damaged(number);
                break;
            }
        }
        Ok(kept)
    }

    /// Says why there is no run, whose first block would be this sector.
    fn nothing(&mut self, first: &Sector) -> Result<String, String> {
        let of_other = |block: ResultsBlock<'_>| block.image != self.image;
        if ResultsBlock::of(first).is_some_and(of_other) {
            return Ok(String::from(
                "it has the results of another image than the one that is on it now\n\
                 help: write the image to the stick again, whole",
            ));
        }
        let mut is_empty = first.iter().all(|byte| *byte == 0);
        while let (true, Some((_, sector))) = (is_empty, self.next()?) {
            is_empty = sector.iter().all(|byte| *byte == 0);
        }
        Ok(String::from(if is_empty {
            "it has no results: the system has not run from it, or could not write to it"
        } else {
            "the first block of its results is damaged, so none of them can be used"
        }))
    }
}

#[cfg(test)]
#[path = "results/tests.rs"]
mod tests;
