//! The kernel of one system: only the calls that its programs make, and the kinds of objects that
//! it has.
//!
//! The calls of a program are in its file (`user/rt/src/sys.rs`), the objects in the archive. The
//! kernel is compiled with both as one word (`diapason_abi::served`), in a folder for each word, so
//! cargo compiles a set of calls once. A kind of objects is left out only if the system has none of
//! it, and the whole kernel decides then as if it did not know the kind. So both kernels decide the
//! same.

use crate::failure::Failure;
use crate::image::Image;
use crate::metal::{self, ImageKind};
use crate::output::note;
use crate::session::Session;
use crate::workspace::Workspace;
use diapason_abi::archive::Archive;
use diapason_abi::served::Served;
use diapason_core::Sizes;

impl Session {
    /// Returns the calls and services that the kernel of this session needs.
    ///
    /// # Errors
    /// If a program cannot be read, or the archive is none.
    pub fn needs(&self) -> Result<Served, Failure> {
        let archive = Archive::parse(&self.archive).ok();
        let sizes = archive.as_ref().and_then(Sizes::of).ok_or_else(|| {
            Failure::Ours(String::from("the archive is not one that a kernel accepts"))
        })?;
        let mut needed = Served::LEAST.and(sizes.services());
        for process in &self.system.processes {
            let path = self.built.path(&process.program).map_err(Failure::Input)?;
            needed = needed.and(Image::read(path)?.calls());
        }
        Ok(needed)
    }

    /// Puts the session on a kernel of its own, and says so. An installation has no sources of the
    /// kernel, so there the session stays on the whole one.
    ///
    /// # Errors
    /// If the kernel does not compile.
    pub fn on_own_kernel(mut self, workspace: &Workspace) -> Result<Session, Failure> {
        let needed = self.needs()?;
        self.use_kernel_with(workspace, needed)?;
        Ok(self)
    }

    /// Puts the session on a kernel that serves what several sessions need, and says so.
    ///
    /// # Errors
    /// As of [`Session::on_own_kernel`].
    pub fn use_kernel_with(
        &mut self,
        workspace: &Workspace,
        needed: Served,
    ) -> Result<(), Failure> {
        let of = &self.system.name;
        let observed = self.options.watch || self.options.record_bytes > 0;
        let kind = if observed { ImageKind::ObservingKernel } else { ImageKind::Kernel };
        let Some(kernel) = metal::kernel_with(workspace, needed, kind)? else {
            note(&format!("{of}: the kernel with all calls, as it is installed"));
            return Ok(());
        };
        let calls = needed.calls().count();
        let bytes = Image::read(&kernel)?.sizes().resident();
        note(&format!("{of}: a kernel with {calls} calls, of which {bytes} bytes stay in memory"));
        *if observed { &mut self.built.observing } else { &mut self.built.kernel } = kernel;
        Ok(())
    }
}
