// Stacks for lanes, and the switch from one to another, for x86-64 and aarch64 (System V, and
// Apple's).
#include "stack.h"
#include "race.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#if defined(__x86_64__)
__asm__(R"(
.text
.globl tilewise_switch
.p2align 4
tilewise_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    retq
)");
#elif defined(__aarch64__)
__asm__(R"(
.text
.globl tilewise_switch
.p2align 4
tilewise_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
)");
#else
#error "fibers are written for x86-64 and aarch64"
#endif

namespace tilewise {

constexpr size_t STACK = 256 << 10, GUARD = 16 << 10;

static char *stack(uint32_t index) {
    static std::vector<char *> stacks(2048);
    if (!stacks[index]) {
        race::Unseen unseen;
        void *memory =
            mmap(nullptr, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, GUARD, PROT_NONE)) {
            perror("tilewise: a lane's stack");
            _exit(4);
        }
        stacks[index] = static_cast<char *>(memory) + GUARD;
    }
    return stacks[index];
}

void *fresh_stack(uint32_t index, void (*begin)()) {
    // The tops are spread in the cache: stacks at equal distances would share lines.
    char *top = stack(index) + STACK - index % 64 * 832;
#if defined(__x86_64__)
    // Six registers, the address to return to, and an address that nobody returns to.
    void **frame = reinterpret_cast<void **>(top) - 8;
    frame[6] = reinterpret_cast<void *>(begin);
#else
    void **frame = reinterpret_cast<void **>(top) - 20;
    frame[11] = reinterpret_cast<void *>(begin);
#endif
    return frame;
}

} // namespace tilewise
