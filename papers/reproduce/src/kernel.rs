//! The kernel of [EMERALDS 1998, chapter 3]: its size (table 3.4), its operations (table 3.5), and
//! what interrupts and switches take of a processor (figure 3.5), beside ours as QEMU counts them.
//! Then the depth N of state messages (figure 3.4), beside the depth that ours prove.
//!
//! Theirs are times of a 25 MHz 68040 and a 16.7 MHz 68332, here as cycles. Ours are instructions.
//! A cycle executes at most one instruction on these processors, so an operation with more
//! instructions than their cycles would not be faster there.

use super::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::bench::{self, Measurements};
use diapason::chart::{LineChart, Series};
use diapason::image::Image;
use diapason::metal;
use diapason::table::{Align, TextTable};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use diapason_costs::targets::Placement;
use diapason_state::depth::{ReaderTiming, WriterTiming, overlaps_as_published, overlaps_one_core};

/// MHz of the processors of table 3.5 and of figure 3.5.
const TABLE_MHZ: f64 = 25.0;
const FIGURE_MHZ: f64 = 16.7;
/// Bytes of table 3.4.
const THEIR_SIZE: f64 = 13_000.0;
/// Task switches of figure 3.5 in a second, the most interrupts in a second, and percent of the
/// processor that they take together.
const SWITCHES: f64 = 250.0;
const INTERRUPTS: f64 = 1_000.0;
const THEIR_SHARE: f64 = 16.0;
/// Points of the figure, in interrupts a second.
const POINTS: [f64; 6] = [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0];

/// An operation of table 3.5: its name here and there, and its time in us.
type Entry = (&'static str, &'static str, f64);

const TABLE: [Entry; 27] = [
    ("yield_switch", "context switch (thread to thread)", 9.2),
    ("null_syscall", "null() system call", 2.0),
    ("proc_create", "create_proc()", 194.4),
    ("thread_create", "create_thread()", 50.4),
    ("thread_join_exited", "join_thread() (thread already exited)", 17.2),
    ("thread_detach_exited", "detach_thread() (thread already exited)", 16.4),
    ("thread_detach_running", "detach_thread() (thread has not exited)", 2.2),
    ("shm_attach_new", "shm_attach() (one page mem. allocated)", 10.6),
    ("shm_attach_existing", "shm_attach() (attach existing segment)", 8.6),
    ("shm_detach_last", "shm_detach() (one page mem. deallocated)", 10.0),
    ("shm_detach_existing", "shm_detach() (just unmap segment)", 8.0),
    ("sem_create", "sem_create()", 4.8),
    ("sem_delete", "sem_delete()", 3.2),
    ("sem_lock_free", "sem_lock() (semaphore free)", 5.8),
    ("sem_unlock_free", "sem_unlock() (no thread waiting)", 7.0),
    ("cv_create", "cv_create()", 6.2),
    ("cv_delete", "cv_delete()", 5.4),
    ("cond_wait_switch", "cv_wait()", 25.4),
    ("cv_signal_nobody", "cv_signal() (no thread waiting)", 3.4),
    ("cond_signal_switch", "cv_signal() (thread waiting)", 30.4),
    ("mbox_create", "mbox_create()", 6.4),
    ("mbox_delete", "mbox_delete()", 3.6),
    ("mbox_send_8", "msg_send() (8 bytes)", 16.0),
    ("mbox_receive_8", "msg_receive() (8 bytes)", 7.6),
    ("state_write_8", "state message send (8 bytes)", 2.4),
    ("state_read_8", "state message receive (8 bytes)", 2.0),
    ("state_read_slow_8", "state message receive_slow (8 bytes)", 4.4),
];

/// Where threads live, and the name of it here.
const PLACEMENTS: [(Placement, &str); 3] = [
    (Placement::None, "without VCPUs"),
    (Placement::SameVcpu, "on one VCPU"),
    (Placement::TwoVcpus, "on two VCPUs"),
];

pub(super) fn reproduce(_: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let workspace = Workspace::find()?;
    QEMU.require(Missing::Say)?;
    let built = metal::build(&workspace)?;
    let mut counted = Measurements::default();
    for (done, (placement, _)) in PLACEMENTS.into_iter().enumerate() {
        progress.at("operations", done, PLACEMENTS.len());
        counted.add(placement, bench::count_placement(&workspace, &built, placement)?);
    }
    progress.end();
    let mut rows = vec![size(Image::read(&built.kernel)?.sizes().resident())];
    rows.extend(TABLE.iter().map(|entry| operation(entry, &counted)));
    let figure = figure(&counted);
    rows.extend(shares(&figure));
    rows.extend(depths());
    Ok(ReproductionReport {
        name: "kernel",
        rows,
        skipped: Vec::new(),
        sections: vec![(String::from("table 3.5"), table(&counted))],
        pictures: vec![Picture::lines("fig3.5", &figure)],
    })
}

fn size(resident: u64) -> Row {
    let row = Row::numbers("table3.4.size", "bytes", Some(THEIR_SIZE), resident as f64);
    row.holds(resident as f64 <= THEIR_SIZE).note(
        "code and constants that stay in memory; ours with VCPUs, deadlines and drivers' calls",
    )
}

/// Returns an operation of threads without VCPUs, as theirs are.
fn operation((name, _, micros): &Entry, counted: &Measurements) -> Row {
    let cycles = (micros * TABLE_MHZ).round();
    let id = format!("table3.5.{name}");
    match median(counted, Placement::None, name) {
        Some(ours) => {
            let row = Row::numbers(&id, "cycles, instructions", Some(cycles), ours);
            row.holds(ours <= cycles)
        }
        None => Row::words(&id, None, "not measured").holds(false),
    }
}

fn median(counted: &Measurements, placement: Placement, name: &str) -> Option<f64> {
    counted.find(placement, name).map(|operation| operation.median as f64)
}

fn table(counted: &Measurements) -> String {
    let mut columns = vec![("operation", Align::Left), ("us at 25 MHz", Align::Right)];
    columns.push(("cycles", Align::Right));
    columns.extend(PLACEMENTS.map(|(_, name)| (name, Align::Right)));
    let mut table = TextTable::new(&columns);
    for (name, theirs, micros) in TABLE {
        let ours = PLACEMENTS.map(|(placement, _)| {
            let count = median(counted, placement, name);
            count.map_or_else(|| String::from("-"), |count| format!("{count:.0}"))
        });
        let mut cells =
            vec![theirs.to_owned(), format!("{micros}"), format!("{:.0}", micros * TABLE_MHZ)];
        cells.extend(ours);
        table.row(cells);
    }
    table.render()
}

/// Returns what interrupts and switches take of a processor of figure 3.5 if each cycle executes
/// one instruction. A switch is the end of a sleep. There is no clock tick.
fn figure(counted: &Measurements) -> LineChart {
    let series = PLACEMENTS.into_iter().filter_map(|(placement, name)| {
        let interrupt = median(counted, placement, "irq_to_thread")?;
        let switch = median(counted, placement, "timer_to_thread")?;
        let share = |rate: f64| (rate * interrupt + SWITCHES * switch) / (FIGURE_MHZ * 1e4);
        let points = POINTS.map(|rate| (rate, share(rate))).to_vec();
        Some(Series { name: name.to_owned(), points })
    });
    LineChart {
        title: String::from(
            "Figure 3.5: what the kernel takes of 16.7 million instructions a second",
        ),
        x: String::from("interrupts a second"),
        y: String::from("%"),
        series: series.collect(),
    }
}

fn shares(figure: &LineChart) -> Vec<Row> {
    let rows = figure.series.iter().map(|line| {
        let ours = line.points.last().map_or(f64::NAN, |point| point.1);
        let id = format!("fig3.5.{}", line.name.replace(' ', "-"));
        let note = format!(
            "{INTERRUPTS} interrupts and {SWITCHES} switches a second; equal if an instruction \
             takes {:.1} cycles",
            THEIR_SHARE / ours
        );
        Row::numbers(&id, "%", Some(THEIR_SHARE), ours).holds(ours <= THEIR_SHARE).note(note)
    });
    rows.collect()
}

/// The writes that touch a read in figure 3.4.
const WRITES: u64 = 5;
/// Longest period, deadline and read of the pairs that are compared.
const LONGEST: u64 = 24;

/// Returns the rows of state messages: the figure's example, and all small pairs of a writer and a
/// reader that does nothing but read.
fn depths() -> Vec<Row> {
    // Four writes after the first: a read of 45 units beside a writer of 10, done within 8.
    let (writer, reader) = pair(10, 8, 45);
    let drawn = overlaps_one_core(writer, reader);
    let (mut all, mut fewer, mut most) = (0u64, 0u64, 0);
    for (period, deadline) in (1..=LONGEST).flat_map(|p| (1..=p).map(move |d| (p, d))) {
        for read in 1..=LONGEST {
            let (writer, reader) = pair(period, deadline, read);
            let theirs = slots(overlaps_as_published(writer, reader));
            let ours = slots(overlaps_one_core(writer, reader));
            all += 1;
            fewer += u64::from(theirs < ours);
            most = most.max(theirs.abs_diff(ours));
        }
    }
    let share = 100.0 * fewer as f64 / all as f64;
    vec![
        Row::numbers("fig3.4.writes", "", Some(WRITES as f64), drawn as f64)
            .holds(drawn == WRITES && overlaps_as_published(writer, reader) == WRITES),
        Row::numbers("depth.published-is-fewer", "%", None, share).note(
            "of all pairs of small periods, deadlines and reads; a read can be torn with such a \
             depth",
        ),
        Row::numbers("depth.difference", "slots", None, most as f64)
            .holds(most <= 1)
            .note("the proved depth is never more than one slot away from the printed one"),
    ]
}

/// Returns the depth that is enough if so many writes touch a read.
const fn slots(writes: u64) -> u64 {
    if writes == 0 { 2 } else { writes + 1 }
}

/// Returns a writer, and a reader whose whole job is the read.
const fn pair(period: u64, deadline: u64, read: u64) -> (WriterTiming, ReaderTiming) {
    let read = Nanos(read);
    (WriterTiming::new(Nanos(period), Nanos(deadline)), ReaderTiming::new(read, read, read))
}
