/*
 * The part of QEMU's plugin interface, version 1, that the plugins of this project use.
 */
#ifndef PLUGIN_H
#define PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    int smp_vcpus, max_vcpus;
} Machine;

typedef struct qemu_plugin_tb Block;
typedef struct qemu_plugin_insn Instruction;
typedef struct qemu_plugin_hwaddr Physical;
typedef uint32_t Access;

enum { NO_REGISTERS = 0, STORES = 2, ANY = 3 };

/* Each plugin has these two. */
extern __attribute__((visibility("default"))) int qemu_plugin_version;
__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t, const Machine *, int, char **);

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, Block *));
extern void qemu_plugin_register_vcpu_insn_exec_cb(Instruction *, void (*)(unsigned, void *), int,
                                                   void *);
extern void qemu_plugin_register_vcpu_mem_cb(Instruction *,
                                             void (*)(unsigned, Access, uint64_t, void *), int, int,
                                             void *);
extern size_t qemu_plugin_tb_n_insns(const Block *);
extern Instruction *qemu_plugin_tb_get_insn(const Block *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const Instruction *);
extern size_t qemu_plugin_insn_size(const Instruction *);
extern const void *qemu_plugin_insn_data(const Instruction *);
extern unsigned qemu_plugin_mem_size_shift(Access);
extern bool qemu_plugin_mem_is_store(Access);
extern Physical *qemu_plugin_get_hwaddr(Access, uint64_t);
extern bool qemu_plugin_hwaddr_is_io(const Physical *);

#endif
