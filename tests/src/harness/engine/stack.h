// Stacks for lanes, and the switch from one to another.
#pragma once

#include <cstdint>

// Saves on the stack what a call must keep, and goes on with another stack.
extern "C" void tilewise_switch(void **save, void *load) __asm__("tilewise_switch");

namespace tilewise {

// The stack pointer with which `tilewise_switch` begins at `begin`, on stack `index`; stacks are
// kept for the next threadgroup and launch.
void *fresh_stack(uint32_t index, void (*begin)());

} // namespace tilewise
