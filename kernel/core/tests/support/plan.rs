//! Boot archives made by hand, record by record.

use diapason_abi::Key;
use diapason_abi::archive::{
    CRC_FROM, DeviceRecord, Header, Location, MESSAGES, NONE, ObjectKind, ObjectRecord,
    PciFunction, ProcessRecord, SegmentRecord, VcpuKind, VcpuRecord, crc32,
};
use diapason_abi::call::MUTEX;
use diapason_costs::{Counts, Dimensions, INTERRUPT_GRACE, KERNEL, SWITCH_GRACE, Tables};

/// A grant to every process.
pub const EVERYBODY: u64 = u64::MAX;

/// The key of a name.
pub fn key(name: &str) -> u64 {
    Key::new(name).0
}

/// A system description under construction.
#[derive(Clone, Default)]
pub struct Plan {
    processes: Vec<ProcessRecord>,
    objects: Vec<ObjectRecord>,
    segments: Vec<SegmentRecord>,
    devices: Vec<DeviceRecord>,
    vcpus: Vec<VcpuRecord>,
    dp_queues: u8,
    /// Programs the machine refuses, one bit each.
    pub refused: u64,
}

impl Plan {
    /// Returns an empty plan.
    pub fn new() -> Plan {
        Plan::default()
    }

    /// A process that starts at boot, with room for a handful of everything.
    pub fn process(mut self, name: &str, priority: u8) -> Plan {
        self.processes.push(ProcessRecord {
            key: key(name),
            image_offset: 0,
            image_length: 0,
            image_crc: 0,
            priority,
            start_at_boot: true,
            counters: false,
            supervisor: NONE,
            threads: 8,
            semaphores: 4,
            conditions: 2,
            events: 4,
            stack_pages: 1,
            heap_pages: 16,
            restarts_max: 3,
            backoff: 5_000,
            starters: 0,
            arguments: [0; 4],
            vcpu: NONE,
            vcpus: 0,
        });
        self
    }

    /// Changes the process declared last.
    pub fn with(mut self, change: impl FnOnce(&mut ProcessRecord)) -> Plan {
        change(self.processes.last_mut().expect("a process was declared"));
        self
    }

    /// The process declared last reports its faults to this one.
    pub fn supervised_by(self, supervisor: u16) -> Plan {
        self.with(|p| p.supervisor = supervisor)
    }

    fn object(mut self, name: &str, kind: ObjectKind, initial: u64, capacity: u16) -> Plan {
        let (key, allowed) = (key(name), EVERYBODY);
        let (faults_of, mutex) = (NONE, NONE);
        let record = ObjectRecord { key, allowed, initial, kind, capacity, faults_of, mutex };
        self.objects.push(record);
        self
    }

    /// Adds a shared mutex.
    pub fn mutex(self, name: &str) -> Plan {
        self.object(name, ObjectKind::Semaphore, MUTEX, 0)
    }

    /// A shared counting semaphore.
    pub fn semaphore(self, name: &str, initial: u64) -> Plan {
        self.object(name, ObjectKind::Semaphore, initial, 0)
    }

    /// A shared condition variable.
    pub fn condition(self, name: &str) -> Plan {
        self.object(name, ObjectKind::Condition, 0, 0)
    }

    /// Adds a mailbox with room for `capacity` messages.
    pub fn mailbox(self, name: &str, capacity: u16) -> Plan {
        self.object(name, ObjectKind::Mailbox, 0, capacity)
    }

    /// The mailbox in which a process receives the fault reports of those it supervises.
    pub fn reports(mut self, name: &str, capacity: u16, supervisor: u16) -> Plan {
        self = self.mailbox(name, capacity).only(1 << supervisor);
        self.objects.last_mut().expect("just declared").faults_of = supervisor;
        self
    }

    /// The mailbox declared last has this mutex, by its number among the semaphores.
    pub fn served_with(mut self, mutex: u16) -> Plan {
        self.objects.last_mut().expect("a mailbox was declared").mutex = mutex;
        self
    }

    /// Grant the object declared last to these processes only.
    pub fn only(mut self, processes: u64) -> Plan {
        self.objects.last_mut().expect("an object was declared").allowed = processes;
        self
    }

    /// Adds a shared segment.
    pub fn segment(mut self, name: &str, pages: u32, allowed: u64) -> Plan {
        self.segments.push(SegmentRecord {
            key: key(name),
            allowed,
            pages,
            dma: false,
            common: false,
        });
        self
    }

    /// The segment declared last is for devices.
    pub fn for_devices(mut self) -> Plan {
        self.segments.last_mut().expect("a segment was declared").dma = true;
        self
    }

    /// The segment declared last is shown by other cores, too.
    pub fn in_common(mut self) -> Plan {
        self.segments.last_mut().expect("a segment was declared").common = true;
        self
    }

    /// A doorbell that is answered on this core, or, with the interrupt `NONE`, on core 1.
    pub fn bell(mut self, name: &str, number: u16, irq: u16, allowed: u64) -> Plan {
        self = self.device(name, irq, false, allowed);
        let bell = self.devices.last_mut().expect("just declared");
        let core = u16::from(irq == NONE);
        (bell.location, bell.pages) = (Location::Bell { core, number }, 0);
        self
    }

    /// A device with an interrupt line.
    pub fn device(mut self, name: &str, irq: u16, level: bool, allowed: u64) -> Plan {
        self.devices.push(DeviceRecord {
            key: key(name),
            allowed,
            location: Location::Address(0xfe00_0000),
            pages: 1,
            irq,
            level,
            interval: 0,
        });
        self
    }

    /// A PCI function with so many messages, `NAME.0` and so on.
    pub fn pci(mut self, name: &str, messages: u16, allowed: u64) -> Plan {
        let of = self.devices.len() as u16;
        let numbered = self.devices.iter().filter(|d| d.irq != NONE && d.irq >= MESSAGES).count();
        self = self.device(name, NONE, false, allowed);
        let function = PciFunction { class: 0, vendor: NONE, product: NONE, instance: 0, bar: 0 };
        self.devices[of as usize].location = Location::Pci(function);
        for vector in 0..messages {
            let irq = MESSAGES + numbered as u16 + vector;
            self = self.device(&format!("{name}.{vector}"), irq, false, allowed);
            let message = self.devices.last_mut().expect("just declared");
            (message.location, message.pages) = (Location::Message { of, vector }, 0);
        }
        self
    }

    /// The device declared last interrupts at most once in `interval`.
    pub fn every(mut self, interval: u64) -> Plan {
        self.devices.last_mut().expect("a device was declared").interval = interval;
        self
    }

    /// Sets the number of queues by deadline.
    pub fn dp_queues(mut self, count: u8) -> Plan {
        self.dp_queues = count;
        self
    }

    /// A Main VCPU in a queue.
    pub fn main_vcpu(mut self, name: &str, budget: u64, period: u64, queue: u8) -> Plan {
        self.vcpus.push(VcpuRecord {
            key: key(name),
            allowed: EVERYBODY,
            serves: 0,
            budget,
            period,
            cap: 0,
            interval: 0,
            most: 0,
            least: 0,
            utilization_ppm: 0,
            kind: VcpuKind::Main,
            background: false,
            replenishments: 8,
            queue,
        });
        self
    }

    /// An I/O VCPU that serves Main VCPUs, one bit each.
    pub fn io_vcpu(mut self, name: &str, ppm: u32, serves: u64, queue: u8) -> Plan {
        self = self.main_vcpu(name, 0, 0, queue);
        self.with_vcpu(|v| {
            (v.kind, v.serves, v.utilization_ppm) = (VcpuKind::Io, serves, ppm);
            (v.cap, v.interval, v.replenishments) = (u64::MAX, 1_000_000, 1);
        })
    }

    /// Changes the VCPU declared last.
    pub fn with_vcpu(mut self, change: impl FnOnce(&mut VcpuRecord)) -> Plan {
        change(self.vcpus.last_mut().expect("a VCPU was declared"));
        self
    }

    /// Returns the counts of the kernel in this system. A clock of 1 GHz makes them times.
    pub fn kernel(&self) -> Counts {
        KERNEL.among(&self.sizes())
    }

    /// Returns the sizes of this system.
    pub fn sizes(&self) -> Dimensions {
        Dimensions::of(&Tables {
            processes: &self.processes,
            objects: &self.objects,
            segments: self.segments.len(),
            devices: self.devices.len(),
            vcpus: &self.vcpus,
            dp_queues: self.dp_queues,
        })
    }

    /// Returns the archive that boots.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut header = Header {
            length: 0,
            processes: self.processes.len() as u16,
            objects: self.objects.len() as u16,
            segments: self.segments.len() as u16,
            devices: self.devices.len() as u16,
            horizon: u64::MAX,
            flags: 0,
            recorder_bytes: 0,
            vcpus: self.vcpus.len() as u16,
            dp_queues: self.dp_queues,
            switch_grace: SWITCH_GRACE.0 as u32,
            interrupt_grace: INTERRUPT_GRACE.0 as u32,
            longest_path: self.kernel().longest_path as u32,
        };
        header.length = header.tables_end() as u32;
        let mut bytes = header.to_bytes(0).to_vec();
        self.processes.iter().for_each(|p| bytes.extend(p.to_bytes()));
        self.objects.iter().for_each(|o| bytes.extend(o.to_bytes()));
        self.segments.iter().for_each(|s| bytes.extend(s.to_bytes()));
        self.devices.iter().for_each(|d| bytes.extend(d.to_bytes()));
        self.vcpus.iter().for_each(|v| bytes.extend(v.to_bytes()));
        let crc = crc32(&bytes[CRC_FROM..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}
