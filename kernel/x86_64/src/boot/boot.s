# From the boot loader to Rust: 32-bit protected mode in, long mode out.
#
# The loader enters with paging off and the address of its information in ebx. A multiboot2 loader
# (GRUB) has a magic number in eax; otherwise it is a PVH loader (QEMU). The first page tables map
# the low 4 GiB one to one in 2 MiB pages; Rust then narrows what may be done with each page, and
# every process shares these tables from then on.

    .section .note.pvh, "a", @note
    .align 4
    .long 4, 4, 18
    .asciz "Xen"
    .long pvh_entry

    # Multiboot2 finds this in the first 32 KiB of the file. The modules are to begin on pages. A
    # framebuffer of any size is welcome, and not needed.
    .section .multiboot, "a"
    .align 8
multiboot:
    .long 0xe85250d6, 0, multiboot_end - multiboot, -(0xe85250d6 + multiboot_end - multiboot)
    .short 6, 0
    .long 8
    .short 5, 1
    .long 20, 0, 0, 32, 0
    .short 0, 0
    .long 8
multiboot_end:

    .section .boot.text, "ax"
    .code32
    .globl pvh_entry
pvh_entry:
    cli
    cld
    lea esp, [boot_stack_top]
    mov edi, ebx
    mov esi, eax
    mov ebx, offset kernel_main

    # Level 4 and 3. User bits here; the kernel's own level-2 tables withhold them.
    mov eax, offset KERNEL_PDPT
    or eax, 7
    mov dword ptr [KERNEL_PML4], eax
    mov eax, offset KERNEL_PDS
    or eax, 3
    mov ecx, 0
1:  mov dword ptr [KERNEL_PDPT + ecx * 8], eax
    add eax, 4096
    inc ecx
    cmp ecx, 4
    jne 1b

    # Level 2: 2048 large, global, writable pages; uncached from 3 GiB on, where devices are.
    mov eax, 0x183
    xor ecx, ecx
2:  mov dword ptr [KERNEL_PDS + ecx * 8], eax
    add eax, 0x200000
    inc ecx
    cmp ecx, 1536
    jne 3f
    or eax, 0x18
3:  cmp ecx, 2048
    jne 2b

    # ebp gets the bit that switches no-execute on, if the processor has no-execute. A processor
    # without it would fault at that bit, before the kernel could say so.
    mov ebp, ebx
    mov eax, 0x80000001
    cpuid
    mov ebx, ebp
    shr edx, 9
    and edx, 0x800
    mov ebp, edx

    # PAE and global pages, and nothing that the loader may have left on: whatever else a program
    # could use would be state that nobody saves. Then long mode with no-execute and system calls,
    # then paging.
    mov eax, 0xa0
    mov cr4, eax
    mov eax, offset KERNEL_PML4
    mov cr3, eax
    mov ecx, 0xc0000080
    rdmsr
    or eax, 0x101
    or eax, ebp
    wrmsr
    mov eax, cr0
    # Paging; honour read-only pages; report x87 errors and (where asked) misalignment by trap.
    or eax, 0x80050022
    and eax, 0xfffffffb
    mov cr0, eax
    lgdt [boot_gdt_pointer]
    .byte 0xea
    .long long_mode
    .word 8

    .code64
long_mode:
    mov eax, 0x10
    mov ds, eax
    mov es, eax
    mov ss, eax
    xor eax, eax
    mov fs, eax
    mov gs, eax
    # SSE on: the compiler moves data with it. OSFXSR | OSXMMEXCPT, with PAE | PGE.
    mov eax, 0x6a0
    mov cr4, rax
    lea rsp, [KERNEL_STACK_TOP]
    xor ebp, ebp
    mov edi, edi
    mov ebx, ebx
    call rbx
    ud2

    # Another core, in long mode: the rest is as above, but for the function.
core_long:
    mov ebx, offset core_main
    jmp long_mode

    # Another core begins here in real mode, in a copy of this code at the beginning of a page: from
    # there to long mode at once. Its tables are ready, and the address of their root is at 4.
    .code16
    .globl core_entry, core_entry_end, core_root
core_entry:
    jmp core_code
    .org core_entry + 4
core_root:
    .long 0
    # At 8: the descriptor table, with a base of 32 bits.
    .word 23
    .long boot_gdt
core_code:
    cli
    cld
    mov ax, cs
    mov ds, ax
    mov eax, 0xa0
    mov cr4, eax
    mov eax, dword ptr ds:[4]
    mov cr3, eax
    mov ecx, 0xc0000080
    rdmsr
    or eax, 0x901
    wrmsr
    .byte 0x66
    lgdt ds:[8]
    # Protection and paging together, caches on, and the rest as on the first core.
    mov eax, 0x80050023
    mov cr0, eax
    .byte 0x66, 0xea
    .long core_long
    .word 8
core_entry_end:
    .code64

    .section .boot.rodata, "a"
    .align 8
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff
    .quad 0x00cf93000000ffff
boot_gdt_pointer:
    .word 23
    .long boot_gdt

    .section .bss
    .align 4096
    .globl KERNEL_PML4, KERNEL_PDPT, KERNEL_PDS, KERNEL_PT, KERNEL_STACK_GUARD, KERNEL_STACK_TOP
KERNEL_PML4: .skip 4096
KERNEL_PDPT: .skip 4096
KERNEL_PDS:  .skip 4 * 4096
KERNEL_PT:   .skip 4096
KERNEL_STACK_GUARD: .skip 4096
    .skip 16384
KERNEL_STACK_TOP:
    .globl IST_STACKS
IST_STACKS: .skip 3 * 4096
    .skip 64
boot_stack_top:
