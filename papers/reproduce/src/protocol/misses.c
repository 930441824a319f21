/*
 * Counts the misses of an instruction cache between two marks: 4 KB, lines of 16 bytes, four ways, the
 * line that was used longest ago is replaced.
 *
 * Works with QEMU 7.2. A program stores to a mark where what is measured begins and to another where it
 * has ended. The plugin writes a line with the misses between them. It sees every instruction of kernel
 * and programs from the start, so the cache has what a cache would have. It changes nothing in the
 * guest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

int qemu_plugin_version = 1;

/* Windows of processes have 4 GiB each, so no two have one address. The index is within a page, so
 * virtual addresses do as well as physical ones. */
enum { WINDOW_BITS = 32, LINE_BITS = 4, WAYS = 4, SETS = 4096 / 16 / WAYS };

static uint64_t begins, ends, misses;
static FILE *out;
/* The lines of each set, the one used last first. No code is in line 0. */
static uint64_t sets[SETS][WAYS];

static void fetch(unsigned cpu, void *what)
{
    uint64_t line = (uint64_t)what, *set = sets[line % SETS];
    int way = 0;

    (void)cpu;
    while (way < WAYS - 1 && set[way] != line) {
        way++;
    }
    misses += set[way] != line;
    memmove(set + 1, set, way * sizeof *set);
    set[0] = line;
}

static void store(unsigned cpu, Access access, uint64_t address, void *unused)
{
    uint64_t offset = address & UINT32_MAX;

    (void)cpu;
    (void)unused;
    /* QEMU 7.2 tells of loads, too. */
    if (!qemu_plugin_mem_is_store(access)) {
        return;
    }
    if (offset == begins) {
        misses = 0;
    } else if (offset == ends) {
        fprintf(out, "%llu\n", (unsigned long long)misses);
    }
}

/* The lines of a block are fetched where its instructions are the first of theirs. */
static void translate(uint64_t id, Block *block)
{
    uint64_t before = 0;

    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        Instruction *one = qemu_plugin_tb_get_insn(block, i);
        uint64_t address = qemu_plugin_insn_vaddr(one);
        uint64_t last = (address + qemu_plugin_insn_size(one) - 1) >> LINE_BITS;

        for (uint64_t line = address >> LINE_BITS; line <= last; line++) {
            if (line != before) {
                void *what = (void *)line;
                qemu_plugin_register_vcpu_insn_exec_cb(one, fetch, NO_REGISTERS, what);
            }
            before = line;
        }
        if (address >> WINDOW_BITS) {
            qemu_plugin_register_vcpu_mem_cb(one, store, NO_REGISTERS, STORES, NULL);
        }
    }
}

int qemu_plugin_install(uint64_t id, const Machine *machine, int argc, char **argv)
{
    (void)machine;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4)) {
            out = fopen(argv[i] + 4, "w");
        } else if (!strncmp(argv[i], "begins=", 7)) {
            begins = strtoull(argv[i] + 7, NULL, 10);
        } else if (!strncmp(argv[i], "ends=", 5)) {
            ends = strtoull(argv[i] + 5, NULL, 10);
        }
    }
    if (!out || !begins || !ends) {
        fprintf(stderr, "diapason misses: needs out=PATH, begins and ends\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    return 0;
}
