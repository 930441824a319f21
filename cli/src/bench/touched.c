/*
 * Counts what the kernel touches between the beginning and the end of a measured operation: lines
 * of code, lines of data, and dear instructions.
 *
 * Works with QEMU 7.2. A program of the benchmark stores to a probe where an operation begins and
 * where it has ended. The plugin sees these stores, and every instruction and access of the kernel
 * between them. It writes one line of numbers for each operation that ended. It changes nothing in
 * the guest, so the guest counts the same instructions with and without it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

int qemu_plugin_version = 1;

/* The kernel runs below the windows of processes, which have 4 GiB each. */
enum { WINDOW_BITS = 32, LINE_BITS = 6 };

/* The numbers of an operation, in the order in which they are written. */
enum Number {
    CODE_LINES, CODE_BYTES, DATA_LINES, FXSAVE, FXRSTOR, FNINIT, REP, RDTSC, CR3, MSR, DEVICE,
    NUMBERS
};

/* Where the segment of probes is in a window, and how a probe is laid out. */
static uint64_t probes, probes_bytes, probe_bytes, begins, ends;
static FILE *out;
static uint32_t numbers[NUMBERS];
/* The instruction that the kernel executed last: a repeated one is seen once for each round. */
static uint64_t last;

/* The lines and instructions that were touched since the last beginning: a hash table, where an
 * entry of an earlier round is free. */
enum { ENTRY_BITS = 15, ENTRIES = 1 << ENTRY_BITS };
static struct {
    uint64_t place;
    uint32_t round;
    uint32_t kind;
} touched[ENTRIES];
static uint32_t round_now = 1, taken;

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "diapason touched: %s\n", why);
    fflush(NULL);
    _Exit(1);
}

static void begin(void)
{
    round_now++;
    taken = 0;
    memset(numbers, 0, sizeof numbers);
}

/* Adds `count` to a number, the first time that this place is touched. */
static void touch(enum Number kind, uint64_t place, unsigned count)
{
    uint64_t at = ((place << 4 | kind) * 0x9e3779b97f4a7c15u) >> (64 - ENTRY_BITS);

    /* A beginning comes sooner, except while the system starts. */
    if (taken == ENTRIES / 2) {
        return;
    }
    while (touched[at].round == round_now) {
        if (touched[at].place == place && touched[at].kind == (uint32_t)kind) {
            return;
        }
        at = (at + 1) % ENTRIES;
    }
    touched[at].place = place;
    touched[at].round = round_now;
    touched[at].kind = kind;
    taken++;
    numbers[kind] += count;
}

/* Touches the lines of `size` bytes, which are at most two. */
static void touch_lines(enum Number kind, uint64_t address, unsigned size)
{
    touch(kind, address >> LINE_BITS, 1);
    touch(kind, (address + size - 1) >> LINE_BITS, 1);
}

static void end(uint64_t probe)
{
    if (taken == ENTRIES / 2) {
        give_up("an operation touches more lines than the table has room for");
    }
    fprintf(out, "%llu", (unsigned long long)probe);
    for (int i = 0; i < NUMBERS; i++) {
        fprintf(out, " %u", numbers[i]);
    }
    fputc('\n', out);
}

/* The dear instruction that these bytes are, or NUMBERS. */
static enum Number dear(const uint8_t *code, size_t size)
{
    static const uint8_t prefixes[] = {
        0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3,
    };
    bool repeats = false;
    size_t at = 0;

    for (; at < size && memchr(prefixes, code[at], sizeof prefixes); at++) {
        repeats |= code[at] == 0xf2 || code[at] == 0xf3;
    }
    at += at < size && code[at] >> 4 == 4;
    uint8_t opcode = at < size ? code[at] : 0;
    uint8_t second = at + 1 < size ? code[at + 1] : 0;
    uint8_t third = at + 2 < size ? code[at + 2] : 0;
    unsigned extension = third >> 3 & 7;
    bool in_memory = third >> 6 != 3;
    switch (opcode) {
    case 0xa4: case 0xa5: case 0xa6: case 0xa7: case 0xaa: case 0xab: case 0xae: case 0xaf:
        return repeats ? REP : NUMBERS;
    case 0x6c: case 0x6d: case 0x6e: case 0x6f: /* ins, outs */
    case 0xe4: case 0xe5: case 0xe6: case 0xe7: case 0xec: case 0xed: case 0xee: case 0xef:
        return DEVICE;
    case 0xdb:
        return second == 0xe3 ? FNINIT : NUMBERS;
    case 0x0f:
        break;
    default:
        return NUMBERS;
    }
    switch (second) {
    case 0x01:
        return third == 0xf9 ? RDTSC : NUMBERS; /* rdtscp */
    case 0x22:
        return extension == 3 ? CR3 : NUMBERS;
    case 0x30: case 0x32:
        return MSR;
    case 0x31:
        return RDTSC;
    case 0xae: /* and xsave, xrstor */
        return !in_memory ? NUMBERS : extension == 0 || extension == 4 ? FXSAVE :
               extension == 1 || extension == 5 ? FXRSTOR : NUMBERS;
    default:
        return NUMBERS;
    }
}

/* An instruction of the kernel is executed. Its address and size, and the dear instruction that it
 * is, are in `what`. */
static void execute(unsigned cpu, void *what)
{
    uint64_t packed = (uint64_t)what, address = packed & UINT32_MAX;
    unsigned size = packed >> 32 & 0xff;
    enum Number kind = packed >> 40;

    (void)cpu;
    touch_lines(CODE_LINES, address, size);
    touch(CODE_BYTES, address, size);
    if (kind != NUMBERS && !(kind == REP && last == address)) {
        numbers[kind]++;
    }
    last = address;
}

static void access_memory(unsigned cpu, Access access, uint64_t address, void *unused)
{
    Physical *physical = qemu_plugin_get_hwaddr(access, address);

    (void)cpu;
    (void)unused;
    if (physical && qemu_plugin_hwaddr_is_io(physical)) {
        numbers[DEVICE]++;
        return;
    }
    touch_lines(DATA_LINES, address, 1u << qemu_plugin_mem_size_shift(access));
}

/* A program stores something. */
static void store(unsigned cpu, Access access, uint64_t address, void *unused)
{
    uint64_t offset = (address & UINT32_MAX) - probes;

    (void)cpu;
    (void)unused;
    /* QEMU 7.2 tells of loads, too. */
    if (offset >= probes_bytes || !qemu_plugin_mem_is_store(access)) {
        return;
    }
    if (offset % probe_bytes == begins) {
        begin();
    } else if (offset % probe_bytes == ends) {
        end(offset / probe_bytes);
    }
}

static void translate(uint64_t id, Block *block)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        Instruction *insn = qemu_plugin_tb_get_insn(block, i);
        uint64_t address = qemu_plugin_insn_vaddr(insn), size = qemu_plugin_insn_size(insn);
        if (address >> WINDOW_BITS) {
            qemu_plugin_register_vcpu_mem_cb(insn, store, NO_REGISTERS, STORES, NULL);
            continue;
        }
        uint64_t kind = dear(qemu_plugin_insn_data(insn), size);
        void *what = (void *)(address | size << 32 | kind << 40);
        qemu_plugin_register_vcpu_insn_exec_cb(insn, execute, NO_REGISTERS, what);
        qemu_plugin_register_vcpu_mem_cb(insn, access_memory, NO_REGISTERS, ANY, NULL);
    }
}

int qemu_plugin_install(uint64_t id, const Machine *machine, int argc, char **argv)
{
    static const struct {
        const char *name;
        uint64_t *value;
    } wanted[] = {
        {"probes=", &probes}, {"bytes=", &probes_bytes}, {"probe=", &probe_bytes},
        {"begins=", &begins}, {"ends=", &ends},
    };

    (void)machine;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4)) {
            out = fopen(argv[i] + 4, "w");
        }
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            size_t length = strlen(wanted[k].name);
            if (!strncmp(argv[i], wanted[k].name, length)) {
                *wanted[k].value = strtoull(argv[i] + length, NULL, 10);
            }
        }
    }
    if (!out || !probes || !probes_bytes || !probe_bytes || begins == ends) {
        give_up("needs out=PATH, probes, bytes, probe, begins and ends");
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    return 0;
}
