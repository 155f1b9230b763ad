// Puts views in device memory, through the stand-in for the driver: argv[1]. With argv[2], makes only one refused call.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#ifdef CARRIED
#include <mpidata_carried.h>
#endif
#include <mpidata.hpp>

#include "../../../../devices/standin.h"
#include "made_up_views.hpp"

namespace {

const standin_functions *device;

void refuse(mpidata::simulation &simulation, const std::string &call, KokkosView<double, 2, CudaSpace> &view) {
    std::vector<double> answer(4);
    try {
        if (call == "iput") simulation.iput("u", mpidata::array(view.data(), {4, 6}));
        auto asked = mpidata::array(view.data(), {4, 6});
        if (call == "infer") simulation.infer({{"x", asked}}, {{"y", answer}});
    } catch (const mpidata::error &error) {
        std::printf("%d: %s\n", error.code(), error.what());
    }
}

void solve(mpidata::job &job, int argc, char **argv) {
    void *stream = device->stream(0, 1);
    auto *memory = static_cast<double *>(device->allocate(24 * sizeof(double), 'd', 0));
    // 4 x 6, the first index fastest
    KokkosView<double, 2, CudaSpace> view{{memory, {4, 6}, {1, 4}}};
    // every second element of 8
    const std::int64_t some[8] = {0, -1, 1, -1, 2, -1, 3, -1};
    auto *numbers = static_cast<std::int64_t *>(device->allocate(sizeof some, 'd', 0));
    device->write(numbers, some, sizeof some);
    KokkosView<std::int64_t, 1, CudaSpace> own{{numbers, {4}, {2}}};
    const mpidata::map backwards(std::vector<int>{3, 2, 1, 0});
    mpidata_device_stream(stream);
    for (auto &simulation : job.simulations()) {
        if (argc > 2) return refuse(simulation, argv[2], view);
        for (int step = 0; step < 3; step++) {
            double values[24];
            for (int i = 0; i < 24; i++) values[i] = 100.0 * static_cast<double>(simulation.id()) + 30.0 * step + i;
            device->launch_write(stream, memory, values, sizeof values);
            simulation.put("u", view);
            simulation.put("v", mpidata::array(memory, {24}));
            simulation.put_mapped("w", view, backwards);
            simulation.put_indices("own", own, backwards);
            std::memset(values, 0, sizeof values);
            device->write(memory, values, sizeof values);
            simulation.step(step);
        }
    }
}

} // namespace

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    device = static_cast<const standin_functions *>(library ? dlsym(library, "standin") : nullptr);
    if (!device) return 1;
#ifdef CARRIED
    mpidata::job job;
    solve(job, argc, argv);
#else
    MPI_Init(&argc, &argv);
    {
        mpidata::job job(MPI_COMM_WORLD);
        solve(job, argc, argv);
    }
    MPI_Finalize();
#endif
    return 0;
}
