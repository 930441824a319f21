//! Every bit of an archive is checked: these tests flip them.

use super::*;

fn process() -> ProcessRecord {
    ProcessRecord {
        key: 1,
        image_offset: 0,
        image_length: 0,
        image_crc: 0,
        priority: 5,
        start_at_boot: true,
        counters: true,
        supervisor: NONE,
        threads: 2,
        semaphores: 3,
        conditions: 4,
        events: 5,
        stack_pages: 4,
        heap_pages: 7,
        restarts_max: 8,
        backoff: 9,
        starters: 10,
        arguments: [11, 12, 13, 14],
        vcpu: 0,
        vcpus: 2,
    }
}

fn control() -> VcpuRecord {
    VcpuRecord {
        key: 5,
        allowed: 1,
        serves: 0,
        budget: 1_000_000,
        period: 7_000_000,
        cap: 0,
        interval: 0,
        most: 2_000_000,
        least: 6_000_000,
        utilization_ppm: 0,
        kind: VcpuKind::Main,
        background: true,
        replenishments: 8,
        queue: 1,
    }
}

fn bottom_halves() -> VcpuRecord {
    VcpuRecord {
        key: 6,
        serves: 1,
        budget: 0,
        period: 0,
        cap: u64::MAX,
        interval: 125_000,
        most: 0,
        least: 0,
        utilization_ppm: 50_000,
        kind: VcpuKind::Io,
        background: false,
        replenishments: 1,
        ..control()
    }
}

fn archive_of(process: ProcessRecord, image: &[u8]) -> Vec<u8> {
    archive_with(process, &[control(), bottom_halves()], image)
}

fn archive_with(process: ProcessRecord, vcpus: &[VcpuRecord], image: &[u8]) -> Vec<u8> {
    let object = ObjectRecord {
        key: 2,
        allowed: 1,
        initial: 3,
        kind: ObjectKind::Mailbox,
        capacity: 4,
        faults_of: NONE,
        mutex: 1,
    };
    let segment = SegmentRecord { key: 3, allowed: 1, pages: 2, dma: true, common: true };
    let device = DeviceRecord {
        key: 4,
        allowed: 1,
        location: Location::Address(5),
        pages: 1,
        irq: NONE,
        level: true,
        interval: 6,
    };
    let mut header = Header {
        length: 0,
        processes: 1,
        objects: 1,
        segments: 1,
        devices: 1,
        horizon: 77,
        flags: flags::RECORD,
        recorder_bytes: 4096,
        vcpus: vcpus.len() as u16,
        dp_queues: 1,
        switch_grace: 1_750,
        interrupt_grace: 600,
        longest_path: 9_000,
    };
    let offset = header.tables_end();
    header.length = (offset + image.len()) as u32;
    let process = ProcessRecord {
        image_offset: offset as u32,
        image_length: image.len() as u32,
        image_crc: crc32(image),
        ..process
    };
    let mut bytes = header.to_bytes(0).to_vec();
    bytes.extend(process.to_bytes());
    bytes.extend(object.to_bytes());
    bytes.extend(segment.to_bytes());
    bytes.extend(device.to_bytes());
    vcpus.iter().for_each(|vcpu| bytes.extend(vcpu.to_bytes()));
    let crc = crc32(&bytes[CRC_FROM..]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes.extend(image);
    bytes
}

#[test]
fn flags_are_added_to_an_archive_and_to_nothing_else() {
    let mut bytes = archive_of(process(), b"image");
    add_flags(&mut bytes, 3 << flags::SLOWER_FROM);
    let added = Archive::parse(&bytes).unwrap().header.flags;
    assert_eq!((flags::slower(added), added & 0xff), (3, flags::RECORD));
    bytes[20] ^= 1;
    let damaged = bytes.clone();
    add_flags(&mut bytes, flags::WATCH);
    assert_eq!(bytes, damaged);
}

#[test]
fn crc_is_the_standard_one() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn tables_come_back_as_written() {
    let bytes = archive_of(process(), b"image");
    let archive = Archive::parse(&bytes).unwrap();
    let read = archive.processes().next().unwrap();
    assert_eq!(ProcessRecord { image_offset: 0, image_length: 0, image_crc: 0, ..read }, process());
    assert_eq!(archive.image(&read), Ok(&b"image"[..]));
    let object = archive.objects().next().unwrap();
    assert_eq!((object.capacity, object.mutex), (4, 1));
    let segment = archive.segments().next().unwrap();
    assert!(segment.pages == 2 && segment.dma);
    let device = archive.devices().next().unwrap();
    assert!(device.level && device.interval == 6);
    assert!(archive.vcpus().eq([control(), bottom_halves()]));
    assert_eq!((archive.header.horizon, archive.header.recorder_bytes), (77, 4096));
}

#[test]
fn every_single_bit_flip_is_noticed() {
    let good = archive_of(process(), b"image");
    let tables = Archive::parse(&good).unwrap().header.tables_end();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        match Archive::parse(&bad) {
            Err(_) => assert!(bit / 8 < tables),
            Ok(archive) => {
                let record = archive.processes().next().unwrap();
                assert_eq!(archive.image(&record), Err(Refusal::ImageChecksum));
            }
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    let good = archive_of(process(), b"image");
    for length in 0..good.len() {
        assert!(Archive::parse(&good[..length]).is_err());
    }
}

#[test]
fn impossible_entries_are_refused_though_the_checksum_is_right() {
    for bad in [
        ProcessRecord { priority: 64, ..process() },
        ProcessRecord { threads: 0, ..process() },
        ProcessRecord { threads: 65, ..process() },
        ProcessRecord { stack_pages: 64, ..process() },
        ProcessRecord { supervisor: 1, ..process() },
        ProcessRecord { heap_pages: 0x8001, ..process() },
        ProcessRecord { vcpu: 2, ..process() },
        ProcessRecord { vcpus: 65, ..process() },
    ] {
        assert_eq!(Archive::parse(&archive_of(bad, b"")).unwrap_err(), Refusal::Table);
    }
}

/// Where the header has the number of queues by deadline.
const DP_QUEUES_AT: usize = 46;

fn refusal(vcpus: &[VcpuRecord]) -> Option<Refusal> {
    Archive::parse(&archive_with(process(), vcpus, b"")).err()
}

#[test]
fn impossible_vcpus_are_refused() {
    let (main, io) = (control(), bottom_halves());
    for bad in [
        VcpuRecord { budget: main.period + 1, ..main },
        VcpuRecord { budget: 0, ..main },
        VcpuRecord { period: PERIOD_MIN.0 - 1, budget: 2_000, ..main },
        VcpuRecord { period: PERIOD_MAX.0 + 1, ..main },
        VcpuRecord { replenishments: 1, ..main },
        VcpuRecord { replenishments: 9, ..main },
        VcpuRecord { queue: 2, ..main },
        VcpuRecord { serves: 1, ..main },
        VcpuRecord { cap: 1, ..main },
        VcpuRecord { interval: 1, ..main },
        VcpuRecord { utilization_ppm: 1, ..main },
        VcpuRecord { most: main.budget - 1, ..main },
        VcpuRecord { most: main.least + 1, ..main },
        VcpuRecord { most: 0, ..main },
        VcpuRecord { least: main.period + 1, ..main },
        VcpuRecord { least: 0, ..main },
        VcpuRecord { most: 1, ..io },
        VcpuRecord { utilization_ppm: 0, ..io },
        VcpuRecord { utilization_ppm: 1_000_001, ..io },
        VcpuRecord { serves: 0, ..io },
        VcpuRecord { interval: 0, ..io },
        VcpuRecord { serves: 0b100, ..io },
        VcpuRecord { serves: 0b10, ..io },
        VcpuRecord { serves: 1 << 63, ..io },
        VcpuRecord { cap: PERIOD_MIN.0 - 1, ..io },
        VcpuRecord { queue: 2, ..io },
        VcpuRecord { budget: 1, ..io },
        VcpuRecord { background: true, ..io },
        VcpuRecord { replenishments: 0, ..io },
        VcpuRecord { replenishments: 9, ..io },
    ] {
        assert_eq!(refusal(&[main, bad]), Some(Refusal::Vcpu), "{bad:?}");
    }
    assert_eq!(refusal(&[main, io]), None);
}

#[test]
fn a_vcpu_of_no_known_kind_is_refused() {
    let mut bytes = archive_of(process(), b"");
    let last = bytes.len() - VCPU_BYTES;
    bytes[last + 60] = 2;
    let crc = crc32(&bytes[CRC_FROM..]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(Archive::parse(&bytes).unwrap_err(), Refusal::Vcpu);
}

#[test]
fn declared_and_promised_vcpus_together_are_at_most_64() {
    let all = [control(); 62];
    assert_eq!(refusal(&all), None);
    assert_eq!(refusal(&[control(); 63]), Some(Refusal::Vcpu));
    assert_eq!(refusal(&[control(); 65]), Some(Refusal::Vcpu));
    let many = archive_with(process(), &all, b"");
    let mut more = many.clone();
    more[DP_QUEUES_AT] = DP_QUEUES_MAX + 1;
    let crc = crc32(&more[CRC_FROM..Archive::parse(&many).unwrap().header.tables_end()]);
    more[12..16].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(Archive::parse(&more).unwrap_err(), Refusal::Vcpu, "too many queues");
}
