// Shares the boxes of a tensor in one cluster: CORES MULTICAST STAGES BOXES. Prints the sum of the tensor, and of all
// bytes that land.
#include "cluster.h"
#include "share_all.h"

namespace tilewright {
alignas(WINDOW) uint8_t memory[WINDOW];
}

int main(int count, char** arguments)
{
    using namespace tilewright;
    constexpr uint32_t WIDTH = 32, HEIGHT = 4;
    const auto numbers = numbers_of(count, arguments);
    const uint32_t cores = numbers.at(0), boxes = numbers.at(3);
    std::vector<uint8_t> tensor(boxes * WIDTH * HEIGHT);
    unsigned long long sum = 0;
    for (size_t i = 0; i < tensor.size(); ++i) sum += tensor[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
    const CUtensorMap map = {tensor.data(), WIDTH, WIDTH, HEIGHT};
    Task task{};
    for (int d = 0; d < 5; ++d) task.shape.count[d] = task.shape.extent[d] = 1;
    task.shape.count[1] = boxes;
    task.shape.step[1] = HEIGHT;
    task.shape.stage_bytes = task.box_bytes = WIDTH * HEIGHT;
    task.boxes = boxes;
    task.stages = numbers.at(2);
    task.sum = shared_by_all<unsigned long long>();
    blockDim.x = 1;
    const auto kernel = numbers.at(1) ? share_all<true, true> : share_all<false, true>;
    if (!on_cluster(cores, {0, PRODUCER}, memory, [=] { kernel(map, task, cores); })) return 1;
    std::printf("%llu %llu\n", sum, *task.sum);
    return 0;
}
