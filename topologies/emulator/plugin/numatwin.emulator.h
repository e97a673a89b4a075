// Regions to count, for programs that run under `numatwin emulate --count`: what lies between
// numatwin_count_begin() and numatwin_count_end() is counted on its own. Each is an instruction that
// does nothing, here and on any processor. Regions may overlap, also those of several threads: they
// are one, from the first begin to the last end.
#pragma once

#if defined(__x86_64__)
#define NUMATWIN_COUNT_MARK(mark) \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, " #mark ", 0x00, 0x74, 0x6e" ::: "memory")
#else
#error "numatwin.emulator.h: only for x86-64"
#endif

static inline void numatwin_count_begin(void) { NUMATWIN_COUNT_MARK(0x01); }
static inline void numatwin_count_end(void) { NUMATWIN_COUNT_MARK(0x02); }
