// The replay program: carries out jobs (job.h) on the first GPU until its input ends.
//
//   nvcc -arch=sm_90 -std=c++17 -O2 -o replay replay.cu
//
// Exit status: 0 at the end of the input, or if there is no GPU to work on (the Hello says why); 2 and a sentence on
// standard error if a job is malformed or a reply cannot be written; 3 after a Reply that says FAILED.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "carry_out.h"
#include "driver.h"
#include "job.h"
#include "job_io.h"
#include "launch.h"

namespace tilewright {

// Carries out jobs in memories that it keeps.
class Replay {
public:
    // Reads the memories of a job, carries it out and writes the reply. Returns false if a command broke the GPU.
    bool answer(const Job& job)
    {
        map_replies.assign(job.maps.size(), {});
        const uint64_t cores = job.header.more_cores + 1;
        const uint64_t reply_bytes = job.commands.size() * cores * sizeof(CommandReply);
        command_replies = reinterpret_cast<CommandReply*>(replies.reserve(reply_bytes));
        std::memset(command_replies, 0, reply_bytes);

        ReplyHeader reply{};
        reply.magic = REPLY;
        uint32_t begun = 0;
        try {
            carry_out_all(job, begun);
        } catch (const CudaError& error) {
            reply.status = static_cast<uint32_t>(Status::FAILED);
            reply.command = begun;
            set_text(reply.message, error.what());
        }
        const bool whole = reply.status == static_cast<uint32_t>(Status::OK);
        write_bytes(&reply, sizeof reply);
        write_bytes(map_replies.data(), map_replies.size() * sizeof(MapReply));
        write_bytes(command_replies, reply_bytes);
        if (whole) write_bytes(memories, job.header.global_bytes + cores * job.header.shared_bytes);
        return whole;
    }

private:
    // `begun` is the last command that was begun.
    void carry_out_all(const Job& job, uint32_t& begun)
    {
        const uint64_t global_bytes = job.header.global_bytes, image_bytes = job.header.shared_bytes;
        const uint32_t cores = job.header.more_cores + 1;
        memories = staging.reserve(global_bytes + cores * image_bytes);
        read_bytes(memories, global_bytes + image_bytes);
        uint8_t* const global_memory = global.reserve(global_bytes);
        uint8_t* const image_memory = image.reserve(cores * image_bytes);
        check(cudaMemcpy(global_memory, memories, global_bytes, cudaMemcpyHostToDevice));
        for (uint32_t core = 0; core < cores; ++core) {
            check(cudaMemcpy(image_memory + core * image_bytes, memories + global_bytes, image_bytes,
                             cudaMemcpyHostToDevice));
        }

        std::vector<CUtensorMap> maps(job.maps.size());
        for (size_t i = 0; i < maps.size(); ++i) {
            map_replies[i].result = driver.encode(job.maps[i], reinterpret_cast<uint64_t>(global_memory), &maps[i]);
        }
        for (uint32_t i = 0; i < job.commands.size(); ++i) {
            begun = i;
            const CommandRecord& command = job.commands[i];
            Task task{};
            task.command = command;
            task.global = global_memory;
            task.image = reinterpret_cast<uint4*>(image_memory);
            task.shared_bytes = job.header.shared_bytes;
            task.cores = cores;
            task.replies = command_replies + static_cast<uint64_t>(i) * cores;
            if (command.op == static_cast<uint32_t>(Op::NOTHING)) continue;
            if (!uses_map(command)) {
                launch(CUtensorMap{}, task);
            } else if (map_replies[command.map].result != CUDA_SUCCESS) {
                for (uint32_t core = 0; core < cores; ++core) {
                    task.replies[core].outcome = static_cast<uint32_t>(Outcome::REFUSED);
                }
            } else {
                task.form = {job.maps[command.map].rank, job.maps[command.map].im2col != 0};
                launch(maps[command.map], task);
            }
        }
        check(cudaMemcpy(memories, global_memory, global_bytes, cudaMemcpyDeviceToHost));
        check(cudaMemcpy(memories + global_bytes, image_memory, cores * image_bytes, cudaMemcpyDeviceToHost));
    }

    Driver driver;
    GlobalMemory global, image;
    HostMemory staging, replies;
    uint8_t* memories = nullptr;  // global memory, then shared memories
    CommandReply* command_replies = nullptr;
    std::vector<MapReply> map_replies;
};

// Returns the exit status.
int replay()
{
    const Hello greeting = hello();
    write_bytes(&greeting, sizeof greeting);
    if (greeting.status != static_cast<uint32_t>(Status::OK)) return 0;
    Replay replay;
    for (Job job; read_job(job, greeting.shared_bytes, COUNT_LIMIT);) {
        if (!replay.answer(job)) return 3;
    }
    return 0;
}

}  // namespace tilewright

int main()
{
    int status = 2;
    try {
        status = tilewright::replay();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "replay: %s\n", error.what());
    }
    std::fflush(stderr);
    std::_Exit(status);  // without tidying up, which a broken GPU may never finish
}
