// One threadgroup at a time: its lanes, the places where they meet, and the values that they
// exchange. This code is never instrumented, and its memory is not the kernel's. Sanitizers know
// only what race.h tells them.
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

// xorshift64*. The seed only gives variety.
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

// Lanes that meet, and their place: the line in the high half, the column in the low.
struct Meeting {
    uint64_t place = 0;
    uint32_t operation = 0;
    uint32_t arrived = 0;
    uint32_t ended = 0;
    // Flips when a meeting is complete: two meetings in a row use separate memory.
    uint32_t parity = 0;
    // Addresses by which race.h orders lanes.
    char order[2];
    std::atomic<uint32_t> generation{0};
};

struct Simdgroup {
    uint32_t index = 0;
    Meeting meeting;
    alignas(16) uint64_t shown[2][WIDTH][2];
    // Matrices. For a sum, `a` has the lanes' values, and `product` the sum.
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
    // The stack of this lane, of those that are kept. Each racer keeps one stack: two racers on one
    // stack would seem to race for it.
    uint32_t stack = 0;
    // The stack pointer while the lane does not run.
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

// The way in which lanes wait for each other. One engine exists at a time.
struct Engine {
    virtual ~Engine() = default;
    // Runs `group`'s lanes to their end.
    virtual void run() = 0;
    // Tells that a lane arrives; returns when all have arrived.
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

    // The flag that a barrier must have to order anything: the one of threadgroup memory if there
    // are arrays in it, else the one of device memory.
    uint32_t needed_flag() const { return arrays.empty() ? 1 : 2; }
};
extern Group group;
extern Engine *engine;
extern thread_local Lane *self;

// Notes an arrival. The lane that completes the meeting does its arithmetic. With threads, the
// caller holds `group.busy`.
Step arrive(Lane &lane, uint64_t place, uint32_t operation);
// Runs the kernel's code for one lane, from start to end.
void run_lane(Lane &lane);
void end_lane(Lane &lane);
// Writes the numbers below 32 in some order.
void shuffle(Random &random, uint32_t (&order)[WIDTH]);
// Runs all threadgroups; returns the bytes of threadgroup memory that one of them had.
uint32_t run(const Launch &launch);
// For each mutant, whether it was asked about.
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
