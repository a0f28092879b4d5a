// Runs CUDA C++ kernels on the CPU: the CUDA that kernels use, and the scheduler behind it.
//
// Every thread is a fiber. Several thread blocks run concurrently. A fiber runs until it synchronizes (a barrier, an
// operation of its warp) or changes memory that others see (an atomic operation); which fiber runs next is drawn from a
// seed, so that results which depend on the order show. The simulator checks that
// - every thread of the thread block reaches a barrier, at the same line of the source;
// - the lanes of a mask execute the same warp operation, each with the same mask, and no lane is outside its own mask;
// - shared memory is as large as the launch said (with AddressSanitizer, every access of shared and global memory).
// Floating-point arithmetic is the CPU's: compile with -ffp-contract=off.
//
// A kernel is declared by KERNEL(name, Arguments, arguments) { ... }, takes one struct, and has one struct of shared
// memory, SHARED(Type, name).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#define __device__
#define __noinline__ __attribute__((noinline))

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// The usual arithmetic conversions apply, as in CUDA.
template <class A, class B> inline std::common_type_t<A, B> min(A a, B b) {
    const std::common_type_t<A, B> first = a, second = b;
    return first < second ? first : second;
}
template <class A, class B> inline std::common_type_t<A, B> max(A a, B b) {
    const std::common_type_t<A, B> first = a, second = b;
    return first > second ? first : second;
}

namespace simulator {

constexpr size_t STACK_BYTES = 64 << 10;

struct Index { unsigned x; };

enum class State { Ready, Barrier, Warp, Done };

struct Block;

struct Fiber {
    void *stack_pointer;
    char *stack;
    Block *block;
    unsigned thread;
    State state;
    unsigned meeting; // the number of the meeting that it waits for
};

// A warp operation of some lanes. It lasts until all of them have read the values.
struct Meeting {
    unsigned number, mask, arrived, read;
    int line;
    uint64_t values[32];
};
struct Warp {
    std::vector<Meeting> meetings;
    unsigned next;
};

struct Block {
    unsigned number;
    unsigned live, at_barrier;
    int barrier_line;
    // The votes of the waiting threads, and the result of the last barrier.
    bool votes, vote;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    char *shared;
};

struct Launch {
    unsigned grid, block;
    size_t shared_bytes;
    void (*kernel)(const void *);
    const void *arguments;
    uint64_t seed;
    unsigned live_blocks;
};

struct Scheduler {
    Launch launch;
    void *main_stack = nullptr;
    Fiber *current = nullptr;
    uint64_t random = 1;
    std::vector<char *> free_stacks;
    std::string error;
    ~Scheduler() { for (char *stack : free_stacks) std::free(stack); }
};
inline thread_local Scheduler scheduler;

inline uint64_t draw() {
    uint64_t &x = scheduler.random;
    x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    return x;
}

extern "C" void simulator_switch(void **save, void *load);
#if defined(__x86_64__)
asm(R"(
.text
.weak simulator_switch
.type simulator_switch,@function
simulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
constexpr int SAVED_REGISTERS = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.weak simulator_switch
.type simulator_switch,%function
simulator_switch:
  stp x19, x20, [sp, #-160]!
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x19, x20, [sp], #160
  ret
)");
#else
#error "the simulator supports x86-64 and aarch64"
#endif

inline Fiber &current() { return *scheduler.current; }

inline void yield() { simulator_switch(&scheduler.current->stack_pointer, scheduler.main_stack); }

// Ends the launch with an error: no fiber runs any more.
[[noreturn]] inline void fail(const char *what, int line) {
    char text[256];
    const Fiber &fiber = current();
    const char *format = "%s (block %u, thread %u, line %d)";
    std::snprintf(text, sizeof text, format, what, fiber.block->number, fiber.thread, line);
    scheduler.error = text;
    for (;;) yield();
}

inline void fiber_main() {
    scheduler.launch.kernel(scheduler.launch.arguments);
    Fiber &fiber = current();
    Block &block = *fiber.block;
    if (block.at_barrier) fail("a thread ends while others wait at a barrier", block.barrier_line);
    fiber.state = State::Done;
    block.live--;
    for (;;) yield();
}

inline void *first_frame(char *stack) {
    void **top = reinterpret_cast<void **>(stack + STACK_BYTES);
#if defined(__x86_64__)
    *--top = nullptr; // aligns the stack as after a call
    *--top = reinterpret_cast<void *>(fiber_main);
    top -= SAVED_REGISTERS;
#else
    top -= 20;
    std::memset(top, 0, 160);
    top[11] = reinterpret_cast<void *>(fiber_main); // x30
#endif
    return top;
}

inline void start_block(Block &block, unsigned number) {
    const Launch &launch = scheduler.launch;
    block.number = number;
    block.live = launch.block;
    block.at_barrier = 0;
    block.votes = block.vote = false;
    block.warps.assign((launch.block + 31) / 32, Warp{});
    block.fibers.resize(launch.block);
    // Shared memory starts with garbage.
    block.shared = static_cast<char *>(std::aligned_alloc(128, (launch.shared_bytes + 127) / 128 * 128 + 128));
    std::memset(block.shared, 0xA5, launch.shared_bytes);
    for (unsigned thread = 0; thread < launch.block; thread++) {
        Fiber &fiber = block.fibers[thread];
        char *stack;
        if (scheduler.free_stacks.empty()) {
            stack = static_cast<char *>(std::aligned_alloc(4096, STACK_BYTES));
        } else {
            stack = scheduler.free_stacks.back();
            scheduler.free_stacks.pop_back();
        }
        fiber = Fiber{first_frame(stack), stack, &block, thread, State::Ready, 0};
    }
}

inline void end_block(Block &block) {
    for (Fiber &fiber : block.fibers) scheduler.free_stacks.push_back(fiber.stack);
    block.fibers.clear();
    std::free(block.shared);
}

inline Meeting &meeting_of(const Fiber &fiber) {
    std::vector<Meeting> &meetings = fiber.block->warps[fiber.thread / 32].meetings;
    for (Meeting &meeting : meetings) if (meeting.number == fiber.meeting) return meeting;
    std::abort(); // unreachable: a meeting stays until all lanes have read
}

inline bool can_run(const Fiber &fiber) {
    if (fiber.state != State::Warp) return fiber.state == State::Ready;
    const Meeting &meeting = meeting_of(fiber);
    return meeting.arrived == meeting.mask;
}

// Runs fibers in an order drawn from the seed until all thread blocks are done. Returns an error, or an empty text.
inline const char *run(const Launch &launch) {
    scheduler.launch = launch;
    scheduler.random = (launch.seed + 1) * 0x9E3779B97F4A7C15ull | 1;
    scheduler.error.clear();
    unsigned next = 0;
    std::vector<Block *> blocks;
    while (next < launch.grid || !blocks.empty()) {
        while (next < launch.grid && blocks.size() < launch.live_blocks) {
            blocks.push_back(new Block);
            start_block(*blocks.back(), next++);
        }
        Block &block = *blocks[draw() % blocks.size()];
        // Some threads of one thread block: from a random one on, every stride-th, each until it has to wait.
        unsigned threads = launch.block, start = draw() % threads, moved = 0;
        unsigned stride = draw() % threads | 1;
        while (std::__gcd(stride, threads) != 1) stride++;
        unsigned stretch = 1 + draw() % threads;
        for (unsigned i = 0; i < threads && moved < stretch; i++) {
            Fiber &fiber = block.fibers[(start + i * stride) % threads];
            if (!can_run(fiber)) continue;
            fiber.state = State::Ready;
            scheduler.current = &fiber;
            simulator_switch(&scheduler.main_stack, fiber.stack_pointer);
            if (!scheduler.error.empty()) goto failed;
            moved++;
        }
        if (block.live == 0) {
            end_block(block);
            for (Block *&kept : blocks) if (kept == &block) { std::swap(kept, blocks.back()); break; }
            delete blocks.back();
            blocks.pop_back();
        } else if (block.at_barrier == block.live) {
            block.at_barrier = 0;
            block.vote = block.votes;
            block.votes = false;
            for (Fiber &fiber : block.fibers) if (fiber.state == State::Barrier) fiber.state = State::Ready;
        } else if (moved == 0) {
            bool is_stuck = true;
            for (const Fiber &fiber : block.fibers) is_stuck = is_stuck && !can_run(fiber);
            if (is_stuck) {
                const std::string number = std::to_string(block.number);
                scheduler.error = "threads of a block wait for others that never come (block " + number + ")";
                goto failed;
            }
        }
    }
    return scheduler.error.c_str();
failed:
    for (Block *block : blocks) { end_block(*block); delete block; }
    // Stacks of fibers that did not end must not be reused.
    for (char *stack : scheduler.free_stacks) std::free(stack);
    scheduler.free_stacks.clear();
    return scheduler.error.c_str();
}

inline bool barrier(bool vote, int line) {
    Fiber &fiber = current();
    Block &block = *fiber.block;
    if (block.at_barrier && block.barrier_line != line) fail("threads of a block wait at different barriers", line);
    if (block.live != scheduler.launch.block) fail("a barrier after some threads of the block have ended", line);
    block.barrier_line = line;
    block.at_barrier++;
    block.votes = block.votes || vote;
    fiber.state = State::Barrier;
    yield();
    return block.vote;
}

// Every lane of the mask provides a value and waits for the others. Returns what `read` makes of the values.
template <class Read> inline auto meet(unsigned mask, uint64_t value, int line, Read read) {
    Fiber &fiber = current();
    Warp &warp = fiber.block->warps[fiber.thread / 32];
    unsigned lane = fiber.thread & 31, lanes = scheduler.launch.block - (fiber.thread & ~31u);
    if (lanes < 32) mask &= (1u << lanes) - 1;
    if (!(mask >> lane & 1)) fail("a lane is not in its own mask", line);
    Meeting *found = nullptr;
    for (Meeting &meeting : warp.meetings) {
        if (meeting.mask == mask && meeting.line == line && !(meeting.arrived >> lane & 1)) found = &meeting;
    }
    if (!found) {
        warp.meetings.emplace_back();
        found = &warp.meetings.back();
        found->number = warp.next++;
        found->mask = mask;
        found->arrived = found->read = 0;
        found->line = line;
    }
    found->values[lane] = value;
    found->arrived |= 1u << lane;
    fiber.meeting = found->number;
    fiber.state = State::Warp;
    yield();
    Meeting &meeting = meeting_of(fiber);
    auto result = read(meeting);
    meeting.read |= 1u << lane;
    if (meeting.read == meeting.mask) {
        if (&meeting != &warp.meetings.back()) meeting = warp.meetings.back();
        warp.meetings.pop_back();
    }
    return result;
}

inline unsigned mask_of(unsigned mask = ~0u) { return mask; }

template <class T> inline uint64_t to_bits(T value) {
    uint64_t bits = 0;
    static_assert(sizeof value <= 8, "a lane provides at most eight bytes");
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T> inline T from_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> inline T shuffle(unsigned mask, T value, unsigned source, int line) {
    return meet(mask, to_bits(value), line, [=](const Meeting &meeting) {
        if (!(meeting.mask >> (source & 31) & 1)) fail("a lane reads from one outside the mask", line);
        return from_bits<T>(meeting.values[source & 31]);
    });
}

// Lets other fibers run between any two atomic operations.
inline void interleave() { if ((draw() & 3) == 0) yield(); }

} // namespace simulator

#define threadIdx (simulator::Index{simulator::current().thread})
#define blockIdx (simulator::Index{simulator::current().block->number})
#define blockDim (simulator::Index{simulator::scheduler.launch.block})
#define gridDim (simulator::Index{simulator::scheduler.launch.grid})
#define __syncthreads() ((void)simulator::barrier(false, __LINE__))
#define __syncthreads_or(is_true) simulator::barrier((is_true) != 0, __LINE__)
#define __syncwarp(...) simulator::meet_only(simulator::mask_of(__VA_ARGS__), __LINE__)
#define __reduce_max_sync(mask, value) simulator::largest(mask, value, __LINE__)

#define __shfl_sync(mask, value, source) simulator::shuffle(mask, value, source, __LINE__)
#define __shfl_xor_sync(mask, value, bits) simulator::shuffle(mask, value, (threadIdx.x & 31) ^ (bits), __LINE__)
#define __shfl_up_sync(mask, value, by) simulator::shuffle_up(mask, value, by, __LINE__)
#define __ballot_sync(mask, is_true) simulator::ballot(mask, (is_true) != 0, __LINE__)
#define __any_sync(mask, is_true) (__ballot_sync(mask, is_true) != 0)
#define __all_sync(mask, is_true) (__ballot_sync(mask, !(is_true)) == 0)
#define __match_any_sync(mask, value) simulator::match_any(mask, value, __LINE__)
#define PREFETCH(address) ((void)(address))
#define COPY_NUMBER(to, from) ((void)(*(to) = *(from)))
#define WAIT_FOR_COPIES() ((void)0)
#define ADD_LANE_BEFORE(sum, by) ((sum) += simulator::shuffle_up(~0u, sum, by, __LINE__) * ((threadIdx.x & 31) >= (by)))
#define SHARED(Type, name) Type &name = *simulator::shared<Type>(__LINE__)
#define BOUNDED_KERNEL(name, threads, blocks, Arguments, arguments) KERNEL(name, Arguments, arguments)
#define KERNEL(name, Arguments, arguments)                                                                             \
    static void name(const Arguments &arguments);                                                                      \
    extern "C" const char *simulate_##name(unsigned grid, unsigned block, size_t shared_bytes, const void *pointer,    \
                                           uint64_t seed, unsigned live_blocks) {                                      \
        auto entry = [](const void *given) { name(*static_cast<const Arguments *>(given)); };                          \
        return simulator::run({grid, block, shared_bytes, entry, pointer, seed, live_blocks});                         \
    }                                                                                                                  \
    static void name(const Arguments &arguments)

namespace simulator {
template <class T> inline T shuffle_up(unsigned mask, T value, unsigned by, int line) {
    unsigned lane = current().thread & 31;
    return shuffle(mask, value, lane >= by ? lane - by : lane, line);
}
inline void meet_only(unsigned mask, int line) {
    meet(mask, 0, line, [](const Meeting &) { return 0; });
}
// Folds the values of the lanes of the mask into a number, from 0 on.
template <class Step> inline unsigned fold(unsigned mask, uint64_t value, int line, Step step) {
    return meet(mask, value, line, [step](const Meeting &meeting) {
        unsigned found = 0;
        for (unsigned lane = 0; lane < 32; lane++) {
            if (meeting.mask >> lane & 1) found = step(found, lane, static_cast<unsigned>(meeting.values[lane]));
        }
        return found;
    });
}
inline unsigned largest(unsigned mask, unsigned value, int line) {
    return fold(mask, value, line, [](unsigned found, unsigned, unsigned other) { return std::max(found, other); });
}
inline unsigned ballot(unsigned mask, bool is_true, int line) {
    return fold(mask, is_true, line, [](unsigned bits, unsigned lane, unsigned vote) { return bits | vote << lane; });
}
// The lanes with the same value.
inline unsigned match_any(unsigned mask, unsigned value, int line) {
    return fold(mask, value, line, [value](unsigned bits, unsigned lane, unsigned other) {
        return bits | static_cast<unsigned>(other == value) << lane;
    });
}
template <class T> inline T *shared(int line) {
    if (sizeof(T) > scheduler.launch.shared_bytes) fail("shared memory is smaller than the kernel's struct", line);
    return reinterpret_cast<T *>(current().block->shared);
}
} // namespace simulator

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (by & 31));
}
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
// As the instruction does: negative numbers and NaN become 0, and too large ones the largest.
inline unsigned __float2uint_rz(float x) { return !(x > 0) ? 0 : x < 4294967296.0f ? static_cast<unsigned>(x) : ~0u; }
inline unsigned __float2uint_rn(float x) { return __float2uint_rz(std::nearbyintf(x)); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline void __threadfence() { simulator::interleave(); }
inline void __threadfence_system() { simulator::interleave(); }
#define __trap() simulator::fail("trap", __LINE__)
template <class T> inline T __ldg(const T *p) { return *p; }
#define SIMULATED_ATOMIC(name, change)                                                                                 \
    template <class T, class U> inline T name(T *p, U given) {                                                         \
        simulator::interleave();                                                                                       \
        T old = *p, value = static_cast<T>(given);                                                                     \
        *p = change;                                                                                                   \
        return old;                                                                                                    \
    }
SIMULATED_ATOMIC(atomicAdd, old + value)
SIMULATED_ATOMIC(atomicMax, old > value ? old : value)
SIMULATED_ATOMIC(atomicMin, old < value ? old : value)
SIMULATED_ATOMIC(atomicExch, value)
#undef SIMULATED_ATOMIC
template <class T, class U> inline T atomicCAS(T *p, U expected, U value) {
    simulator::interleave();
    T old = *p;
    if (old == static_cast<T>(expected)) *p = static_cast<T>(value);
    return old;
}
