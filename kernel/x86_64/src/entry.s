# Into and out of the kernel.
#
# One kernel stack per core, emptied at every exit: the kernel never blocks and is never
# interrupted, so nothing on it outlives an entry. gs names the core's `PerCpu`.
#
# A system call is a function call that the user made: only the registers a function preserves are
# kept. An interrupt may come anywhere: everything is saved, straight into the thread's context,
# because the task-state segment's stack pointer is the end of that context's frame.

    .section .text
    .macro clac_if_smap
8888:
    .byte 0x0f, 0x01, 0xca
    .pushsection .patches, "a"
    .quad 8888b
    .popsection
    .endm
    .macro stac_if_smap
8889:
    .byte 0x0f, 0x01, 0xcb
    .pushsection .patches, "a"
    .quad 8889b
    .popsection
    .endm

    # Vector registers by number. This changes no flags.
    .macro clear_vectors numbers:vararg
    .irp number, \numbers
    xorps xmm\number, xmm\number
    .endr
    .endm

    # From the caller's stack to the kernel's, and its words to where a function expects them. The
    # word pushed last is the caller's instruction pointer, which the kernel may ask for.
    .macro enter_call
    swapgs
    mov gs:[{USER_RSP}], rsp
    mov rsp, gs:[{KERNEL_RSP}]
    push r11
    push rcx
    mov rcx, r10
    .endm

    .globl syscall_entry
    .align 16
syscall_entry:
    enter_call
    cmp rax, {CALLS}
    jae 3f
    call [CALL_HANDLERS + rax * 8]
after_call:
    cmp rdx, 1
    jae 1f
    # The caller goes on. Nothing that the kernel left in registers reaches it: rdx is 0, and the
    # handlers clear r9, r10 and the vector registers if they used them.
    pop rcx
    pop r11
    xor esi, esi
    xor edi, edi
    xor r8d, r8d
    mov rsp, gs:[{USER_RSP}]
    swapgs
    sysretq
1:  # Another thread goes on, or none. Keep what the caller's function call preserves; nothing here
    # changes the flags.
    mov rax, gs:[{TSS_RSP0}]
    pop qword ptr [rax + {RIP}]
    pop qword ptr [rax + {RFLAGS}]
    mov rcx, gs:[{USER_RSP}]
    mov [rax + {RSP}], rcx
    mov [rax + {RBX}], rbx
    mov [rax + {RBP}], rbp
    mov [rax + {R12}], r12
    mov [rax + {R13}], r13
    mov [rax + {R14}], r14
    mov [rax + {R15}], r15
    stmxcsr [rax + {MXCSR}]
    fnstcw [rax + {FCW}]
    je idle
    # Within a process nothing has to be hidden but what the kernel left, if the x87 unit reports
    # no exception to either thread: then none is pending, and none becomes so.
    mov cx, [rax + {PROCESS}]
    cmp cx, [rdx + {PROCESS}]
    jne continue_thread
    cmp word ptr [rax + {FCW}], {USUAL_FCW}
    jne continue_thread
    cmp word ptr [rdx + {FCW}], {USUAL_FCW}
    jne continue_thread
    cmp dword ptr [rdx + {ENTRY}], {BY_CALL}
    jne continue_thread
    mov gs:[{TSS_RSP0}], rdx
    clear_vectors 0, 1, 2, 3
    jmp 5f

    # Continue the thread whose context is in rdx, whoever had the processor before.
continue_thread:
    mov gs:[{TSS_RSP0}], rdx
    # A selector is state, too, and no thread's to keep. Looking costs little, and loading much.
    mov ecx, ds
    mov eax, es
    or ecx, eax
    mov eax, fs
    or ecx, eax
    mov eax, gs
    or ecx, eax
    jnz 9f
    # The words that point at the last x87 instruction and its operand are cleared by this
    # instruction on every processor. Loading an image from memory leaves them on some.
4:  fninit
    cmp dword ptr [rdx + {ENTRY}], {BY_CALL}
    jb 2f
    # It left by a call, or starts. The vector and x87 registers start clean.
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7
    pxor mm\number, mm\number
    .endr
    emms
    clear_vectors 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    jne 7f
    # A function preserves the control words.
    fldcw [rdx + {FCW}]
5:  ldmxcsr [rdx + {MXCSR}]
    mov rbx, [rdx + {RBX}]
    mov rbp, [rdx + {RBP}]
    mov r12, [rdx + {R12}]
    mov r13, [rdx + {R13}]
    mov r14, [rdx + {R14}]
    mov r15, [rdx + {R15}]
    mov rcx, [rdx + {RIP}]
    mov r11, [rdx + {RFLAGS}]
    mov rsp, [rdx + {RSP}]
    mov rax, [rdx + {RAX}]
    xor edx, edx
    xor esi, esi
    xor edi, edi
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    swapgs
    sysretq
    # It was interrupted, and somebody else had the processor since then.
2:  fxrstor64 [rdx + {FX}]
    jmp 8f
    # It starts.
7:  ldmxcsr [rdx + {MXCSR}]
    # Unless it is interrupted again, it leaves by a call.
8:  mov dword ptr [rdx + {ENTRY}], {BY_CALL}
    lea rsp, [rdx + {REGISTERS}]
    swapgs
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    pop r11
    pop r10
    pop r9
    pop r8
    pop rax
    pop rcx
    pop rdx
    pop rsi
    pop rdi
    add rsp, 16
    iretq
    # The base of gs, which a selector may change, is the caller's meanwhile.
9:  xor ecx, ecx
    mov ds, ecx
    mov es, ecx
    mov fs, ecx
    swapgs
    mov gs, ecx
    swapgs
    jmp 4b

    # A number that no call has, and calls without a handler of their own: all goes the long way.
3:  push offset after_call
    .globl long_call
long_call:
    mov r9, rax
    jmp any_call

    # The same for a run that is observed.
    .if {OBSERVING}
    .globl observed_syscall_entry
    .align 16
observed_syscall_entry:
    enter_call
    mov r9, rax
    call on_observed_syscall
    jmp after_call
    .endif

    # Rust starts the first thread here.
    .globl resume_from_boot
resume_from_boot:
    mov rax, rdi
    # The same with the context in rax, or 1 for nobody.
resume:
    mov rdx, rax
    cmp rax, 1
    jne continue_thread
idle:
    mov rsp, gs:[{KERNEL_RSP}]
    call on_idle
    sti
    hlt
    cli
    jmp idle

    # An IOMMU stopped something. No room is left for this within reach of `trap`.
    .globl trap_stray
trap_stray:
    push 0
    push {STRAY}
    jmp trap

    # Vectors 0..48: exceptions, timer, spurious, devices, doorbells; eight bytes each. Each pushes
    # an error code if the processor did not, and its number. The jump of an interrupt reaches
    # `trap` in two bytes. Exceptions go by the places of two that have stacks of their own, and no
    # stub.
    .macro stub number
    .align 8
    .if \number == 8
hop_8:
    jmp trap
    .elseif \number == 18
hop_18:
    jmp trap
    .else
    .if ((\number < 10) || (\number > 14)) && (\number != 17) && (\number != 21)
    push 0
    .endif
    push \number
    .if \number < 16
    jmp hop_8
    .elseif \number < 32
    jmp hop_18
    .else
    jmp trap
    .endif
    .endif
    .endm
    .globl trap_stubs
    .align 8
trap_stubs:
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    stub \number
    .endr
    .irp number, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    stub \number
    .endr
    .irp number, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47
    stub \number
    .endr
    # The vector behind those of devices goes on right into `trap`: with a jump, that would lie too
    # far behind for the first interrupt. The assembler refuses stubs that are longer than theirs.
    .org trap_stubs + 8 * {BELLS}
    push 0
    push {BELLS}
trap:
    test byte ptr [rsp + 24], 3
    jz 3f
    swapgs
    push rdi
    push rsi
    push rdx
    push rcx
    push rax
    push r8
    push r9
    push r10
    push r11
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    sub rsp, {FX_BYTES}
    mov rdi, rsp
    # The kernel uses no other vector registers: `cargo xtask tidy` looks.
    movaps [rdi + {FRAME_END} + {VECTORS} + 0], xmm0
    movaps [rdi + {FRAME_END} + {VECTORS} + 16], xmm1
    movaps [rdi + {FRAME_END} + {VECTORS} + 32], xmm2
    movaps [rdi + {FRAME_END} + {VECTORS} + 48], xmm3
    mov rsp, gs:[{KERNEL_RSP}]
    mov dword ptr [rdi + {FRAME_END}], 0
    clac_if_smap
    cld
    call on_trap
    mov rdx, rax
    mov rax, gs:[{TSS_RSP0}]
    movaps xmm0, [rax + {VECTORS} + 0]
    movaps xmm1, [rax + {VECTORS} + 16]
    movaps xmm2, [rax + {VECTORS} + 32]
    movaps xmm3, [rax + {VECTORS} + 48]
    cmp rdx, rax
    jne 1f
    # The interrupted thread goes on: everything else is as it was. If its process started anew,
    # it is another thread.
    cmp dword ptr [rdx + {ENTRY}], 0
    je 8b
    jmp continue_thread
    # Another goes on, or none: all of its floating-point state is kept.
1:  fxsave64 [rax + {FX}]
    cmp rdx, 1
    jne continue_thread
    jmp idle

3:  # From the kernel itself: an interrupt of the idle loop, a fault while copying user memory, or
    # a bug.
    cmp qword ptr [rsp], {FIRST_INTERRUPT}
    jae 4f
    cmp qword ptr [rsp], 14
    jne 5f
    push rax
    mov rax, offset copy_start
    cmp [rsp + 24], rax
    jb 6f
    mov rax, offset copy_end
    cmp [rsp + 24], rax
    jae 6f
    mov rax, offset copy_failed
    mov [rsp + 24], rax
    pop rax
    add rsp, 16
    iretq
4:  mov rdi, [rsp]
    mov rsp, gs:[{KERNEL_RSP}]
    call on_idle_trap
    jmp resume
6:  pop rax
5:  cld
    mov rdi, [rsp]
    mov rsi, [rsp + 8]
    mov rdx, [rsp + 16]
    mov rsp, gs:[{KERNEL_RSP}]
    call on_kernel_fault
    ud2

    # Vectors that may come anywhere, on stacks of their own: nothing to do but say so.
    .globl fatal_nmi, fatal_double_fault, fatal_machine_check
fatal_nmi:
    push 0
    push 2
    jmp fatal
fatal_double_fault:
    push 8
    jmp fatal
fatal_machine_check:
    push 0
    push 18
fatal:
    # The interrupted code may have turned the direction.
    cld
    mov rdi, [rsp]
    mov rsi, [rsp + 8]
    mov rdx, [rsp + 16]
    and rsp, -16
    call on_kernel_fault
    ud2

    # copy_user(rdi: to, rsi: from, rdx: length) -> eax: 0, or 1 if a page fault stopped it.
    # Clobbers rcx, rdx, rsi and rdi, nothing else. Short lengths go by words, the last of which may
    # overlap the one before: an instruction that repeats costs more than all of these.
    .globl copy_user
    .align 16
copy_user:
    stac_if_smap
    lea ecx, [rdx - 8]
    cmp ecx, 8
    ja 2f
copy_start:
    # 8 to 16 bytes.
    mov rax, [rsi]
    mov [rdi], rax
    mov rax, [rsi + rcx]
    mov [rdi + rcx], rax
1:  xor eax, eax
    clac_if_smap
    ret
2:  jl 5f
    cmp edx, 64
    ja 6f
    # 17 to 64 bytes: from the end, and what is left at the front.
3:  mov rax, [rsi + rdx - 8]
    mov [rdi + rdx - 8], rax
    mov rax, [rsi + rdx - 16]
    mov [rdi + rdx - 16], rax
    sub edx, 16
    cmp edx, 16
    ja 3b
    mov rax, [rsi]
    mov rcx, [rsi + 8]
    mov [rdi], rax
    mov [rdi + 8], rcx
    jmp 1b
4:  mov cl, [rsi + rdx]
    mov [rdi + rdx], cl
5:  sub edx, 1
    jnc 4b
    jmp 1b
6:  mov ecx, edx
    and edx, 7
    shr ecx, 3
    rep movsq
    mov ecx, edx
    rep movsb
    jmp 1b
copy_end:
copy_failed:
    mov eax, 1
    clac_if_smap
    ret
