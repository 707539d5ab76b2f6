// The kernel that carries out one command: a cluster of blocks of threads, one a core. One thread of one of them issues
// the one instruction.
//
// Shared memories come from copies of them in global memory and go back there, so that they outlast the kernel.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "barriers.h"
#include "instructions.h"
#include "job.h"

namespace tilewright {

constexpr uint32_t THREADS = 512;
constexpr uint32_t SHARED_ALIGNMENT = 1024;  // largest period of a swizzle
constexpr uint32_t BARRIER_BYTES = 16;       // the barrier lies behind the job's shared memory

// Nanoseconds after which a copy has certainly ended, in which one that has been counted has written the rest, and after
// which a prefetch has certainly read its tensor map.
constexpr uint64_t COPY_LIMIT = 20'000'000;
constexpr uint64_t COPY_REST = 20'000;
constexpr uint64_t PREFETCH_REST = 1'000'000;

// Bytes that a barrier can count, and more than one instruction can write to shared memory.
constexpr uint32_t COUNT_LIMIT = (1u << 20) - 1;
constexpr uint32_t COPY_BYTES = 1u << 18;

struct Task {
    CommandRecord command;
    Form form;              // of the command's map
    uint8_t* global;        // the job's global memory
    uint4* image;           // the shared memory of each core before and after
    uint32_t shared_bytes;  // of one of them, a multiple of 16
    uint32_t cores;
    CommandReply* replies;  // one a core
};

// Bytes that a copy counts at a barrier. Before the copy, the one arrival was made and `expected` bytes were expected.
// So many nanoseconds of `rest` after the end of that phase everything is written.
//
// The phase ends when the count comes to zero, even if the copy goes on, so bytes above `expected` are in the next
// phase; whether there are any shows when that phase gets its arrival. A count that stays away from zero is found by
// lifting it above zero and taking off single bytes until the phase ends.
__device__ CommandReply count_bytes(uint32_t barrier, uint32_t expected, uint64_t rest)
{
    uint32_t parity = 0;
    if (wait_for_phase(barrier, parity, COPY_LIMIT)) {
        pause(rest);
        arrive_expecting(barrier, 0);
        parity = 1;
        if (phase_over(barrier, parity)) return {static_cast<uint32_t>(Outcome::DONE), 1, expected};
        pause(COPY_LIMIT);
    }
    const uint32_t lift = min(COPY_BYTES, COUNT_LIMIT - expected);
    expect(barrier, lift);
    for (int64_t bytes = static_cast<int64_t>(expected) + lift - 1; bytes >= 0; --bytes) {
        complete(barrier, 1);
        if (phase_over(barrier, parity)) return {static_cast<uint32_t>(Outcome::DONE), 1, bytes};
    }
    return {static_cast<uint32_t>(Outcome::UNFINISHED), 0, 0};
}

// Arrivals that a barrier has counted, modulo those of the two phases that a parity tells apart: single arrivals are
// made until the phase ends.
__device__ CommandReply count_arrivals(uint32_t barrier, uint32_t expected)
{
    const uint32_t parity = phase_over(barrier, 0);
    for (uint32_t missing = 1; missing <= expected; ++missing) {
        arrive_in_cluster(barrier, 1);
        if (phase_over(barrier, parity)) {
            return {static_cast<uint32_t>(Outcome::DONE), 1, static_cast<int64_t>(expected) * (parity + 1) - missing};
        }
    }
    return {static_cast<uint32_t>(Outcome::UNFINISHED), 0, 0};
}

// Issues the instruction; false if there is none. `shared` is the address of the job's shared memory.
__device__ bool issue(const CUtensorMap& map, const Task& task, uint32_t shared, uint32_t barrier)
{
    const CommandRecord& command = task.command;
    const uint64_t tensor_map = reinterpret_cast<uint64_t>(&map);
    const uint32_t place = shared + command.shared;
    const Start at = {{command.coords[0], command.coords[1], command.coords[2], command.coords[3], command.coords[4]},
                      {command.offsets[0], command.offsets[1], command.offsets[2]}};
    const uint64_t global = __cvta_generic_to_global(task.global);
    const uint64_t global_source = global + command.source, global_destination = global + command.destination;
    const uint32_t shared_source = shared + static_cast<uint32_t>(command.source);
    const uint32_t shared_destination = shared + static_cast<uint32_t>(command.destination);
    const Reduction reduction = static_cast<Reduction>(command.reduction);
    const Type type = static_cast<Type>(command.type);
    switch (static_cast<Op>(command.op)) {
        case Op::LOAD:
            return command.multicast ? multicast(task.form, tensor_map, at, place, barrier, command.multicast)
                                     : load(task.form, tensor_map, at, place, barrier);
        case Op::STORE: return store(task.form, tensor_map, at, place);
        case Op::REDUCE: return reduce(reduction, task.form, tensor_map, at, place);
        case Op::PREFETCH: return prefetch(task.form, tensor_map, at);
        case Op::GLOBAL_TO_SHARED:
            if (command.multicast) {
                multicast_to_shared(shared_destination, global_source, command.size, barrier, command.multicast);
            } else {
                copy_to_shared(shared_destination, global_source, command.size, barrier);
            }
            return true;
        case Op::SHARED_TO_GLOBAL: copy_to_global(global_destination, shared_source, command.size); return true;
        case Op::SHARED_TO_SHARED:
            copy_in_shared(address_in(command.receiver, shared_destination), shared_source, command.size,
                           address_in(command.receiver, barrier));
            return true;
        case Op::REDUCE_TO_GLOBAL:
            return reduce_to_global(reduction, type, global_destination, shared_source, command.size);
        case Op::REDUCE_TO_SHARED:
            return reduce_in_shared(reduction, type, address_in(command.receiver, shared_destination), shared_source,
                                    command.size, address_in(command.receiver, barrier));
        case Op::PREFETCH_BLOCK: prefetch_block(global_source, command.size); return true;
        default: return false;
    }
}

// Whether the barrier, not a bulk group, tells that a command is done.
__device__ bool ends_at_barrier(Op op)
{
    return op == Op::LOAD || op == Op::GLOBAL_TO_SHARED || op == Op::SHARED_TO_SHARED || op == Op::REDUCE_TO_SHARED;
}

__device__ bool is_prefetch(Op op)
{
    return op == Op::PREFETCH || op == Op::PREFETCH_BLOCK;
}

// Whether a core is one of those in whose shared memory a command's bytes land.
__device__ bool receives(const CommandRecord& command, uint32_t core)
{
    switch (static_cast<Op>(command.op)) {
        case Op::LOAD:
        case Op::GLOBAL_TO_SHARED: return command.multicast ? command.multicast >> core & 1 : core == command.core;
        case Op::SHARED_TO_SHARED:
        case Op::REDUCE_TO_SHARED: return core == command.receiver;
        default: return false;
    }
}

// What the thread does that issues the instruction, but for what barriers count. The kernel, with whose end the tensor
// map in its parameters goes, does not end before.
__device__ CommandReply perform(const CUtensorMap& map, const Task& task, uint32_t shared, uint32_t barrier)
{
    const Op op = static_cast<Op>(task.command.op);
    if (!issue(map, task, shared, barrier)) return {static_cast<uint32_t>(Outcome::NO_SUCH), 0, 0};
    if (!ends_at_barrier(op)) finish_groups();
    if (is_prefetch(op)) pause(PREFETCH_REST);  // it is part of no group
    return {static_cast<uint32_t>(Outcome::DONE), 0, 0};
}

// Launched as a cluster of task.cores blocks of THREADS threads, with shared_bytes + BARRIER_BYTES of shared memory.
// All of them come to every meeting, whatever becomes of the command: each wait has an end. After the second meeting
// all arrivals have been made.
// Op::NOTHING only says in `bytes` where the job's shared memory lies.
__global__ void __launch_bounds__(THREADS)
    carry_out(const __grid_constant__ CUtensorMap map, const __grid_constant__ Task task)
{
    extern __shared__ __align__(SHARED_ALIGNMENT) uint4 memory[];
    const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    const uint32_t barrier = shared + task.shared_bytes, units = task.shared_bytes / sizeof(uint4);
    const uint32_t core = own_core();
    const Op op = static_cast<Op>(task.command.op);
    const bool counts = ends_at_barrier(op), lands = receives(task.command, core), arrives = op == Op::ARRIVE;
    uint4* const image = task.image + static_cast<uint64_t>(core) * units;
    CommandReply reply = {static_cast<uint32_t>(Outcome::DONE), 0, op == Op::NOTHING ? shared : 0};
    for (uint32_t i = threadIdx.x; i < units; i += THREADS) memory[i] = image[i];
    if (threadIdx.x == 0) {
        init_barrier(barrier, arrives ? task.command.expected : 1);
        if (counts) arrive_expecting(barrier, lands ? task.command.expected : 0);
    }
    fence_for_copies();
    meet_cluster();
    if (threadIdx.x == 0) {
        if (arrives && task.command.multicast >> core & 1) {
            arrive_in_cluster(address_in(task.command.core, barrier), task.command.size);
        }
        if (!arrives && core == task.command.core && op != Op::NOTHING) reply = perform(map, task, shared, barrier);
        if (lands && reply.outcome == static_cast<uint32_t>(Outcome::DONE)) {
            // Nothing has been waited for if nothing was expected.
            reply = count_bytes(barrier, task.command.expected, task.command.expected ? COPY_REST : COPY_LIMIT);
        }
    }
    meet_cluster();
    if (threadIdx.x == 0) {
        // Where nothing shall land, what has landed all the same has done so when the others are done.
        if (counts && !lands && reply.outcome == static_cast<uint32_t>(Outcome::DONE)) {
            reply = count_bytes(barrier, 0, COPY_REST);
        }
        if (arrives) reply = count_arrivals(barrier, task.command.expected);
        task.replies[core] = reply;
    }
    for (uint32_t i = threadIdx.x; i < units; i += THREADS) image[i] = memory[i];
}

}  // namespace tilewright
