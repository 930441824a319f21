//! The agreement of the trials and their assistant: orders, the state they share, code that spoils
//! the processor's vector and floating-point registers, and the USB controller that some use.

#![no_std]

pub mod controller;

use core::arch::asm;
use diapason_abi::CallNumber;
use diapason_state::{StateBuffer, plain};

/// Orders to the assistant: the first word of a message in `orders`; the second is a number. It
/// answers each with a message in `answers`, when it is done.
pub mod order {
    /// Attach `board` and write `word ^ number` into each of its words.
    pub const FILL: u64 = 1;
    pub const LEAVE: u64 = 2;
    /// Answer with what .data, .bss and the heap's first word hold, then spoil them.
    pub const SPOIL: u64 = 3;
    /// Read where nothing is.
    pub const FAULT: u64 = 4;
    /// End while holding `lock`.
    pub const HOLD: u64 = 5;
    /// Write the state in `state` for so many jobs.
    pub const WRITE: u64 = 6;
    /// Keep a secret in all vector registers while sleeping, for so many rounds.
    pub const SECRET: u64 = 7;
    /// Make a mess of all vector and floating-point registers, for so many jobs.
    pub const MESS: u64 = 8;
    /// Send so many messages of 64 bytes to `box`, waiting while it is full.
    pub const SEND: u64 = 9;
    /// Leave [`Traces`](crate::Traces) and sleep, for so many rounds.
    pub const TRACE: u64 = 10;
    /// Spin, while others leave traces, and answer with what was seen of them; the number is where
    /// their x87 operand lies.
    pub const PEEK: u64 = 11;
}

plain! {
    /// The content of the state message: torn if the two differ.
    pub struct Pair {
        pub first: u64,
        /// The value's complement, eight times.
        pub rest: [u64; 7],
    }
}

impl Pair {
    /// Returns the value of write number `n`.
    #[must_use]
    pub const fn of(n: u64) -> Pair {
        Pair { first: n, rest: [!n; 7] }
    }

    /// Returns whether it is one write's value, or untouched memory.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let untouched = self.first == 0 && self.rest == [0; 7];
        untouched || self.rest == [!self.first; 7]
    }
}

/// The cell in the segment `state`.
pub type Cell = StateBuffer<Pair, 3>;

/// Words in 16 vector registers.
pub const VECTOR_WORDS: usize = 32;

/// Fills every vector register with `word`, sets odd rounding modes, and loads the x87 stack.
pub fn mess(word: u64) {
    let control = (0x7f80_u32, 0xf7f_u16);
    let usual = (0x1f80_u32, 0x37f_u16);
    // SAFETY: the control words are restored before anything else uses them.
    unsafe {
        asm!(
            "ldmxcsr [{control}]", "fldcw [{control} + 4]", "fldpi",
            "movq xmm0, {word}", "punpcklqdq xmm0, xmm0",
            "movdqa xmm1, xmm0", "movdqa xmm2, xmm0", "movdqa xmm3, xmm0", "movdqa xmm4, xmm0",
            "movdqa xmm5, xmm0", "movdqa xmm6, xmm0", "movdqa xmm7, xmm0", "movdqa xmm8, xmm0",
            "movdqa xmm9, xmm0", "movdqa xmm10, xmm0", "movdqa xmm11, xmm0", "movdqa xmm12, xmm0",
            "movdqa xmm13, xmm0", "movdqa xmm14, xmm0", "movdqa xmm15, xmm0",
            "mov ecx, 500", "2: dec ecx", "jnz 2b",
            "fstp st(0)", "ldmxcsr [{usual}]", "fldcw [{usual} + 4]",
            control = in(reg) &raw const control, usual = in(reg) &raw const usual,
            word = in(reg) word, out("rcx") _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
            out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
            out("xmm15") _,
        );
    }
}

/// State that a process can leave in the processor besides general and vector registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traces {
    /// The selectors of ds, es, fs and gs, all bits of them together.
    pub selectors: u64,
    /// Low half of the address of the last x87 instruction that was not a control instruction, and
    /// of its operand.
    pub x87: [u32; 2],
}

impl Traces {
    /// Somebody who found nothing.
    pub const NONE: Traces = Traces { selectors: 0, x87: [0; 2] };

    /// Leaves some: selectors of a process's data, and an x87 instruction with an operand in
    /// memory.
    pub fn leave(operand: &u64) {
        // SAFETY: nothing uses these selectors; the x87 stack is left as found.
        unsafe {
            asm!("mov eax, 0x23", "mov ds, eax", "mov es, eax", "mov fs, eax", "mov gs, eax",
                 "fild qword ptr [{operand}]", "fstp st(0)", operand = in(reg) operand,
                 out("eax") _);
        }
    }

    /// Returns the traces that are there now.
    #[must_use]
    pub fn seen() -> Traces {
        let (mut environment, mut control) = ([0_u32; 7], 0x37f_u16);
        let (d, e, f, g): (u64, u64, u64, u64);
        // SAFETY: writes the environment; the control word, which that changes, is restored.
        unsafe {
            asm!("fnstcw [{control}]", "fnstenv [{to}]", "fldcw [{control}]",
                 to = in(reg) environment.as_mut_ptr(), control = in(reg) &raw mut control);
            asm!("mov {d:e}, ds", "mov {e:e}, es", "mov {f:e}, fs", "mov {g:e}, gs",
                 d = out(reg) d, e = out(reg) e, f = out(reg) f, g = out(reg) g);
        }
        let [_, _, _, instruction, _, operand, _] = environment;
        Traces { selectors: d | e | f | g, x87: [instruction, operand] }
    }
}

/// An image of the floating-point state, where the processor wants it.
#[repr(C, align(16))]
struct Image([u64; 64]);

/// Returns the fractions in the eight x87 registers, of those that count as empty too.
#[must_use]
pub fn x87_fractions() -> [u64; 8] {
    let mut image = Image([0; 64]);
    // SAFETY: writes the image.
    unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut image) };
    core::array::from_fn(|register| image.0[4 + 2 * register])
}

/// Divides by zero in the x87 unit, with a report of that switched on, and yields before anybody
/// looks. An exception that is pending afterwards is dropped.
pub fn divide_and_yield() {
    let (control, usual) = (0x37b_u16, 0x37f_u16);
    // SAFETY: the x87 unit is left as found; the call takes no address.
    unsafe {
        asm!("fldcw [{control}]", "fld1", "fldz", "fdivp", "syscall", "fninit", "fldcw [{usual}]",
             control = in(reg) &raw const control, usual = in(reg) &raw const usual,
             inout("rax") CallNumber::Yield as u64 => _, clobber_abi("C"));
    }
}

/// Loads the vector registers from `words`, makes a system call (`call` with one word), and returns
/// what is in them afterwards.
pub fn vectors_across_call(words: &[u64; VECTOR_WORDS], call: u64, word: u64) -> [u64; 32] {
    let mut after = [0; VECTOR_WORDS];
    // SAFETY: reads one array and writes the other; the calls made here take no address.
    unsafe {
        asm!(
            "movdqu xmm0, [r12]", "movdqu xmm1, [r12 + 16]", "movdqu xmm2, [r12 + 32]",
            "movdqu xmm3, [r12 + 48]", "movdqu xmm4, [r12 + 64]", "movdqu xmm5, [r12 + 80]",
            "movdqu xmm6, [r12 + 96]", "movdqu xmm7, [r12 + 112]", "movdqu xmm8, [r12 + 128]",
            "movdqu xmm9, [r12 + 144]", "movdqu xmm10, [r12 + 160]", "movdqu xmm11, [r12 + 176]",
            "movdqu xmm12, [r12 + 192]", "movdqu xmm13, [r12 + 208]", "movdqu xmm14, [r12 + 224]",
            "movdqu xmm15, [r12 + 240]",
            "syscall",
            "movdqu [r13], xmm0", "movdqu [r13 + 16], xmm1", "movdqu [r13 + 32], xmm2",
            "movdqu [r13 + 48], xmm3", "movdqu [r13 + 64], xmm4", "movdqu [r13 + 80], xmm5",
            "movdqu [r13 + 96], xmm6", "movdqu [r13 + 112], xmm7", "movdqu [r13 + 128], xmm8",
            "movdqu [r13 + 144], xmm9", "movdqu [r13 + 160], xmm10", "movdqu [r13 + 176], xmm11",
            "movdqu [r13 + 192], xmm12", "movdqu [r13 + 208], xmm13", "movdqu [r13 + 224], xmm14",
            "movdqu [r13 + 240], xmm15",
            in("r12") words.as_ptr(), in("r13") after.as_mut_ptr(),
            inout("rax") call => _, inout("rdi") word => _, clobber_abi("C"),
        );
    }
    after
}
