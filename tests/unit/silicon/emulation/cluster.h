// A cluster of processes, each a block with a few of its threads.
#pragma once
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "barriers.h"

namespace tilewright {

// Memory that all blocks see at one address.
template <typename T>
T* shared_by_all(int file = -1, size_t count = 1)
{
    const int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
    return static_cast<T*>(mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, flags, file, 0));
}

// Runs `thread` for the threads with these numbers in each block; false if one fails. `memory` are the WINDOW bytes that
// the kernel knows as its shared memory.
template <typename Thread>
bool on_cluster(uint32_t cores, const std::vector<uint32_t>& numbers, void* memory, Thread thread)
{
    const int file = memfd_create("window", 0);
    if (ftruncate(file, cores * WINDOW)) return false;
    window = shared_by_all<uint8_t>(file, cores * WINDOW);
    own = static_cast<uint8_t*>(memory);
    meeting = shared_by_all<pthread_barrier_t>();
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(meeting, &shared, cores * numbers.size());
    for (uint32_t core = 0; core < cores; ++core) {
        if (fork()) continue;
        rank = blockIdx.x = core;
        gridDim.x = cores;
        mmap(own, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, core * WINDOW);
        std::vector<std::thread> threads;
        for (const uint32_t number : numbers) {
            threads.emplace_back([=] {
                threadIdx.x = number;
                thread();
            });
        }
        for (std::thread& each : threads) each.join();
        _exit(0);
    }
    bool good = true;
    for (int status; wait(&status) > 0;) good = good && status == 0;
    return good;
}

inline std::vector<uint32_t> numbers_of(int count, char** arguments)
{
    std::vector<uint32_t> numbers;
    for (int i = 1; i < count; ++i) numbers.push_back(std::stoul(arguments[i]));
    return numbers;
}

}  // namespace tilewright
