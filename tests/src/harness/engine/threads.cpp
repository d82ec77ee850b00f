// Runs every lane as a thread of the system.
#include "engine.h"
#include "race.h"
#include "stack.h"

#include <cstdlib>
#include <thread>

namespace tilewise {

namespace {

// The stack pointer with which the thread goes on after its lane has ended.
thread_local void *caller;

struct Threads : Engine {
    std::vector<std::thread> threads;
    // The number of threadgroups begun.
    std::atomic<uint32_t> begun{0};
    std::atomic<uint32_t> running{0};
    bool over = false;

    ~Threads() override {
        over = true;
        begun.fetch_add(1, std::memory_order_release);
        begun.notify_all();
        for (std::thread &thread : threads) {
            thread.join();
        }
    }

    static void begin() {
        run_lane(*self);
        tilewise_switch(&self->stack_pointer, caller);
        abort();
    }

    void work(uint32_t index) {
        void *own = race::current();
        for (uint32_t seen = 0;; seen++) {
            begun.wait(seen, std::memory_order_acquire);
            if (over) {
                return;
            }
            Lane &lane = group.lanes[index];
            self = &lane;
            lane.stack_pointer = fresh_stack(lane.stack, &begin);
            race::switch_to(lane.racer);
            tilewise_switch(&caller, lane.stack_pointer);
            race::switch_to(own);
            {
                Lock lock;
                end_lane(lane);
            }
            if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                running.notify_all();
            }
        }
    }

    void run() override {
        running.store(static_cast<uint32_t>(group.lanes.size()), std::memory_order_relaxed);
        while (threads.size() < group.lanes.size()) {
            threads.emplace_back(&Threads::work, this, static_cast<uint32_t>(threads.size()));
        }
        begun.fetch_add(1, std::memory_order_release);
        begun.notify_all();
        while (uint32_t left = running.load(std::memory_order_acquire)) {
            running.wait(left, std::memory_order_acquire);
        }
    }

    void meet(Lane &lane, uint64_t place, uint32_t operation) override {
        bool all = operation == THREADGROUP_BARRIER;
        std::atomic<uint32_t> &generation =
            all ? group.meeting.generation : lane.simdgroup->meeting.generation;
        uint32_t before = generation.load(std::memory_order_relaxed);
        Step step;
        {
            Lock lock;
            step = arrive(lane, place, operation);
        }
        if (step == Step::WAIT) {
            while (generation.load(std::memory_order_acquire) == before) {
                generation.wait(before, std::memory_order_acquire);
            }
        } else {
            generation.fetch_add(1, std::memory_order_release);
            generation.notify_all();
        }
    }
};

} // namespace

Engine *make_threads() { return new Threads; }

} // namespace tilewise
