// One threadgroup at a time: its lanes, where they meet, and what they exchange. This code is never
// instrumented, and its memory is no kernel's: sanitizers see of it what race.h tells them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewise {

constexpr uint32_t WIDTH = 32;

// The shim's numbers of the operations; see NAMES in meeting.cpp.
enum Operation : uint32_t {
    SIMDGROUP_BARRIER,
    THREADGROUP_BARRIER,
    MULTIPLY = 9,
    MULTIPLY_ACCUMULATE = 10,
    SUM = 11
};

// xorshift64*: the seed's only use is variety.
struct Random {
    uint64_t state;

    explicit Random(uint64_t seed)
        : state(seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d) {
        next();
    }
    uint64_t next() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return state * 0x2545f4914f6cdd1d;
    }
    uint32_t below(uint32_t bound) { return static_cast<uint32_t>((next() >> 32) * bound >> 32); }
};

// Lanes that meet, and where: the line in the high half, the column in the low.
struct Meeting {
    uint64_t place = 0;
    uint32_t operation = 0;
    uint32_t arrived = 0;
    uint32_t ended = 0;
    // Flips when a meeting is complete: what two meetings in a row exchange lies apart.
    uint32_t parity = 0;
    // An address for race.h to order lanes by.
    char order[2];
    std::atomic<uint32_t> generation{0};
};

struct Simdgroup {
    uint32_t index = 0;
    Meeting meeting;
    alignas(16) uint64_t shown[2][WIDTH][2];
    // Matrices, or, in `a`, the lanes' values and, in `product`, their sum.
    alignas(64) float a[2][64], b[2][64], product[2][64];
};

struct Lane {
    uint32_t index = 0;
    Simdgroup *simdgroup = nullptr;
    uint32_t elements[2];
    uint64_t last_place = 0;
    uint32_t last_operation = 0;
    bool ended = false;
    // The thread that ThreadSanitizer takes this lane for.
    void *racer = nullptr;
    // Which of the kept stacks this lane has: one racer, one stack, as they would be seen to race
    // for it.
    uint32_t stack = 0;
    // While it is not running.
    void *stack_pointer = nullptr;
};

struct Array {
    uint64_t place;
    size_t bytes;
    void *memory;
};

using Entry = void (*)(const uint64_t *slots, const uint32_t *builtins);

struct Launch {
    Entry entry;
    uint32_t grid[3];
    uint32_t threads;
    uint32_t mutant;
    uint64_t seed;
    bool fibers;
    uint64_t slots[32];
};

enum class Step { WAIT, SIMDGROUP, GROUP };

// How lanes wait for each other. One exists at a time.
struct Engine {
    virtual ~Engine() = default;
    // Runs `group`'s lanes to their end.
    virtual void run() = 0;
    // A lane arrives, and comes back when all have.
    virtual void meet(Lane &lane, uint64_t place, uint32_t operation) = 0;
};
Engine *make_fibers();
Engine *make_threads();

struct Group {
    const Launch *launch = nullptr;
    uint32_t id[3];
    Random random{0};
    uint32_t turns[WIDTH];
    std::vector<Simdgroup> simdgroups;
    std::vector<Lane> lanes;
    Meeting meeting;
    std::vector<Array> arrays;
    std::atomic_flag busy = ATOMIC_FLAG_INIT;

    // The flag that a barrier must have to order anything: threadgroup memory if there is any, else
    // device memory.
    uint32_t needed_flag() const { return arrays.empty() ? 1 : 2; }
};
extern Group group;
extern Engine *engine;
extern thread_local Lane *self;

// Notes an arrival; whoever completes the meeting does its arithmetic. With threads, to be called
// with `group.busy` held.
Step arrive(Lane &lane, uint64_t place, uint32_t operation);
// The kernel's code for one lane, from start to end.
void run_lane(Lane &lane);
void end_lane(Lane &lane);
// The numbers below 32 in some order.
void shuffle(Random &random, uint32_t (&order)[WIDTH]);
// Runs all threadgroups; gives the bytes of threadgroup memory that one had.
uint32_t run(const Launch &launch);
// Mutants asked about so far, one byte each.
extern std::atomic<uint8_t> reached[65536];

struct Lock {
    Lock() {
        while (group.busy.test_and_set(std::memory_order_acquire)) {
            group.busy.wait(true, std::memory_order_relaxed);
        }
    }
    ~Lock() {
        group.busy.clear(std::memory_order_release);
        group.busy.notify_one();
    }
};

} // namespace tilewise
