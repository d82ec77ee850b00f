// Tells ThreadSanitizer which lane runs, and which order MSL promises. Does nothing in the other
// flavours.
#pragma once

#ifdef TILEWISE_RACES
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#endif

namespace tilewise::race {

#ifdef TILEWISE_RACES
constexpr bool WATCHED = true;
inline void *current() { return __tsan_get_current_fiber(); }
inline void *create() { return __tsan_create_fiber(0); }
// The flag 1 says that the switch itself orders nothing.
inline void switch_to(void *racer) { __tsan_switch_to_fiber(racer, 1); }
inline void acquire(void *address) { __tsan_acquire(address); }
inline void release(void *address) { __tsan_release(address); }
// While an object lives, memory that is allocated or freed counts as memory that nobody has
// touched.
struct Unseen {
    Unseen() {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~Unseen() {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
};
#else
constexpr bool WATCHED = false;
inline void *current() { return nullptr; }
inline void *create() { return nullptr; }
inline void switch_to(void *) {}
inline void acquire(void *) {}
inline void release(void *) {}
struct Unseen {
    Unseen() {}
    ~Unseen() {}
};
#endif

} // namespace tilewise::race
