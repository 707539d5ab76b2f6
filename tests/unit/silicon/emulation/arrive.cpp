// Carries out arrivals: CORES OWNER MASK EXPECTED VALUE. Prints outcome, counted and bytes of each core.
#include "carry_out.h"
#include "cluster.h"

namespace tilewright {
alignas(WINDOW) uint4 memory[WINDOW / sizeof(uint4)];
}

int main(int count, char** arguments)
{
    using namespace tilewright;
    const auto numbers = numbers_of(count, arguments);
    const uint32_t cores = numbers.at(0);
    auto* replies = shared_by_all<CommandReply>(-1, cores);
    std::vector<uint4> image(cores);
    Task task{};
    task.command.op = static_cast<uint16_t>(Op::ARRIVE);
    task.command.core = numbers.at(1);
    task.command.multicast = numbers.at(2);
    task.command.expected = numbers.at(3);
    task.command.size = numbers.at(4);
    task.image = image.data();
    task.shared_bytes = sizeof(uint4);
    task.cores = cores;
    task.replies = replies;
    if (!on_cluster(cores, {0}, memory, [=] { carry_out({}, task); })) return 1;
    for (uint32_t core = 0; core < cores; ++core) {
        std::printf("%u %u %lld\n", replies[core].outcome, replies[core].counted, static_cast<long long>(replies[core].bytes));
    }
    return 0;
}
