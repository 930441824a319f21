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

    # Continue the thread whose context is in rdx.
continue_thread:
    mov gs:[{TSS_RSP0}], rdx
    cmp dword ptr [rdx + {ENTRY}], {BY_CALL}
    jne 2f
    # It left by a call. The floating-point state starts clean, but for the control words, which a
    # function preserves. Some processors do not load from memory where the last x87 instruction and
    # its operand were, so that is cleared by the one instruction that does it everywhere.
    fninit
    fxrstor64 [CLEAN_FX]
    ldmxcsr [rdx + {MXCSR}]
    fldcw [rdx + {FCW}]
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
    # A selector is state, too, and no thread's to keep. The base of gs, which a selector may
    # change, is the caller's by then.
    mov ds, edx
    mov es, edx
    mov fs, edx
    swapgs
    mov gs, edx
    sysretq
2:  # It was interrupted, or starts. Unless it is interrupted again, it leaves by a call.
    fninit
    cmp dword ptr [rdx + {ENTRY}], {STARTING}
    mov dword ptr [rdx + {ENTRY}], {BY_CALL}
    je 7f
    fxrstor64 [rdx + {FX}]
    jmp 8f
7:  fxrstor64 [CLEAN_FX]
8:  lea rsp, [rdx + {REGISTERS}]
    xor eax, eax
    mov ds, eax
    mov es, eax
    mov fs, eax
    swapgs
    mov gs, eax
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

    # A number that no call has, and calls without a handler of their own: all goes the long way.
3:  push offset after_call
    .globl long_call
long_call:
    mov r9, rax
    jmp any_call

    # The same for a run that is observed.
    .globl observed_syscall_entry
    .align 16
observed_syscall_entry:
    enter_call
    mov r9, rax
    call on_observed_syscall
    jmp after_call

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

    # Vectors 0..47: exceptions, timer, spurious, devices, eight bytes each. Each pushes an error
    # code if the processor did not, and its number. The jump of an interrupt reaches `trap` in two
    # bytes. Exceptions go by the places of two that have stacks of their own, and no stub.
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
    fxsave64 [rsp]
    mov rdi, rsp
    mov rsp, gs:[{KERNEL_RSP}]
    mov dword ptr [rdi + {FRAME_END}], 0
    clac_if_smap
    cld
    call on_trap
    jmp resume

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
    # Clobbers rcx, rdx, rsi and rdi, nothing else. Words first: the length of a short message is
    # what matters.
    .globl copy_user
    .align 16
copy_user:
    mov ecx, edx
    and edx, 7
    shr ecx, 3
    xor eax, eax
    stac_if_smap
copy_start:
    rep movsq
    mov ecx, edx
    rep movsb
copy_end:
    clac_if_smap
    ret
copy_failed:
    mov eax, 1
    clac_if_smap
    ret

    # An `fxsave` image with nothing in it. Boot writes its two control words.
    .section .bss
    .globl CLEAN_FX
    .balign 16
CLEAN_FX:
    .skip {FX_BYTES}
