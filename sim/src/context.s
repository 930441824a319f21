# Between the simulator and a program's thread.
#
# A thread runs natively on its own stack until it jumps into one of the entries below, which the
# loader has written over its stubs. The thread's context keeps the registers that a function must
# preserve, as the kernel's own entry does on the metal; no host code runs on a program's stack.

    .bss
    .balign 8
dia_sim_host_stack:
    .skip 8
dia_sim_host_fs:
    .skip 8
dia_sim_entry:
    .skip 8
    .globl dia_sim_running
dia_sim_running:
    .skip 8
# Time that a thread may still consume before anything else can happen.
    .globl dia_sim_spare
dia_sim_spare:
    .skip 8

    .text
# Run the thread whose context is in rdi until it traps.
    .globl dia_sim_resume
dia_sim_resume:
    push rbp
    push rbx
    push r12
    push r13
    push r14
    push r15
    sub rsp, 8
    stmxcsr [rsp]
    fnstcw [rsp + 4]
    mov [rip + dia_sim_host_stack], rsp
    rdfsbase rax
    mov [rip + dia_sim_host_fs], rax
    mov [rip + dia_sim_running], rdi
    # Nothing that somebody left in registers reaches it, and no register leads to the host: what a
    # base register points at is the host's thread block, with its stack canary.
    xor eax, eax
    wrfsbase rax
    xor r9d, r9d
    xor r10d, r10d
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    xorps xmm\n, xmm\n
    .endr
    mov r11, rdi
    ldmxcsr [r11 + {MXCSR}]
    fldcw [r11 + {FCW}]
    mov rsp, [r11 + {RSP}]
    mov rbx, [r11 + {RBX}]
    mov rbp, [r11 + {RBX} + 8]
    mov r12, [r11 + {RBX} + 16]
    mov r13, [r11 + {RBX} + 24]
    mov r14, [r11 + {RBX} + 32]
    mov r15, [r11 + {RBX} + 40]
    mov rax, [r11 + {WORDS}]
    mov rdi, [r11 + {WORDS} + 8]
    mov rsi, [r11 + {WORDS} + 16]
    mov rdx, [r11 + {WORDS} + 24]
    mov rcx, [r11 + {WORDS} + 32]
    mov r8, [r11 + {WORDS} + 40]
    mov r11, [r11 + {RIP}]
    mov [rip + dia_sim_entry], r11
    xor r11d, r11d
    jmp [rip + dia_sim_entry]

    .macro trap name, number
    .globl dia_sim_\name
dia_sim_\name:
    mov r11, [rip + dia_sim_running]
    mov qword ptr [r11 + {TRAP}], \number
    jmp dia_sim_keep
    .endm

    trap call, 0
    trap now, 1
    trap work, 2
    trap step, 4
    trap give_up, 5
    trap read32, 6
    trap write32, 7
    trap read64, 8
    trap write64, 9

# Most of what a thread consumes ends before anything else happens: then it just goes on.
    .globl dia_sim_consume
dia_sim_consume:
    cmp rdi, 1
    adc rdi, 0
    mov r11, [rip + dia_sim_spare]
    sub r11, rdi
    jbe 1f
    mov [rip + dia_sim_spare], r11
    ret
1:
    mov r11, [rip + dia_sim_running]
    mov qword ptr [r11 + {TRAP}], 3

dia_sim_keep:
    mov [r11 + {WORDS}], rax
    mov [r11 + {WORDS} + 8], rdi
    mov [r11 + {WORDS} + 16], rsi
    mov [r11 + {WORDS} + 24], rdx
    mov [r11 + {WORDS} + 32], r10
    mov [r11 + {WORDS} + 40], r8
    pop rax
    mov [r11 + {RIP}], rax
    mov [r11 + {RSP}], rsp
    mov [r11 + {RBX}], rbx
    mov [r11 + {RBX} + 8], rbp
    mov [r11 + {RBX} + 16], r12
    mov [r11 + {RBX} + 24], r13
    mov [r11 + {RBX} + 32], r14
    mov [r11 + {RBX} + 40], r15
    stmxcsr [r11 + {MXCSR}]
    fnstcw [r11 + {FCW}]

# Back to the simulator, whatever the thread was doing. The signal handler comes here, too.
    .globl dia_sim_leave
dia_sim_leave:
    mov qword ptr [rip + dia_sim_running], 0
    mov rsp, [rip + dia_sim_host_stack]
    mov rax, [rip + dia_sim_host_fs]
    wrfsbase rax
    # Reading is faster than writing, and hardly any program changes these.
    pushfq
    test dword ptr [rsp], {ODD}
    lea rsp, [rsp + 8]
    jz 2f
    push {FLAGS}
    popfq
2:
    fnclex
    ldmxcsr [rsp]
    fldcw [rsp + 4]
    add rsp, 8
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret
