# Where a program begins, and the few places where it meets the machine.
#
# The header names the stubs. On the metal they are what they look like; the simulator writes a
# jump to itself over each, so it runs the very images that boot. Behind the stubs it names the end
# of the image, and where the room for settings is if the program has one (src/settings.rs).

    .section .header, "ax"
    .globl __dia_header
__dia_header:
    .ascii "DIAPROG1"
    .long _start - __dia_header
    .long __dia_trap - __dia_header
    .long __dia_now - __dia_header
    .long __dia_work - __dia_header
    .long __dia_consume - __dia_header
    .long __dia_step - __dia_header
    .long __dia_fault - __dia_header
    .long __dia_read32 - __dia_header
    .long __dia_write32 - __dia_header
    .long __dia_read64 - __dia_header
    .long __dia_write64 - __dia_header
    .long __image_end - __dia_header
    .long __dia_settings - __dia_header

    # System call: number in rax, words in rdi, rsi, rdx, r10, r8; result in rax.
    .balign 16
    .globl __dia_trap
__dia_trap:
    syscall
    ret

    # Nanoseconds since boot, from the counter and the information page.
    .balign 16
    .globl __dia_now
__dia_now:
    lea rcx, [rip + __image_start + {INFO}]
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub rax, [rcx + {BASE}]
    mul qword ptr [rcx + {MULTIPLIER}]
    shrd rax, rdx, 32
    ret

    # Declared work (rdi: which): the instructions themselves are the work here.
    .balign 16
    .globl __dia_work
__dia_work:
    ret
    .skip 15, 0xcc

    # Use rdi nanoseconds of processor time, at one instruction per nanosecond.
    .balign 16
    .globl __dia_consume
__dia_consume:
    shr rdi
    jz 2f
1:  dec rdi
    jnz 1b
2:  ret
    .skip 8, 0xcc

    # A point inside lock-free code where the simulator may let somebody else run.
    .balign 16
    .globl __dia_step
__dia_step:
    ret
    .skip 15, 0xcc

    # The program gives up (rdi: where).
    .balign 16
    .globl __dia_fault
__dia_fault:
    mov eax, {FAIL}
    syscall
    ud2
    .skip 7, 0xcc

    # A register of a device (rdi: its address; esi or rsi: the value): nothing else touches one.
    .balign 16
    .globl __dia_read32
__dia_read32:
    mov eax, [rdi]
    ret
    .skip 13, 0xcc

    .balign 16
    .globl __dia_write32
__dia_write32:
    mov [rdi], esi
    ret
    .skip 13, 0xcc

    .balign 16
    .globl __dia_read64
__dia_read64:
    mov rax, [rdi]
    ret
    .skip 12, 0xcc

    .balign 16
    .globl __dia_write64
__dia_write64:
    mov [rdi], rsi
    ret
    .skip 12, 0xcc

    # A record of one byte for each call. The code of a call refers to its record (src/sys.rs), and
    # the linker drops the records that nothing refers to.
    .macro calls numbers:vararg
    .irp number, \numbers
    .section .calls.\number, "a"
    .globl __dia_call_\number
    .hidden __dia_call_\number
__dia_call_\number:
    .byte \number
    .endr
    .endm
    calls 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22
    calls 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44
    .section .calls.any, "a"
    .globl __dia_call_any
    .hidden __dia_call_any
__dia_call_any:
    .byte {ANY_CALL}
    .section .calls.hints, "a"
    .globl __dia_call_hints
    .hidden __dia_call_hints
__dia_call_hints:
    .byte {HINTS}
    # The stub above makes one, whatever else is linked.
    .section .header, "ax"
    .reloc __dia_fault, R_X86_64_NONE, __dia_call_{FAIL}

    .section .text.start, "ax"
    .globl _start
_start:
    # rdi: information page; rsi, rdx, rcx, r8: the description's arguments. Nothing here needs the
    # stack or the others.
    mov r9, rdi
    mov r10, rsi
    mov r11, rcx
    lea rdi, [rip + __data_start]
    lea rsi, [rip + __data_start + {DATA_IMAGE}]
    lea rcx, [rip + __data_end]
    sub rcx, rdi
    shr rcx, 3
    rep movsq
    # rdi is the end of the data, where the rest begins.
    lea rcx, [rip + __bss_end]
    sub rcx, rdi
    shr rcx, 3
    xor eax, eax
    rep stosq
    mov rdi, r9
    mov rsi, r10
    mov rcx, r11
    xor ebp, ebp
    jmp __dia_start
