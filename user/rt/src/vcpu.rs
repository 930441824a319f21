//! Virtual CPUs: budgets of processor time that threads run on.

use crate::sys::{call1, call3, call5};
use diapason_abi::{CallNumber, Errno, Key, Nanos};

/// A virtual CPU this process may put threads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu(u64);

impl Vcpu {
    /// The one the description gives the process, if any.
    pub const DEFAULT: Vcpu = Vcpu(0);

    /// Returns the declared VCPU with this name; a name that was not granted ends the process.
    ///
    /// # Errors
    /// None that a correct program meets.
    pub fn open(name: &str) -> Result<Vcpu, Errno> {
        call5::<{ CallNumber::VcpuCreate as u8 }>(Key::new(name).0, 0, 0, 0, 0).map(Vcpu)
    }

    /// Returns a new VCPU, below all declared ones with a shorter period.
    ///
    /// # Errors
    /// `Overload` if the core cannot keep that promise ([`Vcpu::fit`] says what it could);
    /// `Exhausted` if the process has made as many as it may.
    pub fn create(budget: Nanos, period: Nanos, background: bool) -> Result<Vcpu, Errno> {
        const REPLENISHMENTS: u64 = diapason_abi::archive::REPLENISHMENTS_MAX as u64;
        let (key, background) = (Key::PRIVATE.0, u64::from(background));
        call5::<{ CallNumber::VcpuCreate as u8 }>(
            key,
            budget.0,
            period.0,
            REPLENISHMENTS,
            background,
        )
        .map(Vcpu)
    }

    /// Gives the VCPU another budget and period from now on. A declared one gets no more than the
    /// description says, unless some process of the core may make VCPUs.
    ///
    /// # Errors
    /// `Overload` if that is more, or if the core cannot keep that promise: then nothing has
    /// changed.
    pub fn set(self, budget: Nanos, period: Nanos) -> Result<(), Errno> {
        call3::<{ CallNumber::VcpuSet as u8 }>(self.0, budget.0, period.0).map(drop)
    }

    /// Gives a VCPU made by [`Vcpu::create`] back.
    ///
    /// # Errors
    /// `Busy` while a thread lives on it, and for declared ones.
    pub fn delete(self) -> Result<(), Errno> {
        call1::<{ CallNumber::VcpuDelete as u8 }>(self.0).map(drop)
    }

    /// Returns the largest budget that would be admitted at `period`.
    ///
    /// # Errors
    /// None that a correct program meets.
    pub fn fit(period: Nanos) -> Result<Nanos, Errno> {
        call1::<{ CallNumber::VcpuFit as u8 }>(period.0).map(Nanos)
    }

    /// Returns the word that names it in a call.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }
}
