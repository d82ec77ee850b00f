// Runs all lanes on one thread, and switches between them where they meet. The seed decides which
// lane goes on.
#include "engine.h"
#include "race.h"
#include "stack.h"

#include <cstdlib>

namespace tilewise {

namespace {

struct Fibers : Engine {
    Lane host;
    uint32_t ended = 0;
    // A ring of lanes that can go on.
    std::vector<Lane *> ready;
    uint32_t first = 0, count = 0;

    Fibers() : ready(2048) { host.racer = race::current(); }

    void append(Lane &lane) { ready[(first + count++) % ready.size()] = &lane; }
    Lane &take() {
        Lane &lane = *ready[first];
        first = (first + 1) % ready.size();
        count--;
        return lane;
    }

    void go_on(Lane &from, Lane &to) {
        if (&from == &to) {
            return;
        }
        self = &to;
        if (race::WATCHED) {
            race::switch_to(to.racer);
        }
        tilewise_switch(&from.stack_pointer, to.stack_pointer);
    }

    // Makes the lanes of a simdgroup ready in some order, before or behind the others.
    void wake(Simdgroup &simdgroup, bool ahead) {
        uint32_t order[WIDTH];
        shuffle(group.random, order);
        if (ahead) {
            first = (first + ready.size() - WIDTH) % ready.size();
            for (uint32_t i = 0; i < WIDTH; i++) {
                ready[(first + i) % ready.size()] =
                    &group.lanes[simdgroup.index * WIDTH + order[i]];
            }
            count += WIDTH;
        } else {
            for (uint32_t i : order) {
                append(group.lanes[simdgroup.index * WIDTH + i]);
            }
        }
    }

    void wake_all() {
        for (Simdgroup &simdgroup : group.simdgroups) {
            wake(simdgroup, group.random.next() >> 63);
        }
    }

    void meet(Lane &lane, uint64_t place, uint32_t operation) override {
        switch (arrive(lane, place, operation)) {
        case Step::WAIT:
            break;
        case Step::SIMDGROUP:
            wake(*lane.simdgroup, group.random.next() >> 63);
            break;
        case Step::GROUP:
            wake_all();
        }
        // There is always a lane that is ready: `arrive` and `end_lane` refuse everything else.
        go_on(lane, take());
    }

    // The start of every fiber.
    static void begin() {
        auto *fibers = static_cast<Fibers *>(engine);
        Lane &lane = *self;
        run_lane(lane);
        end_lane(lane);
        fibers->ended++;
        fibers->go_on(lane, fibers->count ? fibers->take() : fibers->host);
        abort();
    }

    void run() override {
        ended = 0;
        for (Lane &lane : group.lanes) {
            lane.stack_pointer = fresh_stack(lane.stack, &begin);
        }
        wake_all();
        go_on(host, take());
    }
};

} // namespace

Engine *make_fibers() { return new Fibers; }

} // namespace tilewise
