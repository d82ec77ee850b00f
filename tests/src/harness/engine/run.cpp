// Runs threadgroups, one after the other.
#include "engine.h"
#include "race.h"

#include <cstdlib>
#include <memory>
#include <numeric>

namespace tilewise {

// Addresses for the order between the host and lanes.
static char begins, ends;

// The most threads of ThreadSanitizer. Every lane of every threadgroup has its own until there are
// this many. After that, lanes of threadgroups that are far apart share a thread if they have the
// same index.
constexpr size_t RACERS = 1024;

static void *racer(uint32_t id) {
    static std::vector<void *> racers;
    while (racers.size() <= id) {
        racers.push_back(race::create());
    }
    return racers[id];
}

void shuffle(Random &random, uint32_t (&order)[WIDTH]) {
    uint64_t bits = random.next();
    uint32_t factor = (bits >> 32) | 1, start = (bits >> 40) & 31, mask = (bits >> 48) & 31;
    for (uint32_t i = 0; i < WIDTH; i++) {
        order[i] = ((factor * i + start) & 31) ^ mask;
    }
}

template <class T> static void mix(Random &random, T *first, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        std::swap(first[i - 1], first[random.below(i)]);
    }
}

void run_lane(Lane &lane) {
    if (race::WATCHED) {
        race::acquire(&begins);
    }
    uint32_t builtins[] = {
        group.id[0], group.id[1], group.id[2],
        lane.index, lane.index / WIDTH, lane.index % WIDTH,
        group.launch->threads, group.launch->threads / WIDTH,
        group.launch->grid[0], group.launch->grid[1], group.launch->grid[2],
    };
    group.launch->entry(group.launch->slots, builtins);
    if (race::WATCHED) {
        race::release(&ends);
    }
}

uint32_t run(const Launch &launch) {
    Random random(launch.seed);
    uint32_t elements[64];
    std::iota(elements, elements + 64, 0);
    mix(random, elements, 64);
    shuffle(random, group.turns);

    group.launch = &launch;
    group.lanes = std::vector<Lane>(launch.threads);
    std::vector<uint32_t> order(static_cast<size_t>(launch.grid[0]) * launch.grid[1]
        * launch.grid[2]);
    std::iota(order.begin(), order.end(), 0);
    mix(random, order.data(), static_cast<uint32_t>(order.size()));

    race::release(&begins);
    engine = launch.fibers ? make_fibers() : make_threads();
    uint32_t bytes = 0;
    for (uint32_t index : order) {
        group.id[0] = index % launch.grid[0];
        group.id[1] = index / launch.grid[0] % launch.grid[1];
        group.id[2] = index / launch.grid[0] / launch.grid[1];
        group.random = Random(launch.seed ^ (index + 1ull) << 32);
        group.meeting.~Meeting();
        new (&group.meeting) Meeting;
        group.simdgroups = std::vector<Simdgroup>(launch.threads / WIDTH);
        for (uint32_t i = 0; i < launch.threads; i++) {
            Lane &lane = group.lanes[i];
            lane = Lane();
            lane.index = i;
            lane.simdgroup = &group.simdgroups[i / WIDTH];
            lane.simdgroup->index = i / WIDTH;
            lane.elements[0] = elements[i % WIDTH * 2];
            lane.elements[1] = elements[i % WIDTH * 2 + 1];
            lane.stack = i;
            if (race::WATCHED) {
                size_t sets = RACERS / launch.threads ? RACERS / launch.threads : 1;
                lane.stack = static_cast<uint32_t>((index % sets) * launch.threads + i);
                lane.racer = racer(lane.stack);
            }
        }
        engine->run();
        uint32_t sum = 0;
        race::Unseen unseen;
        for (const Array &array : group.arrays) {
            sum += array.bytes;
            free(array.memory);
        }
        group.arrays.clear();
        bytes = std::max(bytes, sum);
    }
    delete engine;
    engine = nullptr;
    race::acquire(&ends);
    return bytes;
}

} // namespace tilewise
