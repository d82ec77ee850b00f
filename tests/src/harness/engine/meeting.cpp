// Arrivals of lanes, and the functions that kernels call.
#include "engine.h"
#include "race.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace tilewise {

Group group;
Engine *engine;
thread_local Lane *self;
std::atomic<uint8_t> reached[65536];

static const char *const NAMES[] = {
    "simdgroup_barrier",  "threadgroup_barrier",
    "simd_sum",           "simd_shuffle",
    "simd_shuffle_xor",   "simd_shuffle_down",
    "simd_broadcast",     "simdgroup_load",
    "simdgroup_store",    "simdgroup_multiply",
    "simdgroup_multiply_accumulate",
    "simd_sum",
};

static std::string at(uint64_t place, uint32_t operation) {
    return std::string(NAMES[operation]) + " in line " + std::to_string(place >> 32) + ", column "
        + std::to_string(place & 0xffffffff);
}

[[noreturn]] static void diverged(const std::string &what) {
    fprintf(stderr, "tilewise: divergence in threadgroup (%u, %u, %u): %s\n", group.id[0],
        group.id[1], group.id[2], what.c_str());
    fflush(stderr);
    _exit(3);
}

static std::string name(const Lane &lane) {
    return "lane " + std::to_string(lane.index % WIDTH) + " of simdgroup "
        + std::to_string(lane.index / WIDTH);
}

// The last place of a lane: the place where it ended is not known.
static std::string last(const Lane &lane) {
    return lane.last_place ? "after " + at(lane.last_place, lane.last_operation)
        : std::string("without any meeting");
}

// Multiplies 8×8 matrices, after all lanes have shown their elements.
static void multiply(Simdgroup &simdgroup, uint32_t parity) {
    const float *a = simdgroup.a[parity], *b = simdgroup.b[parity];
    for (int i = 0; i < 8; i++) {
        float row[8] = {};
        for (int k = 0; k < 8; k++) {
            for (int j = 0; j < 8; j++) {
                row[j] += a[8 * i + k] * b[8 * k + j];
            }
        }
        for (int j = 0; j < 8; j++) {
            simdgroup.product[parity][8 * i + j] = row[j];
        }
    }
}

static void sum(Simdgroup &simdgroup, uint32_t parity) {
    float result = simdgroup.a[parity][group.turns[0]];
    for (uint32_t i = 1; i < WIDTH; i++) {
        result += simdgroup.a[parity][group.turns[i]];
    }
    simdgroup.product[parity][0] = result;
}

Step arrive(Lane &lane, uint64_t place, uint32_t operation) {
    Simdgroup &simdgroup = *lane.simdgroup;
    Meeting &here = simdgroup.meeting;
    lane.last_place = place;
    lane.last_operation = operation;
    if (here.ended) {
        for (const Lane &other : group.lanes) {
            if (other.simdgroup == &simdgroup && other.ended) {
                diverged(name(lane) + " comes to " + at(place, operation) + ", but " + name(other)
                    + " has ended " + last(other));
            }
        }
    }
    if (here.arrived == 0) {
        here.place = place;
        here.operation = operation;
    } else if (here.place != place || here.operation != operation) {
        diverged(name(lane) + " comes to " + at(place, operation)
            + ", but others of its simdgroup wait at " + at(here.place, here.operation));
    }
    if (++here.arrived < WIDTH) {
        return Step::WAIT;
    }
    here.arrived = 0;
    if (operation == MULTIPLY || operation == MULTIPLY_ACCUMULATE) {
        multiply(simdgroup, here.parity);
    } else if (operation == SUM) {
        sum(simdgroup, here.parity);
    }
    here.parity ^= 1;
    if (operation != THREADGROUP_BARRIER) {
        return Step::SIMDGROUP;
    }
    Meeting &all = group.meeting;
    if (all.ended) {
        for (const Lane &other : group.lanes) {
            if (other.ended) {
                diverged("simdgroup " + std::to_string(simdgroup.index) + " comes to "
                    + at(place, operation) + ", but " + name(other) + " has ended "
                    + last(other));
            }
        }
    }
    if (all.arrived == 0) {
        all.place = place;
    } else if (all.place != place) {
        diverged("simdgroup " + std::to_string(simdgroup.index) + " comes to "
            + at(place, operation) + ", but other simdgroups wait at "
            + at(all.place, operation));
    }
    if (++all.arrived < group.simdgroups.size()) {
        return Step::WAIT;
    }
    all.arrived = 0;
    all.parity ^= 1;
    return Step::GROUP;
}

void end_lane(Lane &lane) {
    Meeting &here = lane.simdgroup->meeting, &all = group.meeting;
    if (here.arrived) {
        diverged(name(lane) + " ends " + last(lane) + ", but others of its simdgroup wait at "
            + at(here.place, here.operation));
    }
    lane.ended = true;
    if (++here.ended == WIDTH) {
        if (all.arrived) {
            diverged("simdgroup " + std::to_string(lane.simdgroup->index) + " ends " + last(lane)
                + ", but other simdgroups wait at "
                + at(all.place, THREADGROUP_BARRIER));
        }
        all.ended++;
    }
}

} // namespace tilewise

using namespace tilewise;

struct Pair {
    float x, y;
};

extern "C" {

void tilewise_barrier(uint64_t place, uint32_t scope, uint32_t flags) {
    Lane &lane = *self;
    Meeting &meeting = scope ? group.meeting : lane.simdgroup->meeting;
    bool orders = race::WATCHED && (flags & group.needed_flag());
    void *order = &meeting.order[meeting.parity];
    if (orders) {
        race::release(order);
    }
    engine->meet(lane, place, scope ? THREADGROUP_BARRIER : SIMDGROUP_BARRIER);
    if (orders) {
        race::acquire(order);
    }
}

void tilewise_meet(uint64_t place, uint32_t operation) { engine->meet(*self, place, operation); }

uint64_t tilewise_exchange(uint64_t place, uint32_t operation, uint64_t low, uint64_t high) {
    Lane &lane = *self;
    auto &shown = lane.simdgroup->shown[lane.simdgroup->meeting.parity];
    shown[lane.index % WIDTH][0] = low;
    shown[lane.index % WIDTH][1] = high;
    engine->meet(lane, place, operation);
    return reinterpret_cast<uint64_t>(&shown);
}

Pair tilewise_multiply(uint64_t place, uint32_t operation, float a0, float a1, float b0, float b1) {
    Lane &lane = *self;
    Simdgroup &simdgroup = *lane.simdgroup;
    uint32_t parity = simdgroup.meeting.parity, first = lane.elements[0], second = lane.elements[1];
    simdgroup.a[parity][first] = a0;
    simdgroup.a[parity][second] = a1;
    simdgroup.b[parity][first] = b0;
    simdgroup.b[parity][second] = b1;
    engine->meet(lane, place, operation);
    return {simdgroup.product[parity][first], simdgroup.product[parity][second]};
}

float tilewise_sum(uint64_t place, float value) {
    Lane &lane = *self;
    Simdgroup &simdgroup = *lane.simdgroup;
    uint32_t parity = simdgroup.meeting.parity;
    simdgroup.a[parity][lane.index % WIDTH] = value;
    engine->meet(lane, place, SUM);
    return simdgroup.product[parity][0];
}

uint32_t tilewise_element(uint32_t i) { return self->elements[i]; }
uint32_t tilewise_lane() { return self->index % WIDTH; }
uint32_t tilewise_turn(uint32_t i) { return group.turns[i]; }

uint64_t tilewise_shared(uint64_t place, uint64_t bytes) {
    Lock lock;
    for (const Array &array : group.arrays) {
        if (array.place == place && array.bytes == bytes) {
            return reinterpret_cast<uint64_t>(array.memory);
        }
    }
    race::Unseen unseen;
    auto *memory = static_cast<volatile char *>(malloc(bytes));
    for (uint64_t i = 0; i < bytes; i++) {
        memory[i] = static_cast<char>(0xff);
    }
    group.arrays.push_back({place, bytes, const_cast<char *>(memory)});
    return reinterpret_cast<uint64_t>(memory);
}

bool tilewise_mutants(uint32_t first, uint32_t last) {
    for (uint32_t id = first; id <= last; id++) {
        reached[id & 0xffff].store(1, std::memory_order_relaxed);
    }
    return first != 0 && group.launch->mutant - first <= last - first;
}
}
