//! `diapason image`: one file that boots a system on a PC, from a stick or a disc, by BIOS or UEFI.
//!
//! GRUB is the boot loader: a core image of it for each firmware finds the kernel and the archive
//! on the medium and starts the kernel by multiboot2. The file is a hybrid of an ISO 9660 disc and
//! a partitioned disk. Neither root nor a mount is needed, and equal input gives equal bytes.

use crate::commands::Length;
use crate::describe::{describe_any, one_host};
use crate::failure::{Failure, HOLDS, UNPROVED};
use crate::image::{fnv, without_sections};
use crate::output::{note, say};
use crate::plan::{Plan, Verdict};
use crate::qemu::RunFolder;
use crate::session::Session;
use crate::several::Several;
use crate::tools::{self, Missing, Tool};
use crate::workspace::Workspace;
use crate::{computer, cores, duration, plan, project, results, sheet};
use diapason_abi::{Nanos, PAGE};
use diapason_contract::results::PARTITION;
use diapason_system::{Description, RunOptions, System};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MKIMAGE: Tool = Tool { program: "grub-mkimage", package: "grub-common" };
const HYBRID: Tool =
    Tool { program: "/usr/lib/grub/i386-pc/boot_hybrid.img", package: "grub-pc-bin" };
const EFI_MODULE: Tool =
    Tool { program: "/usr/lib/grub/x86_64-efi/multiboot2.mod", package: "grub-efi-amd64-bin" };
const MFORMAT: Tool = Tool { program: "mformat", package: "mtools" };
const XORRISO: Tool = Tool { program: "xorriso", package: "xorriso" };
/// The tools that make an image.
pub const TOOLS: [Tool; 5] = [MKIMAGE, HYBRID, EFI_MODULE, MFORMAT, XORRISO];

/// The time of everything in an image: 2026-01-01.
const EPOCH: &str = "1767225600";
/// Modules of GRUB in the core image of either firmware.
const MODULES: [&str; 12] = [
    "iso9660",
    "fat",
    "part_msdos",
    "search",
    "search_fs_file",
    "multiboot2",
    "normal",
    "configfile",
    "cpuid",
    "echo",
    "sleep",
    "boot",
];
/// GRUB's configuration, next to which its core images are made.
const CONFIGURATION: &str = "early.cfg";
/// The folder of what becomes the disc, and the file system that UEFI starts from.
const TREE: &str = "tree";
/// GRUB's second configuration, in the folder of kernel and archive. A medium has the files of a
/// folder in the order of their names, so this one is missing if its writing was cut off in one of
/// the others.
const START: &str = "start.cfg";
const ESP: &str = "esp.img";
const RESULT: &str = "image.iso";
/// The partition that keeps the console of a run.
const KEPT: &str = "results.img";

/// The request to `image`.
#[derive(Clone, Debug, clap::Args)]
pub struct ImageRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
    /// The file to write: copy it to a stick as it is, or burn it.
    #[arg(short, long, value_name = "FILE", default_value = "stick.img")]
    pub out: PathBuf,
    /// How long the system runs, in its own time, before it says its verdict and stops [default:
    /// until the power goes].
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    pub horizon_ns: Option<u64>,
    /// The computer as it was measured: a profile that `diapason profile` wrote.
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Keep the console of a run in a partition of so many bytes, for `diapason results` [default:
    /// 4M].
    #[arg(long, value_name = "SIZE", value_parser = results::size, num_args = 0..=1,
        require_equals = true, default_missing_value = results::USUAL)]
    pub results: Option<u64>,
    /// Make it even if the plan does not hold; the screen then says that it is unproved.
    #[arg(long)]
    pub unproved: bool,
}

/// Makes an image of a system.
///
/// # Errors
/// If the description is wrong or its plan does not hold, a tool is missing, or a file cannot be
/// written.
pub fn image(request: &ImageRequest) -> Result<u8, Failure> {
    let horizon_ns = request.horizon_ns.unwrap_or(Nanos::FOREVER.0);
    let length = Length { horizon_ns, unproved: request.unproved };
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let (path, unproved) = (&request.system, length.unproved());
    let mut described = describe_any(path)?;
    if let Some(profile) = &request.machine {
        computer::plan_for(path, &mut described, profile)?;
    }
    let systems = match described {
        Description::Cores(systems) => systems,
        other => vec![one_host(path, other)?],
    };
    if request.results.is_some() {
        results::require(path, &systems)?;
    }
    let workspace = Workspace::find()?;
    tools::require_all(&TOOLS, Missing::Say)?;
    let sessions = match <[System; 1]>::try_from(systems) {
        Ok([system]) => {
            let plan = Plan::of(&system);
            plan::cleared(&plan, unproved)?;
            note("building the kernel and the programs");
            let built = project::build(&workspace, path, &[&system])?;
            let mut session = Session::planned(plan, built, options, unproved)?;
            session.results_bytes = request.results;
            vec![(String::from("0"), session.on_own_kernel(&workspace)?)]
        }
        Err(systems) => {
            let several = Several::cores(systems);
            let (mut sessions, _) = several.assemble(&workspace, path, options, unproved)?;
            cores::share_kernel(&workspace, &mut sessions)?;
            for (_, session) in &mut sessions {
                session.results_bytes = request.results;
            }
            sessions
        }
    };
    let sessions: Vec<&Session> = sessions.iter().map(|(_, session)| session).collect();
    let bytes = make(&sessions, &workspace, &request.out)?;
    let Some(session) = sessions.first() else { return Ok(UNPROVED) };
    let promises = |session: &Session| session.plan.verdict() != Verdict::PromisesNothing;
    let proved = sessions.iter().all(|session| session.proved);
    let state = if proved { "" } else { "; unproved" };
    let proved = proved && sessions.iter().any(|session| promises(session));
    say(&format!(
        "{}: {}, {bytes} bytes, for BIOS and UEFI, stick and disc{state}",
        request.out.display(),
        session.system.name
    ));
    Ok(if proved { HOLDS } else { UNPROVED })
}

/// Writes the image of a system to `out`, and returns its length. The system is one session, or
/// those of the cores of a host, which share the first one's kernel.
///
/// # Errors
/// If a tool fails, or a file cannot be written.
pub fn make(sessions: &[&Session], workspace: &Workspace, out: &Path) -> Result<u64, Failure> {
    let Some(session) = sessions.first() else {
        return Err(Failure::Ours(String::from("an image of no system")));
    };
    let folder = RunFolder::create(&workspace.target())?;
    let at = folder.path();
    let kernel = session.built.kernel_for(&session.options);
    let kernel = fs::read(kernel)
        .map_err(|error| Failure::io(format!("read {}", kernel.display()), &error))?;
    let kernel = without_sections(kernel);
    // The kernel skips the first page of a module (`boot/handed.rs`).
    let mut archive = [&[0; PAGE], &*cores::archives(sessions, 0)].concat();
    sheet::write(session, sessions.len(), &mut archive);
    let name = folder_name(&kernel, &archive);
    write(at, &format!("{TREE}/{name}/kernel"), &kernel)?;
    write(at, &format!("{TREE}/{name}/archive"), &archive)?;
    write(at, CONFIGURATION, early(session, &name).as_bytes())?;
    write(at, &format!("{TREE}/{name}/{START}"), start(session, &name).as_bytes())?;
    write(at, &format!("{TREE}/EFI/BOOT/BOOTX64.EFI"), &[])?;
    write(at, &format!("{TREE}/boot/bios.img"), &[])?;
    for (format, file, more) in [
        ("x86_64-efi", "EFI/BOOT/BOOTX64.EFI", "efi_gop"),
        ("i386-pc-eltorito", "boot/bios.img", "biosdisk vbe"),
    ] {
        let out = format!("{TREE}/{file}");
        let own = ["-O", format, "-c", CONFIGURATION, "-p", "/boot/grub", "-o", &out];
        let more: Vec<&str> = more.split(' ').collect();
        run(at, MKIMAGE.program, &[&own[..], &MODULES, &more].concat())?;
    }
    let efi = format!("{TREE}/EFI/BOOT/BOOTX64.EFI");
    make_all_old(at)?;
    run(at, "mformat", &["-C", "-i", ESP, "-f", "1440", "-N", "12345678", "::"])?;
    run(at, "mmd", &["-i", ESP, "::/EFI", "::/EFI/BOOT"])?;
    run(at, "mcopy", &["-m", "-i", ESP, &efi, "::/EFI/BOOT/BOOTX64.EFI"])?;
    make_all_old(at)?;
    let kept =
        session.results_bytes.map(|bytes| results::partition(sessions, bytes)).transpose()?;
    if let Some(partition) = &kept {
        write(at, KEPT, partition)?;
    }
    let kind = kept.map(|_| format!("{PARTITION:#x}"));
    run(at, XORRISO.program, &disc(kind.as_deref()))?;
    fs::copy(at.join(RESULT), out)
        .map_err(|error| Failure::io(format!("write {}", out.display()), &error))
}

/// Returns the folder of kernel and archive on the medium. Its name is that of their content:
/// GRUB looks for it on all disks of the PC, and must not find another system.
fn folder_name(kernel: &[u8], archive: &[u8]) -> String {
    format!("{:016x}", fnv([kernel, archive]))
}

/// GRUB waits for so many seconds, so that a message stays on the screen.
const STAYS: &str = "sleep 2147483647";

/// Returns GRUB's first configuration: find the folder, and go on with the configuration in it.
/// The first line that it prints stays on the screen.
fn early(session: &Session, name: &str) -> String {
    let system = &session.system.name;
    let state = if session.proved { "" } else { ", UNPROVED" };
    format!(
        "search --no-floppy --set=root --file /{name}/kernel\n\
         echo 'Diapason: {system}{state}. The console is the first serial port, 115200 baud.'\n\
         source /{name}/{START}\n\
         echo '{NOT_WHOLE}'\n\
         {STAYS}\n"
    )
}

/// The message about a medium that lacks something.
const NOT_WHOLE: &str = "Nothing starts: this medium is not whole. Write the image to it again.";

/// Returns GRUB's second configuration: load and start, or say why not.
fn start(session: &Session, name: &str) -> String {
    let system = &session.system.name;
    format!(
        "if cpuid -l; then\n\
         if multiboot2 /{name}/kernel; then\n\
         if module2 /{name}/archive; then boot; fi\n\
         fi\n\
         echo '{NOT_WHOLE}'\n\
         else\n\
         echo 'Nothing starts: {system} needs a processor with 64 bits, and this PC has none.'\n\
         fi\n\
         {STAYS}\n"
    )
}

/// Returns the arguments that make the hybrid of disc and disk. `kept` is the kind of the partition
/// for results, if there is one.
fn disc(kept: Option<&str>) -> Vec<&str> {
    let mut arguments = vec!["-as", "mkisofs", "-quiet", "-V", "DIAPASON", "-R"];
    arguments.extend(["-b", "boot/bios.img", "-no-emul-boot", "-boot-load-size", "4"]);
    arguments.extend(["-boot-info-table", "--grub2-boot-info", "--grub2-mbr", HYBRID.program]);
    arguments.extend(["-append_partition", "2", "0xef", ESP]);
    if let Some(kind) = kept {
        arguments.extend(["-append_partition", "3", kind, KEPT]);
    }
    arguments.push("-eltorito-alt-boot");
    arguments.extend(["-e", "--interval:appended_partition_2:all::", "-no-emul-boot"]);
    arguments.extend(["-o", RESULT, TREE]);
    arguments
}

fn write(folder: &Path, file: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = folder.join(file);
    let written = fs::create_dir_all(path.parent().unwrap_or(folder));
    written
        .and_then(|()| fs::write(&path, bytes))
        .map_err(|error| Failure::io(format!("write {}", path.display()), &error))
}

/// Gives every file and folder of the tree the same time.
fn make_all_old(folder: &Path) -> Result<(), Failure> {
    run(folder, "find", &[TREE, "-exec", "touch", "-d", &format!("@{EPOCH}"), "{}", "+"])
}

/// Runs a tool in a folder to its good end; what it said is told if it fails.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("SOURCE_DATE_EPOCH", EPOCH)
        .env("TZ", "UTC")
        .env("MTOOLSRC", "/dev/null")
        .output()
        .map_err(|error| Failure::io(format!("start {program}"), &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::World(format!("{program} failed ({}):\n{}", output.status, said.trim_end())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kernel_or_archive_is_in_another_folder() {
        let names = [folder_name(b"k", b"a"), folder_name(b"k", b"b"), folder_name(b"l", b"a")];
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
        assert!(names.iter().all(|name| name.len() == 16));
    }

    #[test]
    fn a_tool_that_fails_says_why() {
        let text = run(Path::new("/"), "ls", &["/no/such/file"]).unwrap_err().to_string();
        assert!(text.contains("ls failed") && text.contains("/no/such/file"), "{text}");
    }
}
