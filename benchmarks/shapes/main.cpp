// Our side of the rows (h): each is a function that updates shared variables, one call a step.
#include <sys/resource.h>

#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "shapes/shapes.h"

using bench::Json;

namespace {

Json read_description() {
    std::ifstream file(SHAPES);
    if (!file) throw std::runtime_error(std::string("no file ") + SHAPES);
    return Json::parse(file);
}

// Megabytes of a line of /proc/self/status, such as VmRSS.
double megabytes(const std::string& key) {
    std::ifstream file("/proc/self/status");
    for (std::string word; file >> word;)
        if (word == key + ":") {
            double kilobytes = 0;
            file >> kilobytes;
            return kilobytes / 1024;
        }
    throw std::runtime_error("no " + key + " in /proc/self/status");
}

// Of this process and of the host compilers that it has waited for.
double processor_seconds() {
    double sum = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage used{};
        getrusage(who, &used);
        for (const timeval& t : {used.ru_utime, used.ru_stime})
            sum += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    }
    return sum;
}

// From here on the peak of resident memory is that of what follows.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

void write(const bench::Updates& updates, const std::string& path) {
    std::ofstream file(path, std::ios::binary);
    for (const bitale::Update& update : updates) {
        const bitale::Array value = update.target.get_value();
        file.write(static_cast<const char*>(value.data()), value.bytes());
    }
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace

int main() {
    const Json description = read_description();
    bench::Updates updates;
    bench::Given given;
    std::unique_ptr<bitale::Function> step;
    double bare = 0;
    return bench::serve([&](const Json& request) -> Json {
        if (request.contains("setup")) {
            step.reset();
            updates.clear();
            given = {};
            bare = megabytes("VmRSS");
            updates =
                bench::update_of(description.at("shapes").at(request["setup"].get<std::string>()), given);
            const double before = processor_seconds();
            step = std::make_unique<bitale::Function>(bitale::function(
                given.inputs, {},
                {.updates = updates, .on_unused_input = bitale::OnUnused::ignore, .specialise = false}));
            forget_peak();
            return {{"compile_s", step->compile_seconds()},
                    {"compile_cpu_s", processor_seconds() - before},
                    {"kernels", step->kernels().size()}};
        }
        if (!step) throw std::runtime_error("no setup yet");
        if (request.contains("peak"))
            return {{"peak_mb", megabytes("VmHWM")},
                    {"bare_mb", bare},
                    {"planned_mb", step->peak_bytes() * 1e-6}};
        if (request.contains("write")) {
            step->call(given.values);
            write(updates, request["write"].get<std::string>());
            return Json::object();
        }
        const auto steps = request.at("steps").get<std::int64_t>();
        for (auto k = request.value("warm", std::int64_t{1}); k > 0; --k) step->call(given.values);
        const bench::Clock clock;
        for (std::int64_t k = 0; k < steps; ++k) step->call(given.values);
        return {{"ms", clock.seconds() * 1e3 / static_cast<double>(steps)}};
    });
}
