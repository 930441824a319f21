//! The layout of the screen: a title, one line for the state or the verdict, and details.

use crate::account::{Account, ScreenVerdict};
use crate::frame::{Canvas, Framebuffer};
use crate::line::ScreenLine;
use crate::sheet::{Sheet, flags, of_name};
use crate::words;
use diapason_abi::archive::Refusal;
use diapason_abi::record::{Record, exit};

const TITLE: u32 = 0;
const STATE: u32 = 2;
const SUMMARY: u32 = 3;
const DETAILS: u32 = 5;
/// The last lines are kept free of threads that were in time: problems are said there.
const KEPT: u32 = 6;
const MIB: u64 = 1 << 20;

/// A screen, and what was said on it.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    frame: Framebuffer,
    sheet: Sheet<'a>,
    account: Account,
    /// The next line of details.
    line: u32,
    /// Usable memory of the machine, in bytes.
    memory: u64,
    /// Processors that its firmware names.
    processors: u64,
}

impl<'a> Page<'a> {
    /// A page of which nothing is drawn yet. The screen must be blank.
    #[must_use]
    pub fn new(frame: Framebuffer, sheet: Sheet<'a>) -> Page<'a> {
        Page { frame, sheet, account: Account::default(), line: DETAILS, memory: 0, processors: 0 }
    }

    /// Draws the name of the system, and that boot is under way.
    pub fn begin<C: Canvas>(&self, canvas: &mut C) {
        let mut title = ScreenLine::default();
        title.say(&words::TITLE);
        let name = self.sheet.system();
        title.say(if name.is_empty() { &words::NAMELESS } else { name });
        if !name.is_empty() && self.sheet.flags & flags::PROVED == 0 {
            title.say(&words::UNPROVED);
        }
        self.write(TITLE, title.text(), canvas);
        self.write(STATE, &words::STARTING, canvas);
    }

    /// Says that the system runs.
    pub fn running<C: Canvas>(&self, canvas: &mut C) {
        self.write(STATE, &words::RUNNING, canvas);
    }

    /// Takes in a record of boot or of the end, and draws it if it concerns people.
    #[inline(never)]
    pub fn note<C: Canvas>(&mut self, record: Record, words: &[u64], canvas: &mut C) {
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        match record {
            Record::Memory => self.memory = word(0),
            Record::Acpi => self.processors = word(1),
            Record::Vcpu => {
                let paid = word(1).saturating_add(word(2));
                self.account.vcpus_ns = self.account.vcpus_ns.saturating_add(paid);
            }
            Record::End => self.account.end(words),
            Record::Thread => self.thread(words, canvas),
            Record::Process => self.process(word(0), word(2), canvas),
            _ => self.problem(record, words, canvas),
        }
    }

    fn thread<C: Canvas>(&mut self, words: &[u64], canvas: &mut C) {
        let [process, slot, _, used, jobs, misses, response, skipped] = *words else { return };
        self.account.threads_ns = self.account.threads_ns.saturating_add(used);
        self.account.jobs = self.account.jobs.saturating_add(jobs);
        self.account.misses = self.account.misses.saturating_add(misses);
        let mut line = ScreenLine::default();
        if misses > 0 {
            line.say(&words::MISSED);
            self.name(process, &mut line).say(b".").number(slot);
            line.say(&words::BECAUSE).number(misses);
            self.finding(&line, canvas);
        } else if jobs > 0 {
            self.name(process, &mut line).say(b".").number(slot).say(&words::BECAUSE);
            line.number(jobs).say(&words::JOBS).say(b", ").number(skipped);
            line.say(&words::SKIPPED).time(response);
            self.detail(&line, KEPT, canvas);
        }
    }

    fn process<C: Canvas>(&mut self, process: u64, faults: u64, canvas: &mut C) {
        let known = self.sheet.process(process).map_or(0, |(flags, _)| flags);
        if faults == 0 || known & of_name::MAY_FAULT != 0 {
            return;
        }
        let mut line = ScreenLine::default();
        line.say(&words::FAULTS);
        self.name(process, &mut line).say(&words::MAY_NOT);
        line.say(&words::BECAUSE).number(faults);
        self.finding(&line, canvas);
    }

    /// Draws a record that is a problem. Others are for the serial port only.
    #[inline(never)]
    fn problem<C: Canvas>(&mut self, record: Record, words: &[u64], canvas: &mut C) {
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let mut line = ScreenLine::default();
        match record {
            Record::Refused => {
                line.say(&words::REFUSED);
                self.name(word(0), &mut line).say(&words::BECAUSE);
                self.finding(&line, canvas);
                return self.paragraph(words::text(&words::REFUSALS, word(1)), canvas);
            }
            Record::ArchiveRefused => return self.refused(word(0), canvas),
            Record::Absent => {
                line.say(&words::ABSENT);
                match self.sheet.device(word(0)) {
                    Some(name) => line.say(name),
                    None => line.say(&words::NUMBER).number(word(0)),
                };
                self.detail(&line, 1, canvas);
                return self.paragraph(words::text(&words::ABSENCES, word(1)), canvas);
            }
            Record::LinesLost => {
                line.say(&words::LINES_LOST);
                self.name(word(0), &mut line).say(&words::BECAUSE).number(word(1));
            }
            Record::ConsoleLost => _ = line.say(&words::LOST).number(word(0)),
            Record::Panic => {
                line.say(&words::PANIC).number(word(1)).say(&words::IN_FILE).hex(word(0));
            }
            Record::KernelFault => {
                line.say(&words::EXCEPTION).number(word(0)).say(&words::AT).hex(word(3));
                line.say(&words::ADDRESS).hex(word(2));
            }
            Record::CoreStopped => _ = line.say(&words::CORE_STOPPED).number(word(0)),
            Record::MachineCheck => {
                line.say(&words::HARDWARE).number(word(0)).say(&words::STATUS).hex(word(1));
                line.say(&words::ADDRESS).hex(word(2));
            }
            _ => return,
        }
        self.finding(&line, canvas);
    }

    /// Says why nothing starts, and how much there is of what is too little.
    fn refused<C: Canvas>(&mut self, reason: u64, canvas: &mut C) {
        self.paragraph(words::text(&words::REFUSALS, reason), canvas);
        let (mut line, sheet) = (ScreenLine::default(), &self.sheet);
        let (needed, found, unit): (u64, u64, &[u8]) = if reason == Refusal::Memory as u64 {
            line.say(&words::MEMORY);
            (sheet.memory_mib.into(), self.memory / MIB, &words::UNIT_MIB)
        } else if reason == Refusal::Processors as u64 {
            line.say(&words::PROCESSORS);
            (sheet.cores.into(), self.processors, b"")
        } else {
            return;
        };
        line.number(needed).say(unit).say(&words::NEEDED);
        line.number(found).say(unit).say(&words::FOUND);
        self.detail(&line, 1, canvas);
    }

    /// Draws the verdict of a run that leaves the machine with this status.
    #[inline(never)]
    pub fn end<C: Canvas>(&mut self, status: u8, canvas: &mut C) {
        if status == exit::SUPERVISOR_DIED {
            let mut line = ScreenLine::default();
            self.finding(line.say(&words::SUPERVISOR), canvas);
        }
        let verdict = self.account.verdict(status, self.sheet.flags);
        let mut findings = ScreenLine::default();
        findings.say(&words::BROKEN).number(self.account.findings);
        findings.say(if self.account.findings == 1 { &words::FINDING } else { &words::FINDINGS });
        let state: &[u8] = match verdict {
            ScreenVerdict::Holds => &words::HOLDS,
            ScreenVerdict::PromisesNothing => &words::NOTHING,
            ScreenVerdict::Broken => findings.text(),
            ScreenVerdict::Unproved => &words::UNPROVED_END,
            ScreenVerdict::NotJudged => &words::NOT_JUDGED,
            ScreenVerdict::NothingStarts => &words::STOPPED,
            ScreenVerdict::Bug | ScreenVerdict::NoEnd | ScreenVerdict::Books => &words::BUG,
        };
        self.write(STATE, state, canvas);
        match verdict {
            ScreenVerdict::NotJudged => self.paragraph(&words::HOW_TO_JUDGE, canvas),
            ScreenVerdict::NoEnd => self.paragraph(&words::NO_END, canvas),
            ScreenVerdict::Books => self.paragraph(&words::BOOKS, canvas),
            _ => {}
        }
        if self.account.ended {
            self.summary(canvas);
        }
    }

    fn summary<C: Canvas>(&self, canvas: &mut C) {
        let account = &self.account;
        let mut line = ScreenLine::default();
        line.time(account.time_ns).say(&words::IDLE);
        let percent = account.idle_ns / (account.time_ns / 100).max(1);
        line.number(percent).say(&words::PERCENT);
        line.number(account.entries).say(&words::ENTRIES);
        line.number(account.jobs).say(&words::JOBS);
        self.write(SUMMARY, line.text(), canvas);
    }

    /// Adds the name of a process, or its number if it has none.
    fn name<'l>(&self, process: u64, line: &'l mut ScreenLine) -> &'l mut ScreenLine {
        match self.sheet.process(process) {
            Some((_, name)) => line.say(name),
            None => line.say(&words::NUMBER).number(process),
        }
    }

    fn finding<C: Canvas>(&mut self, line: &ScreenLine, canvas: &mut C) {
        self.account.findings = self.account.findings.saturating_add(1);
        self.detail(line, 1, canvas);
    }

    /// Draws a line of details, if `kept` lines below it remain free.
    fn detail<C: Canvas>(&mut self, line: &ScreenLine, kept: u32, canvas: &mut C) {
        self.details(line.text(), kept, canvas);
    }

    fn details<C: Canvas>(&mut self, text: &[u8], kept: u32, canvas: &mut C) {
        let last = self.frame.lines().saturating_sub(kept);
        if self.line < last {
            self.write(self.line, text, canvas);
            self.line += 1;
        } else {
            self.write(self.frame.lines() - 1, &words::MORE, canvas);
        }
    }

    /// Draws text of any length in lines of details, divided between words.
    #[inline(never)]
    fn paragraph<C: Canvas>(&mut self, text: &[u8], canvas: &mut C) {
        let mut rest = text;
        while !rest.is_empty() {
            let columns = self.frame.columns() as usize;
            let line = rest.get(..columns).unwrap_or(rest);
            let cut = if line.len() == rest.len() { None } else { last_blank(line) };
            let line = cut.and_then(|cut| line.get(..cut)).unwrap_or(line);
            self.details(line, 1, canvas);
            rest = rest.get(line.len() + usize::from(cut.is_some())..).unwrap_or(&[]);
        }
    }

    /// Draws text over everything in a line.
    #[inline(never)]
    fn write<C: Canvas>(&self, line: u32, text: &[u8], canvas: &mut C) {
        for column in 0..self.frame.columns() {
            let byte = text.get(column as usize).copied().unwrap_or(b' ');
            self.frame.draw(line, column, byte, canvas);
        }
    }
}

/// Returns where the last blank is that does not come first.
fn last_blank(line: &[u8]) -> Option<usize> {
    let blanks = line.iter().zip(0..).filter(|(byte, at)| **byte == b' ' && *at > 0);
    blanks.map(|(_, at)| at).last()
}
