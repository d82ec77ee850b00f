// The part of the engine that the shim uses. The engine runs a kernel, and is not instrumented:
// sanitizers see none of its accesses.
#pragma once

// The place of a call in the text: line and column. As a default argument it is the caller's place.
#define TILEWISE_PLACE \
    (static_cast<ulong>(__builtin_LINE()) << 32 | static_cast<ulong>(__builtin_COLUMN()))

// An address of memory, in no address space yet.
typedef ulong tilewise_address;
struct tilewise_pair {
    float x, y;
};

extern "C" {
// Barriers: scope 0 is the simdgroup, 1 the threadgroup; flags as in `mem_flags`.
void tilewise_barrier(ulong place, uint scope, uint flags);
// A meeting of the simdgroup; `operation` as in engine/engine.h.
void tilewise_meet(ulong place, uint operation);
// A meeting in which each lane shows 16 bytes. Returns the address of all 32 × 16 bytes, which stay
// until the next meeting but one.
tilewise_address tilewise_exchange(ulong place, uint operation, ulong low, ulong high);
// The product of 8×8 matrices. This lane holds their elements `tilewise_element(0)` and `(1)`, and
// gets those of the result.
tilewise_pair tilewise_multiply(ulong place, uint operation, float a0, float a1, float b0,
    float b1);
// The sum of all lanes' values.
float tilewise_sum(ulong place, float value);
// row * 8 + column of this lane's element `i`, 0 or 1, of every matrix.
uint tilewise_element(uint i);
uint tilewise_lane();
// The lane whose value is added in turn `i`.
uint tilewise_turn(uint i);
tilewise_address tilewise_shared(ulong place, ulong bytes);
bool tilewise_mutants(uint first, uint last);

float tilewise_exp(float);
float tilewise_exp2(float);
float tilewise_log(float);
float tilewise_log2(float);
float tilewise_tanh(float);
float tilewise_sin(float);
float tilewise_cos(float);
float tilewise_pow(float, float);
}
