//! A disk, written from the transport's tables: what works, and each kind of trouble.

use super::shell::{Asked, Shell, hostile};
use diapason_usb::class::mass_storage::{
    BUFFER, Capacity, CommandFailure, DiskEvent, MassStorage, Refused, ScsiCommand, Sense,
};
use diapason_usb::class::{Class, TransferFault};
use diapason_usb::descriptor::Configuration;
use diapason_usb::descriptor::build::{Configuration as Make, Interface, bulk};
use diapason_usb::{Setup, Speed};

fn storage() -> MassStorage {
    let pair = Interface::new(0).class(8, 6, 0x50).endpoint(bulk(0x81, 512)).endpoint(bulk(2, 512));
    let bytes = Make::new(1).with(pair).bytes(Speed::High);
    MassStorage::find(&Configuration::parse_once(&bytes, Speed::High).unwrap()).unwrap()
}

fn word(event: DiskEvent<'_>) -> String {
    match event {
        DiskEvent::Read { block, data } => format!("read {block} {:?}", data.len()),
        other => format!("{other:?}"),
    }
}

type Disk = Shell<MassStorage>;

fn end(disk: &mut Disk, endpoint: u8, result: Result<&[u8], TransferFault>) -> Vec<String> {
    let mut heard = Vec::new();
    disk.end(endpoint, result, &mut |event| heard.push(word(event)));
    heard
}

/// Takes the command block and gives its tag and SCSI bytes.
fn command(disk: &mut Disk) -> (u32, Vec<u8>) {
    disk.pull();
    let Some(Asked::Out(block)) = disk.next(2).cloned() else { panic!("no command") };
    assert_eq!((&block[..4], block.len()), (&b"USBC"[..], 31));
    assert_eq!(end(disk, 2, Ok(&block)), [""; 0]);
    let tag = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
    (tag, block[8..].to_vec())
}

fn status(tag: u32, residue: u32, status: u8) -> Vec<u8> {
    [&b"USBS"[..], &tag.to_le_bytes(), &residue.to_le_bytes(), &[status]].concat()
}

/// A disk of 1000 blocks of 512 bytes.
fn ready() -> Disk {
    let mut disk = Shell::new(storage());
    assert_eq!(disk.class.read(0, 1), Err(Refused::NoCapacity));
    disk.class.begin(ScsiCommand::ReadCapacity).unwrap();
    let (tag, scsi) = command(&mut disk);
    assert_eq!(scsi[..8], [8, 0, 0, 0, 0x80, 0, 10, 0x25]);
    end(&mut disk, 0x81, Ok(&[0, 0, 3, 0xe7, 0, 0, 2, 0]));
    let capacity = Capacity { blocks: 1000, block_bytes: 512 };
    let heard = end(&mut disk, 0x81, Ok(&status(tag, 0, 0)));
    assert_eq!(heard, [word(DiskEvent::Capacity(capacity))]);
    disk
}

#[test]
fn blocks_are_read_and_written() {
    let mut disk = ready();
    disk.class.read(258, 4).unwrap();
    assert_eq!(disk.class.read(0, 1), Err(Refused::Busy));
    let (tag, scsi) = command(&mut disk);
    assert_eq!(scsi[..17], [0, 8, 0, 0, 0x80, 0, 10, 0x28, 0, 0, 0, 1, 2, 0, 0, 4, 0]);
    assert_eq!(disk.next(0x81), Some(&Asked::In(2048)));
    assert_eq!(end(&mut disk, 0x81, Ok(&[9; 2048])), [""; 0]);
    assert_eq!(disk.next(0x81), Some(&Asked::In(13)));
    assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 0, 0))), ["read 258 2048"]);
    disk.class.write(999, &[5; 512]).unwrap();
    let (tag, scsi) = command(&mut disk);
    assert_eq!(scsi[..9], [0, 2, 0, 0, 0, 0, 10, 0x2a, 0]);
    assert_eq!(disk.next(2), Some(&Asked::Out(vec![5; 512])));
    end(&mut disk, 2, Ok(&[5; 512]));
    assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 0, 0))), ["Written { block: 999 }"]);
    for (block, count) in [(0, 0), (999, 2), (u32::MAX, 1), (0, 9), (0, u16::MAX)] {
        assert_eq!(disk.class.read(block, count), Err(Refused::Blocks));
    }
    assert_eq!(disk.class.write(0, &[0; 100]), Err(Refused::Length));
    assert_eq!(disk.class.write(0, &[0; BUFFER + 512]), Err(Refused::Blocks));
}

/// A status that was late says nothing of the command that waits for its own.
#[test]
fn the_status_of_an_earlier_command_is_not_believed() {
    let mut disk = ready();
    disk.class.write(1, &[5; 512]).unwrap();
    let (earlier, _) = command(&mut disk);
    end(&mut disk, 2, Ok(&[5; 512]));
    end(&mut disk, 0x81, Ok(&status(earlier, 0, 0)));
    disk.class.write(2, &[6; 512]).unwrap();
    let (tag, _) = command(&mut disk);
    assert_ne!(tag, earlier);
    end(&mut disk, 2, Ok(&[6; 512]));
    assert_eq!(end(&mut disk, 0x81, Ok(&status(earlier, 0, 0))), [""; 0], "nothing is written");
    assert_eq!(reset(&mut disk), ["Failed(Confused)"]);
}

/// The residue counts, whatever the data stage brought: a device may fill up with anything (BOT
/// §5.3.3), and what the buffer held before is no answer.
#[test]
fn what_the_residue_leaves_out_is_no_data() {
    let mut disk = ready();
    for residue in [1, 512, 1024] {
        disk.class.read(0, 2).unwrap();
        let (tag, _) = command(&mut disk);
        end(&mut disk, 0x81, Ok(&[9; 1024]));
        assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, residue, 0))), ["Failed(Short)"]);
        disk.class.write(0, &[5; 1024]).unwrap();
        let (tag, _) = command(&mut disk);
        end(&mut disk, 2, Ok(&[5; 1024]));
        assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, residue, 0))), ["Failed(Short)"]);
    }
    disk.class.read(0, 2).unwrap();
    let (tag, _) = command(&mut disk);
    end(&mut disk, 0x81, Ok(&[9; 1024]));
    end(&mut disk, 0x81, Ok(&status(tag, 1025, 0)));
    assert_eq!(reset(&mut disk), ["Failed(Confused)"], "more is left out than was asked for");
    disk.class.begin(ScsiCommand::ReadCapacity).unwrap();
    let (tag, _) = command(&mut disk);
    end(&mut disk, 0x81, Ok(&[0, 0, 3, 0xe7, 0, 0, 2, 0]));
    assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 4, 0))), ["Failed(Short)"]);
}

#[test]
fn a_refused_command_is_explained() {
    let mut disk = ready();
    disk.class.begin(ScsiCommand::TestUnitReady).unwrap();
    let (tag, _) = command(&mut disk);
    assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 0, 1))), ["Failed(Refused)"]);
    disk.class.begin(ScsiCommand::RequestSense).unwrap();
    let (tag, _) = command(&mut disk);
    let mut sense = [0; 18];
    (sense[2], sense[12], sense[13]) = (0x72, 0x3a, 1);
    end(&mut disk, 0x81, Ok(&sense));
    let wanted = Sense { key: 2, code: 0x3a, qualifier: 1 };
    assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 0, 0))), [word(DiskEvent::Sense(wanted))]);
}

#[test]
fn stalls_in_data_and_status_are_cleared() {
    let mut disk = ready();
    disk.class.read(0, 1).unwrap();
    let (tag, _) = command(&mut disk);
    end(&mut disk, 0x81, Err(TransferFault::Stall));
    assert_eq!(disk.next(0x81), Some(&Asked::Recover));
    end(&mut disk, 0x81, Ok(&[]));
    assert_eq!(disk.next(0x81), Some(&Asked::In(13)));
    end(&mut disk, 0x81, Err(TransferFault::Stall));
    end(&mut disk, 0x81, Ok(&[]));
    assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 512, 0))), ["Failed(Short)"]);
    // Twice in the status is once too often.
    disk.class.begin(ScsiCommand::TestUnitReady).unwrap();
    command(&mut disk);
    end(&mut disk, 0x81, Err(TransferFault::Stall));
    end(&mut disk, 0x81, Ok(&[]));
    end(&mut disk, 0x81, Err(TransferFault::Stall));
    assert_eq!(reset(&mut disk), ["Failed(Confused)"]);
}

/// Lets the device be reset.
fn reset(disk: &mut Disk) -> Vec<String> {
    let setup = Setup { kind: 0x21, request: 0xff, value: 0, index: 0, length: 0 };
    assert_eq!(disk.next(0), Some(&Asked::Control(setup, vec![])));
    end(disk, 0, Ok(&[]));
    assert_eq!(disk.next(0x81), Some(&Asked::Recover));
    end(disk, 0x81, Ok(&[]));
    assert_eq!(disk.next(2), Some(&Asked::Recover));
    end(disk, 2, Ok(&[]))
}

#[test]
fn a_device_that_lost_its_way_is_reset() {
    for wrong in [
        status(77, 0, 0),
        status(2, 0, 2),
        status(2, 0, 9),
        status(2, 513, 0),
        b"USBX12345678\0".to_vec(),
        vec![0; 12],
        vec![],
    ] {
        let mut disk = ready();
        disk.class.read(0, 1).unwrap();
        command(&mut disk);
        end(&mut disk, 0x81, Ok(&[0; 512]));
        assert_eq!(end(&mut disk, 0x81, Ok(&wrong)), [""; 0]);
        assert_eq!(reset(&mut disk), ["Failed(Confused)"], "{wrong:?}");
        assert_eq!(disk.class.begin(ScsiCommand::TestUnitReady), Ok(()));
    }
}

#[test]
fn a_slow_device_is_reset_and_a_dead_one_left() {
    let mut disk = ready();
    disk.class.read(0, 1).unwrap();
    command(&mut disk);
    disk.wake(&mut |_| {});
    assert_eq!(reset(&mut disk), ["Failed(Late)"]);
    disk.class.read(0, 1).unwrap();
    command(&mut disk);
    disk.wake(&mut |_| {});
    assert_eq!(end(&mut disk, 0, Err(TransferFault::Stall)), ["Dead"]);
    assert_eq!(disk.class.read(0, 1), Err(Refused::Dead));
    assert!(disk.class.request(disk.now).is_none());
}

/// Returns a good status for the last command, or data as long as asked for.
fn honest(asked: &Asked, sent: &[Vec<u8>]) -> Option<Vec<u8>> {
    match *asked {
        Asked::In(13) => {
            let block = sent.iter().find(|bytes| bytes.starts_with(b"USBC"))?;
            let tag = block.get(4..8)?.try_into().ok()?;
            Some(status(u32::from_le_bytes(tag), 0, 0))
        }
        Asked::In(8) => Some(vec![0, 0, 3, 0xe7, 0, 0, 2, 0]),
        Asked::In(length) | Asked::Shared(_, length) => Some(vec![7; length]),
        _ => None,
    }
}

#[test]
fn whatever_a_disk_says() {
    let seeds: Vec<Vec<u8>> = (0..6)
        .flat_map(|tag| [status(tag, 0, 0), status(tag, 0, 1), vec![0, 0, 3, 0xe7, 0, 0, 2, 0]])
        .chain([vec![0x20; 36], vec![3; 512]])
        .collect();
    let mut kinds = std::collections::BTreeMap::<String, u64>::new();
    hostile(
        (6, false),
        100_000,
        &seeds,
        &honest,
        |random| if random.one_in(2) { storage() } else { ready().class },
        |class, _, random| {
            let (block, blocks) = (random.below(1001) as u32, random.within(0, 129) as u16);
            let _ = match random.below(8) {
                0 => class.begin(ScsiCommand::Inquiry),
                1 => class.begin(ScsiCommand::ReadCapacity),
                2 => class.begin(ScsiCommand::RequestSense),
                3 => class.read(random.below(1001) as u32, random.within(0, 9) as u16),
                4 => class.write(random.below(1001) as u32, &[1; 1024]),
                5 => class.read_to(block, blocks, 7),
                6 => class.write_from(block, blocks, 7),
                _ => class.begin(ScsiCommand::TestUnitReady),
            };
        },
        &mut |event| {
            let said = match event {
                DiskEvent::Failed(failure) => format!("{failure:?}"),
                DiskEvent::Capacity(capacity) => {
                    assert!((512..=BUFFER as u32).contains(&capacity.block_bytes));
                    "capacity".into()
                }
                other => word(other).split([' ', '(']).next().unwrap_or("").to_lowercase(),
            };
            *kinds.entry(said).or_default() += 1;
        },
    );
    let all = [
        CommandFailure::Confused,
        CommandFailure::Refused,
        CommandFailure::Late,
        CommandFailure::Short,
    ];
    let seen = |kind: &str| kinds.get(kind).is_some_and(|count| *count > 10);
    assert!(all.iter().all(|failure| seen(&format!("{failure:?}"))), "{kinds:?}");
    assert!(
        ["ready", "capacity", "dead", "written", "read", "readto"].into_iter().all(seen),
        "{kinds:?}"
    );
}

/// Begins to read two blocks to shared memory, and returns the tag of the command.
fn ahead(disk: &mut Disk) -> u32 {
    disk.class.read_to(4, 2, 64).unwrap();
    disk.pull();
    let Some(Asked::Out(block)) = disk.next(2).cloned() else { panic!("no command") };
    assert_eq!(disk.next(0x81), Some(&Asked::Shared(64, 1024)), "before the command is through");
    u32::from_le_bytes([block[4], block[5], block[6], block[7]])
}

#[test]
fn all_transfers_of_a_read_to_shared_memory_are_asked_for_at_once() {
    let mut disk = ready();
    for _ in 0..3 {
        let tag = ahead(&mut disk);
        end(&mut disk, 2, Ok(&[0; 31]));
        assert_eq!(end(&mut disk, 0x81, Ok(&[9; 1024])), [""; 0]);
        assert_eq!(disk.next(0x81), Some(&Asked::In(13)));
        let heard = end(&mut disk, 0x81, Ok(&status(tag, 0, 0)));
        assert_eq!(heard, ["ReadTo { block: 4, place: 64 }"]);
        assert_eq!((disk.next(2), disk.next(0x81)), (None, None));
    }
    // Commands with its own buffer go step by step.
    disk.class.read(4, 2).unwrap();
    disk.pull();
    assert_eq!(disk.next(0x81), None);
}

/// Begins to write two blocks from shared memory, and returns the tag of the command.
fn writes_ahead(disk: &mut Disk) -> u32 {
    disk.class.write_from(4, 2, 64).unwrap();
    disk.pull();
    let Some(Asked::Out(block)) = disk.next(2).cloned() else { panic!("no command") };
    assert_eq!(disk.next(0x81), Some(&Asked::In(13)), "before the command is through");
    u32::from_le_bytes([block[4], block[5], block[6], block[7]])
}

/// Lets a disk that works write two blocks.
fn written(disk: &mut Disk) -> Vec<String> {
    let tag = writes_ahead(disk);
    assert_eq!(end(disk, 2, Ok(&[0; 31])), [""; 0]);
    assert_eq!(disk.next(2), Some(&Asked::Shared(64, 1024)));
    assert_eq!(end(disk, 2, Ok(&[0; 1024])), [""; 0]);
    end(disk, 0x81, Ok(&status(tag, 0, 0)))
}

#[test]
fn all_transfers_of_a_write_from_shared_memory_are_asked_for_at_once() {
    let mut disk = ready();
    for _ in 0..3 {
        assert_eq!(written(&mut disk), ["Written { block: 4 }"]);
        assert_eq!((disk.next(2), disk.next(0x81)), (None, None));
    }
    disk.class.ask_ahead(false);
    disk.class.write_from(4, 2, 64).unwrap();
    disk.pull();
    assert_eq!(disk.next(0x81), None);
}

/// Wherever a write breaks off, the device is reset, nothing counts as written, and the next write
/// is as any other.
#[test]
fn a_write_that_breaks_off_leaves_nothing_behind() {
    let faults = [TransferFault::Stall, TransferFault::Damaged];
    for (step, fault) in (0..2).flat_map(|step| faults.map(|fault| (step, fault))) {
        let mut disk = ready();
        writes_ahead(&mut disk);
        for _ in 0..step {
            assert_eq!(end(&mut disk, 2, Ok(&[0; 31])), [""; 0]);
        }
        assert_eq!(end(&mut disk, 2, Err(fault)), [""; 0]);
        assert_eq!((disk.next(2), disk.next(0x81)), (None, None), "the status is cancelled");
        let refused = (step, fault) == (1, TransferFault::Stall);
        let failed = if refused { "Failed(Refused)" } else { "Failed(Confused)" };
        assert_eq!(reset(&mut disk), [failed], "{step} {fault:?}");
        assert_eq!(written(&mut disk), ["Written { block: 4 }"], "{step} {fault:?}");
    }
}

/// A status that comes before the data, or before the command, says nothing of them.
#[test]
fn a_write_whose_status_comes_first_is_not_believed() {
    for commanded in [false, true] {
        let mut disk = ready();
        let tag = writes_ahead(&mut disk);
        if commanded {
            assert_eq!(end(&mut disk, 2, Ok(&[0; 31])), [""; 0]);
        }
        assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 0, 0))), [""; 0]);
        assert_eq!(disk.next(2), None, "the rest is cancelled");
        assert_eq!(reset(&mut disk), ["Failed(Late)"]);
        assert_eq!(written(&mut disk), ["Written { block: 4 }"]);
    }
}

/// A disk that takes the data and never answers is reset.
#[test]
fn a_write_without_an_answer_is_late() {
    for step in 0..3 {
        let mut disk = ready();
        writes_ahead(&mut disk);
        for bytes in [&[0; 31][..], &[0; 1024]].into_iter().take(step) {
            assert_eq!(end(&mut disk, 2, Ok(bytes)), [""; 0]);
        }
        disk.wake(&mut |_| {});
        assert_eq!(reset(&mut disk), ["Failed(Late)"], "{step}");
        assert_eq!(written(&mut disk), ["Written { block: 4 }"], "{step}");
    }
}

/// A status that was asked for ahead ends with the data that the device refused. The class asks for
/// it again.
#[test]
fn data_that_is_refused_ends_the_status_that_was_asked_for_ahead() {
    let mut disk = ready();
    let tag = ahead(&mut disk);
    end(&mut disk, 2, Ok(&[0; 31]));
    assert_eq!(end(&mut disk, 0x81, Err(TransferFault::Stall)), [""; 0]);
    assert_eq!(disk.next(0x81), Some(&Asked::Recover));
    end(&mut disk, 0x81, Ok(&[]));
    assert_eq!(disk.next(0x81), Some(&Asked::In(13)));
    assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 1024, 1))), ["Failed(Refused)"]);
    // The next command is as any other.
    let tag = ahead(&mut disk);
    end(&mut disk, 2, Ok(&[0; 31]));
    end(&mut disk, 0x81, Ok(&[9; 1024]));
    assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 0, 0))).len(), 1);
}

/// Wherever a command that was asked for at once breaks off, the device is reset and works again.
#[test]
fn a_command_that_breaks_off_leaves_nothing_behind() {
    let faults = [TransferFault::Stall, TransferFault::Damaged];
    for (step, fault) in (0..3).flat_map(|step| faults.map(|fault| (step, fault))) {
        let mut disk = ready();
        ahead(&mut disk);
        let ends: [(u8, &[u8]); 3] = [(2, &[0; 31]), (0x81, &[9; 1024]), (0x81, &[])];
        for (endpoint, bytes) in &ends[..step] {
            assert_eq!(end(&mut disk, *endpoint, Ok(bytes)), [""; 0]);
        }
        assert_eq!(end(&mut disk, ends[step].0, Err(fault)), [""; 0]);
        if fault == TransferFault::Damaged || step == 0 {
            assert_eq!(reset(&mut disk), ["Failed(Confused)"], "{step} {fault:?}");
            let tag = ahead(&mut disk);
            end(&mut disk, 2, Ok(&[0; 31]));
            end(&mut disk, 0x81, Ok(&[9; 1024]));
            assert_eq!(end(&mut disk, 0x81, Ok(&status(tag, 0, 0))).len(), 1, "{step} {fault:?}");
        }
    }
}

#[test]
fn a_device_that_answers_before_it_was_asked_is_not_believed() {
    let mut disk = ready();
    ahead(&mut disk);
    assert_eq!(end(&mut disk, 0x81, Ok(&[9; 1024])), [""; 0]);
    assert_eq!(disk.next(2), None, "the command is cancelled");
    assert_eq!(reset(&mut disk), ["Failed(Late)"]);
    disk.class.read_to(0, 1, 0).unwrap();
}
