// SPDX-License-Identifier: GPL-2.0-or-later
//
// The plugin that QEMU loads: hands each access to memory, and each marked instruction, to what
// counts them. It uses QEMU's plugin interface, written down here as far as it is used, from its
// documentation (docs/devel/tcg-plugins): version 1 (QEMU 7.2), or 3 (QEMU 9.1 to 10, whose own is
// 4), which hands out an instruction's bytes in another way.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>

#include "processors.hpp"
#include "quanta.hpp"
#include "settings.hpp"
#include "spans.hpp"

#ifndef NUMATWIN_PLUGIN_VERSION
#define NUMATWIN_PLUGIN_VERSION 1
#endif
#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = NUMATWIN_PLUGIN_VERSION;

using qemu_plugin_id_t = std::uint64_t;
using qemu_plugin_meminfo_t = std::uint32_t;
struct qemu_info_t {
    const char* target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus, max_vcpus;
    } system;
};
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };

using qemu_plugin_vcpu_tb_trans_cb_t = void (*)(qemu_plugin_id_t, qemu_plugin_tb*);
using qemu_plugin_vcpu_simple_cb_t = void (*)(qemu_plugin_id_t, unsigned);
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned, void*);
using qemu_plugin_vcpu_mem_cb_t = void (*)(unsigned, qemu_plugin_meminfo_t, std::uint64_t, void*);
using qemu_plugin_udata_cb_t = void (*)(qemu_plugin_id_t, void*);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_vcpu_tb_trans_cb_t);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb_t,
                                            qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, qemu_plugin_vcpu_udata_cb_t,
                                          qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_vcpu_mem_cb_t,
                                      qemu_plugin_cb_flags, qemu_plugin_mem_rw, void*);
void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t, qemu_plugin_vcpu_simple_cb_t);
void qemu_plugin_register_vcpu_resume_cb(qemu_plugin_id_t, qemu_plugin_vcpu_simple_cb_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_udata_cb_t, void*);
std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
#if NUMATWIN_PLUGIN_VERSION >= 3
std::size_t qemu_plugin_insn_data(const qemu_plugin_insn*, void*, std::size_t);
#else
const void* qemu_plugin_insn_data(const qemu_plugin_insn*);
#endif
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, std::uint64_t);
bool qemu_plugin_hwaddr_is_io(const qemu_plugin_hwaddr*);
std::uint64_t qemu_plugin_hwaddr_phys_addr(const qemu_plugin_hwaddr*);

EXPORT int qemu_plugin_install(qemu_plugin_id_t, const qemu_info_t*, int, char**);
}

namespace {

using namespace numatwin;

// Never destroyed: as QEMU ends, processors still run, and on_exit comes after destructors.
Processors* processors = nullptr;
Spans* spans = nullptr;
Quanta* quanta = nullptr;
bool counts_instructions = false, user_only = false;

// Instructions; more where processors have nothing to do with each other, as waits cost time.
constexpr std::int64_t QUANTUM = 100'000, QUANTUM_SEPARATE = 400'000;

// What QEMU's interface says of a kind of access, which there are few of: asked once each, and kept
// in one word: the kind, and 32 bits on the size, with the highest bit where it writes.
struct Kind {
    bool write;
    unsigned bytes;
};

inline Kind kind_of(qemu_plugin_meminfo_t info) {
    constexpr std::uint64_t WRITE = std::uint64_t{1} << 63;
    static std::atomic<std::uint64_t> kinds[64];
    std::atomic<std::uint64_t>& known = kinds[(info ^ info >> 4 ^ info >> 13) % 64];
    std::uint64_t word = known.load(std::memory_order_relaxed);
    const std::uint64_t size = word << 1 >> 33;
    if (size == 0 || static_cast<qemu_plugin_meminfo_t>(word) != info) {
        word = info | std::uint64_t{1} << (32 + qemu_plugin_mem_size_shift(info)) |
               (qemu_plugin_mem_is_store(info) ? WRITE : 0);
        known.store(word, std::memory_order_relaxed);
    }
    return {(word & WRITE) != 0, static_cast<unsigned>(word << 1 >> 33)};
}

// LOCKED: an instruction that reads and writes at once. QEMU tells of it as a store alone (where
// several processors run), or as a load and a store (where one does): counted at the store.
template <Mode MODE, bool LOCKED>
void on_access(unsigned cpu, qemu_plugin_meminfo_t info, std::uint64_t address, void* serial) {
    if (!spans->running()) return;
    const Kind kind = kind_of(info);
    if (LOCKED && !kind.write) return;
    const auto translate = [info](std::uint64_t at) {
        const qemu_plugin_hwaddr* found = qemu_plugin_get_hwaddr(info, at);
        if (!found || qemu_plugin_hwaddr_is_io(found)) return Processors::NO_MEMORY;
        return qemu_plugin_hwaddr_phys_addr(found);
    };
    processors->access<MODE>(cpu, {address, kind.bytes, kind.write, LOCKED, serial != nullptr},
                             translate);
}

void on_kernel_left_out(unsigned cpu, qemu_plugin_meminfo_t, std::uint64_t, void*) {
    processors->kernel_ran(cpu);
}

void on_mark(unsigned, void* mark) {
    spans->mark(static_cast<Mark>(reinterpret_cast<std::uintptr_t>(mark)));
}

// The first bytes of an instruction of x86-64.
struct Bytes {
    std::uint8_t value[15] = {};
    std::size_t size = 0;
};

Bytes bytes_of(const qemu_plugin_insn* instruction) {
    Bytes made;
    made.size = std::min(qemu_plugin_insn_size(instruction), sizeof made.value);
#if NUMATWIN_PLUGIN_VERSION >= 3
    qemu_plugin_insn_data(instruction, made.value, made.size);
#else
    std::memcpy(made.value, qemu_plugin_insn_data(instruction), made.size);
#endif
    return made;
}

// `nopl 0x6e740000+mark(%rax)`: 0f 1f 80 and four bytes of displacement. 0 for others.
unsigned mark_of(const Bytes& code) {
    const std::uint8_t* b = code.value;
    if (code.size != 7 || b[0] != 0x0f || b[1] != 0x1f || b[2] != 0x80) return 0;
    if (b[4] != 0x00 || b[5] != 0x74 || b[6] != 0x6e) return 0;
    return b[3] <= static_cast<unsigned>(Mark::LAST) ? b[3] : 0;
}

// A LOCK prefix, or XCHG with memory, which needs none.
bool is_locked(const Bytes& code) {
    for (std::size_t at = 0; at < code.size; ++at) {
        const std::uint8_t b = code.value[at];
        if (b == 0xf0) return true;
        if (b == 0x86 || b == 0x87) return true;
        const bool prefix = b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0x2e ||
                            b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65 ||
                            (b & 0xf0) == 0x40;
        if (!prefix) return false;
    }
    return false;
}

// `mov` from memory into a register that its own address is made of, as in `p = p->next`; the
// next one waits for it. Also with widening, and what an atomic instruction returns.
bool is_chained(const Bytes& code) {
    std::size_t at = 0;
    unsigned rex = 0;
    for (; at < code.size; ++at) {
        const std::uint8_t b = code.value[at];
        if ((b & 0xf0) == 0x40)
            rex = b;
        else if (b != 0x66 && b != 0x64 && b != 0x65)
            break;
    }
    if (at + 1 >= code.size) return false;
    if (code.value[at] == 0x0f) {
        const std::uint8_t second = code.value[++at];
        if ((second & 0xf6) != 0xb6) return false;  // movzx, movsx
    } else if (code.value[at] != 0x8b && code.value[at] != 0x63) {
        return false;
    }
    if (++at >= code.size) return false;
    const unsigned mod = code.value[at] >> 6, base = code.value[at] & 7;
    const unsigned target = (code.value[at] >> 3 & 7) | (rex & 4) << 1;
    if (mod == 3) return false;
    if (base != 4) return !(mod == 0 && base == 5) && target == (base | (rex & 1) << 3);
    if (++at >= code.size) return false;
    const unsigned sib_base = (code.value[at] & 7) | (rex & 1) << 3;
    const unsigned index = (code.value[at] >> 3 & 7) | (rex & 2) << 2;
    return (target == index && index != 4) ||
           (target == sib_base && !(mod == 0 && (sib_base & 7) == 5));
}

// MOVS and STOS with a REP prefix: a processor moves whole lines, QEMU one item after another.
bool is_repeated(const Bytes& code) {
    bool prefix = false;
    for (std::size_t at = 0; at < code.size; ++at) {
        const std::uint8_t b = code.value[at];
        if (b == 0xf3 || b == 0xf2)
            prefix = true;
        else if ((b & 0xf0) != 0x40 && b != 0x66 && b != 0x67)
            return prefix && (b == 0xa4 || b == 0xa5 || b == 0xaa || b == 0xab);
    }
    return false;
}

// CMP and TEST, which processors since Core 2 and Bulldozer execute as one with a Jcc behind them.
bool compares(const Bytes& code) {
    std::size_t at = 0;
    while (at + 1 < code.size && (code.value[at] == 0x66 || (code.value[at] & 0xf0) == 0x40)) ++at;
    const std::uint8_t b = code.value[at];
    const unsigned operation = at + 1 < code.size ? code.value[at + 1] >> 3 & 7 : 8;
    if ((b >= 0x38 && b <= 0x3d) || b == 0x84 || b == 0x85 || b == 0xa8 || b == 0xa9) return true;
    if (b == 0x80 || b == 0x81 || b == 0x83) return operation == 7;
    return (b == 0xf6 || b == 0xf7) && operation <= 1;
}

// How a block ends whose last instruction this is: Jcc and LOOP; CALL and JMP to what a register or
// memory holds; SYSCALL, SYSENTER and INT 0x80.
Block::Ending ending_of(const Bytes& code) {
    std::size_t at = 0;
    while (at + 2 < code.size && (code.value[at] == 0x3e || code.value[at] == 0x2e ||
                                  code.value[at] == 0xf2 || (code.value[at] & 0xf0) == 0x40))
        ++at;
    const std::uint8_t first = code.value[at], second = code.value[at + 1];
    if ((first & 0xf0) == 0x70 || (first & 0xfc) == 0xe0) return Block::CONDITIONAL;
    if (first == 0x0f && (second & 0xf0) == 0x80) return Block::CONDITIONAL;
    if (first == 0x0f && (second == 0x05 || second == 0x34)) return Block::SYSTEM_CALL;
    if (first == 0xcd && second == 0x80) return Block::SYSTEM_CALL;
    const unsigned operation = second >> 3 & 7;
    return first == 0xff && (operation == 2 || operation == 4) ? Block::INDIRECT : Block::OTHER;
}

// The one and only copy of a block: QEMU translates the same one again and again.
const Block* kept(const Block& block) {
    static std::mutex lock;
    using Key = std::tuple<std::uint64_t, std::uint64_t, unsigned, unsigned, bool>;
    static auto& blocks = *new std::map<Key, Block>;
    const std::lock_guard locked(lock);
    const Key key{block.begin, block.end, block.instructions, block.ending, block.fused};
    return &blocks.try_emplace(key, block).first->second;
}

void on_block(unsigned cpu, void* block) {
    spans->executed(cpu, *static_cast<const Block*>(block));
}

void on_instructions(unsigned cpu, void* count) {
    if (spans->running())
        quanta->executed(cpu, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(count)));
}

void on_idle(qemu_plugin_id_t, unsigned cpu) {
    quanta->idle(cpu);
}

void on_resume(qemu_plugin_id_t, unsigned cpu) {
    quanta->resume(cpu);
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* block) {
    const std::size_t count = qemu_plugin_tb_n_insns(block);
    std::size_t repeated = 0;
    bool compared = false;
    Block found;
    for (std::size_t at = 0; at < count; ++at) {
        qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, at);
        const Bytes code = bytes_of(instruction);
        if (const unsigned mark = mark_of(code))
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, QEMU_PLUGIN_CB_NO_REGS,
                                                   reinterpret_cast<void*>(std::uintptr_t{mark}));
        const std::uint64_t address = qemu_plugin_insn_vaddr(instruction);
        if (at == 0) found.begin = address;
        found.end = address + code.size;
        if (at + 1 == count) {
            found.ending = ending_of(code);
            found.fused = compared && found.ending == Block::CONDITIONAL;
        }
        compared = compares(code);
        const bool kernel = found.of_kernel(), locked = is_locked(code);
        repeated += is_repeated(code);
        const auto callback = kernel && user_only ? on_kernel_left_out
                              : kernel ? locked ? on_access<KERNEL, true> : on_access<KERNEL, false>
                              : locked ? on_access<USER, true>
                                       : on_access<USER, false>;
        void* serial = locked || is_chained(code) ? &spans : nullptr;
        qemu_plugin_register_vcpu_mem_cb(instruction, callback, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, serial);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_instructions, QEMU_PLUGIN_CB_NO_REGS,
                                         reinterpret_cast<void*>(std::uintptr_t{count}));
    if (!counts_instructions || count == repeated) return;
    found.instructions = static_cast<unsigned>(count - repeated);
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, QEMU_PLUGIN_CB_NO_REGS,
                                         const_cast<Block*>(kept(found)));
}

void on_exit(qemu_plugin_id_t, void*) {
    spans->finish();
}

}  // namespace

// Its only argument: `settings=FILE` (settings.hpp says what is in it).
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) {
    const std::string argument = argc == 1 ? argv[0] : "", key = "settings=";
    if (argument.rfind(key, 0) != 0) {
        std::fprintf(stderr, "traffic plugin: expected settings=FILE\n");
        return 1;
    }
    try {
        Settings settings = read_settings(argument.substr(key.size()));
        if (info->system.max_vcpus > static_cast<int>(settings.shape.cpu_node.size()))
            throw std::runtime_error("the guest has more processors than the settings");
        processors = new Processors(settings);
        spans = new Spans(*processors, settings.shape, settings.out, settings.interval);
        quanta =
            new Quanta(processors->size(), settings.shape.interacts() ? QUANTUM : QUANTUM_SEPARATE);
        counts_instructions = settings.interval > 0;
        user_only = settings.user_only;
        if (settings.from_start) spans->mark(Mark::COMMAND_BEGIN);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "traffic plugin: %s\n", failure.what());
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_idle_cb(id, on_idle);
    qemu_plugin_register_vcpu_resume_cb(id, on_resume);
    qemu_plugin_register_atexit_cb(id, on_exit, nullptr);
    return 0;
}
