// The worker: takes launches from its standard input, and answers on its standard output, in the
// machine's own byte order. A failure of a kernel ends the worker, with a report on standard error.
#include "engine.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

using namespace tilewise;

namespace {

// Reads bytes; false at the end of the input.
bool take(void *target, size_t bytes) {
    auto *next = static_cast<char *>(target);
    while (bytes) {
        ssize_t count = read(0, next, bytes);
        if (count <= 0) {
            return false;
        }
        next += count;
        bytes -= static_cast<size_t>(count);
    }
    return true;
}

template <class T> T take() {
    T value;
    if (!take(&value, sizeof(T))) {
        _exit(0);
    }
    return value;
}

void give(const void *source, size_t bytes) {
    auto *next = static_cast<const char *>(source);
    while (bytes) {
        ssize_t count = write(1, next, bytes);
        if (count <= 0) {
            _exit(0);
        }
        next += count;
        bytes -= static_cast<size_t>(count);
    }
}

template <class T> void give(T value) { give(&value, sizeof(T)); }

void *open(const std::string &path) {
    static std::string current;
    static void *library;
    if (path != current) {
        if (library) {
            dlclose(library);
        }
        library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        current = path;
    }
    if (!library) {
        fprintf(stderr, "tilewise: %s\n", dlerror());
        _exit(4);
    }
    return library;
}

struct Buffer {
    uint32_t slot;
    uint64_t bytes;
    void *memory;
};

void serve() {
    std::string path(take<uint32_t>(), ' ');
    take(&path[0], path.size());
    void *library = open(path);
    // The number of the request: 0 asks for the sizes of the arguments' elements, 1 is a launch.
    if (take<uint32_t>() == 0) {
        auto bytes = reinterpret_cast<uint32_t (*)(uint32_t)>(dlsym(library, "tilewise_bytes"));
        for (uint32_t slot = 0; slot < 32; slot++) {
            give(bytes(slot));
        }
        return;
    }
    Launch launch = {};
    launch.entry = reinterpret_cast<Entry>(dlsym(library, "tilewise_entry"));
    take(launch.grid, sizeof(launch.grid));
    launch.threads = take<uint32_t>();
    launch.mutant = take<uint32_t>();
    launch.seed = take<uint64_t>();
    launch.fibers = take<uint32_t>() == 0;
    std::vector<Buffer> buffers(take<uint32_t>());
    for (Buffer &buffer : buffers) {
        buffer.slot = take<uint32_t>();
        buffer.bytes = take<uint64_t>();
        // The memory is exactly as large as the buffer: sanitizers watch its ends.
        buffer.memory = malloc(buffer.bytes);
        take(buffer.memory, buffer.bytes);
        launch.slots[buffer.slot] = reinterpret_cast<uint64_t>(buffer.memory);
    }
    for (auto &one : reached) {
        one.store(0, std::memory_order_relaxed);
    }
    give(run(launch));
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < 65536; id++) {
        if (reached[id].load(std::memory_order_relaxed)) {
            ids.push_back(id);
        }
    }
    give(static_cast<uint32_t>(ids.size()));
    give(ids.data(), ids.size() * sizeof(uint32_t));
    for (const Buffer &buffer : buffers) {
        give(buffer.memory, buffer.bytes);
        free(buffer.memory);
    }
}

} // namespace

int main() {
    for (;;) {
        serve();
    }
}
