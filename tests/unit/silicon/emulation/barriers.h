// The functions of silicon/cuda/barriers.h for a cluster of processes, one a block, on a machine without a GPU.
//
// Address a of block c in the window of the cluster is c * WINDOW + a; a block's own addresses are below WINDOW. A
// barrier is one word: pending and expected arrivals, bytes to come, phase.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <pthread.h>
#include <thread>

#define __device__
#define __forceinline__ inline
#define __global__
#define __grid_constant__
#define __launch_bounds__(threads)
#define __shared__
#define __align__(bytes)

struct Three {
    uint32_t x;
};
inline thread_local Three threadIdx;
inline Three blockIdx, blockDim, gridDim;
struct CUtensorMap {
    const uint8_t* data;
    uint32_t pitch, width, height;  // of rows and of boxes, bytes; rows of a box
};
struct uint4 {
    uint32_t x, y, z, w;
};
inline void __trap() { std::abort(); }
inline void __syncthreads() { std::abort(); }
template <typename T>
T min(T a, T b) { return a < b ? a : b; }

namespace tilewright {

constexpr uint32_t WINDOW = 1 << 16;
inline uint8_t* own = nullptr;     // shared memory of this block
inline uint8_t* window = nullptr;  // of all blocks, one after the other
inline uint32_t rank = 0;
inline pthread_barrier_t* meeting = nullptr;

inline uint64_t __cvta_generic_to_shared(const void* address)
{
    return static_cast<const uint8_t*>(address) - own;
}

inline uint8_t* place(uint32_t address) { return address < WINDOW ? own + address : window + address - WINDOW; }
inline uint32_t own_core() { return rank; }
inline uint32_t address_in(uint32_t core, uint32_t address) { return WINDOW + core * WINDOW + address; }
inline void meet_cluster() { pthread_barrier_wait(meeting); }
inline void fence_for_copies() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void finish_groups() {}

struct Barrier {
    uint64_t pending : 20, expected : 20, phase : 1;
    int64_t bytes : 22;
};
static_assert(sizeof(Barrier) == 8);

template <typename Change>
void change(uint32_t address, Change apply)
{
    auto* word = reinterpret_cast<Barrier*>(place(address));
    Barrier before, after;
    __atomic_load(word, &before, __ATOMIC_SEQ_CST);
    do {
        after = before;
        apply(after);
        if (!after.pending && !after.bytes) {
            after.phase ^= 1;
            after.pending = after.expected;
        }
    } while (!__atomic_compare_exchange(word, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

inline void init_barrier(uint32_t barrier, uint32_t arrivals = 1)
{
    change(barrier, [&](Barrier& state) { state = {arrivals, arrivals, 0, 0}; });
}
inline void expect(uint32_t barrier, uint32_t bytes)
{
    change(barrier, [&](Barrier& state) { state.bytes += bytes; });
}
inline void complete(uint32_t barrier, uint32_t bytes)
{
    change(barrier, [&](Barrier& state) { state.bytes -= bytes; });
}
inline void arrive_in_cluster(uint32_t barrier, uint32_t arrivals)
{
    change(barrier, [&](Barrier& state) {
        if (arrivals > state.pending) std::abort();
        state.pending -= arrivals;
    });
}
inline void arrive_expecting(uint32_t barrier, uint32_t bytes)
{
    change(barrier, [&](Barrier& state) {
        if (!state.pending) std::abort();
        state.bytes += bytes;
        state.pending -= 1;
    });
}
inline bool phase_over(uint32_t barrier, uint32_t parity)
{
    Barrier state;
    __atomic_load(reinterpret_cast<Barrier*>(place(barrier)), &state, __ATOMIC_SEQ_CST);
    if (state.phase != parity) return true;
    std::this_thread::yield();
    return false;
}
inline bool phase_over_in_cluster(uint32_t barrier, uint32_t parity) { return phase_over(barrier, parity); }
inline uint64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
inline void pause(uint64_t) { std::this_thread::yield(); }
inline bool wait_for_phase(uint32_t barrier, uint32_t parity, uint64_t)
{
    while (!phase_over(barrier, parity)) {
    }
    return true;
}

}  // namespace tilewright
